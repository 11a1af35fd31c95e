//! The endpoints of a cluster, and the choice among them: priorities, localities, drops (gRFC A27, A56, A61).
//!
//! Everything is a value or a pure function: states and random numbers are passed in, decisions are returned.

mod assignment;

pub use self::assignment::{Assignment, Drop, Endpoint, Health, Locality, Priority};
