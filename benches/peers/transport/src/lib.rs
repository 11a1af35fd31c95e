//! The common parts of clients: a server that sends given responses, and the work.
//!
//! A client of the peers is available only with its transport, so all are driven over the same: tonic on a loopback
//! connection, to a server on a thread of its own, which is not measured. The client's thread does all work of the
//! client.

pub mod client;
pub mod codec;
pub mod stub;

pub use client::{Client, serve};
pub use stub::{Report, Stub};
