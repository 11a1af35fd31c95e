//! The parts that all peers' programs share: the workloads, the clock, the floor, the cap, and the lines of output.

pub mod cap;
pub mod clock;
pub mod data;
pub mod probe;
pub mod row;
pub mod server;
pub mod wire;

pub use probe::Probe;
pub use row::Row;
pub use server::{Sent, Server, Variant, serve};
