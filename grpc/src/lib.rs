//! From a gRPC target to endpoints: how gRPC uses xDS, as values without I/O.
//!
//! The crate builds on [`xds_machine`], which is the transport, and adds the rules of gRFC A27 and its successors
//! beyond the transport. Each module can be used alone; together they do the work of a channel before it picks a
//! connection:
//!
//! ```text
//!  bootstrap ──► Servers or Client ──► ledgers ◄──► chain ──► a configuration: listener, routes, clusters
//!                                         ▲                            │
//!                            bytes ──► resources                       └──► endpoints: which of them now
//! ```
//!
//! 1. [`bootstrap`] reads the bootstrap file, and derives the servers, the node and the name of the Listener from it.
//! 2. [`ledgers`] watches the resources that the chain wants, and passes each one that arrives to the decoders of
//!    [`resources`], which return its content or its faults. The client machine receives the verdict.
//! 3. [`chain`] decides which resources are wanted, and when a configuration is complete. [`serving`] does the same for
//!    a server.
//! 4. [`endpoints`] picks a priority, a locality, and the calls to drop.
//!
//! The data path (filters, retries, TLS, load balancing policies) is not decided here: the decoders leave its fields
//! raw, and the faults that the caller finds in them join the same verdict.
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
