//! Asynchronous drivers of [`xds_machine`], without I/O and without a runtime.
//!
//! A machine decides what to say; a driver moves messages, time and actions between a machine and its surroundings.
//! The drivers of this crate are written against [`futures_core::Stream`] and [`futures_sink::Sink`], and take time
//! from a [`Runtime`], so they run on any executor and over any transport. `xds-machine-tonic` is this crate over gRPC.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

pub mod client;
mod runtime;
pub mod server;
mod timer;

pub use runtime::Runtime;
