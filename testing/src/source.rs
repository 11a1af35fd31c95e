//! Tests for the author of a [`Source`]: a probe that checks the contract at each call, and random walks that compare
//! the source with a [`Cache`](xds_machine::server::Cache).
//!
//! [`Source`]: xds_machine::server::Source

mod audit;
mod counted;
mod probe;
mod walk;

pub use self::audit::Broken;
pub use self::counted::Counted;
pub use self::probe::Probe;
pub use self::walk::{Failure, Plan, Store, check_source};
