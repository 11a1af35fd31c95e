//! From a gRPC target to endpoints: how gRPC uses xDS, as values without I/O.
//!
//! The crate stands on [`xds_machine`], which is the transport, and adds what gRFC A27 and its successors say beyond
//! the transport. Each module can be used alone; together they are what a channel does before it picks a connection:
//!
//! ```text
//!  bootstrap ──► Servers or Client ──► ledgers ◄──► chain ──► a configuration: listener, routes, clusters
//!                                         ▲                            │
//!                            bytes ──► resources                       └──► endpoints: which of them now
//! ```
//!
//! 1. [`bootstrap`] reads the bootstrap file, and makes of it the servers, the node and the name of the Listener.
//! 2. [`ledgers`] watches the resources that the chain wants, and hands what comes to [`resources`], which decodes each
//!    or names its faults. The verdict goes back to the client machine.
//! 3. [`chain`] says what is wanted, and when a configuration is complete. [`serving`] is the same for a server.
//! 4. [`endpoints`] picks: a priority, a locality, and the calls to drop.
//!
//! What belongs to the data path (filters, retries, TLS, load balancing policies) is not decided here: decoders leave it
//! raw, and the faults that the caller finds in it join the same verdict.
//!
//! No module has a clock, a socket or a random number of its own. The first example of [`ledgers`] is a driver.

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
