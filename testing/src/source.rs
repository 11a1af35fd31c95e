//! For the author of a [`Source`]: a probe that checks the contract at each call, and random walks beside a
//! [`Cache`](xds_machine::server::Cache) that must end alike.
//!
//! [`Source`]: xds_machine::server::Source

mod audit;
mod probe;
mod walk;

pub use self::audit::Broken;
pub use self::probe::Probe;
pub use self::walk::{Failure, Plan, Store, check_source};
