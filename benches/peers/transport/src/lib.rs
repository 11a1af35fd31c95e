//! What clients have in common: a server that says what it is told to, and the work.
//!
//! A client of the peers can only be had with its transport, so all are driven over the same: tonic on a loopback
//! connection, to a server on a thread of its own, which does not count. The client's thread does all that the client does.

pub mod client;
pub mod codec;
pub mod stub;

pub use client::{Client, serve};
pub use stub::{Report, Stub};
