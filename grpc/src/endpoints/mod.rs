//! The endpoints of a cluster, and the choice among them: priorities, localities, drops (gRFC A27, A56, A61).
//!
//! Everything is a value or a pure function: states, times and random numbers are passed in, decisions are returned.
//!
//! ```
//! use xds_machine::Instant;
//! use xds_machine_grpc::endpoints::{Child, State, choose};
//!
//! let mut now = Instant::EPOCH;
//! let mut children = [None, None];
//! let choice = choose(&children).expect("there are priorities");
//! assert_eq!((choice.priority, choice.creates), (0, true));
//!
//! children[0] = Some(Child::new(now));
//! assert_eq!(choose(&children), choose(&children), "the first priority has 10 s to connect");
//!
//! now = children[0].as_ref().and_then(Child::poll_timeout).expect("the failover timer runs");
//! children[0].as_mut().expect("it was made").handle_timeout(now);
//! let choice = choose(&children).expect("there are priorities");
//! assert_eq!((choice.priority, choice.creates), (1, true));
//! ```

mod assignment;
mod failover;
mod names;
mod pick;

pub use self::assignment::{Assignment, Drop, Endpoint, Health, Locality, Priority};
pub use self::failover::{Child, Choice, State, choose};
pub use self::names::ChildNames;
pub use self::pick::{drop_category, pick_locality};
