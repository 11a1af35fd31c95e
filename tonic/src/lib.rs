//! xDS over gRPC, with tonic and tokio: a control plane ([`server`]) and a client ([`client`]).
//!
//! No rule of the protocol is decided here: the machines of [`xds_machine`] decide, [`xds_machine_driver`] drives
//! them, and this crate connects them to HTTP/2.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod block;
pub mod client;
mod client_status;
mod messages;
mod runtime;
pub mod server;
mod status;

pub use runtime::TokioRuntime;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
