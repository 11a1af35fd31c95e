//! From a gRPC target to endpoints: how gRPC uses xDS, as values without I/O.
//!
//! The crate stands on [`xds_machine`], which is the transport, and adds what gRFC A27 and its successors say beyond it.

#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

extern crate alloc;

pub mod bootstrap;
pub mod chain;
pub mod domains;
pub mod endpoints;
pub mod faults;
pub mod ledgers;
pub mod links;
pub mod resources;
pub mod serving;
