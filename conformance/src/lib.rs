//! A conformance kit for the xDS transport protocol: fixed cases and a referee for third-party servers and clients.
//!
//! The command `xds-conformance` runs the kit: see the [page beside this crate](https://docs.rs/crate/xds-conformance).
//! The library has the same functions in parts.
//!
//! - [`referee`] judges one stream by the sentences of the specification, without I/O and without time.
//! - [`story`] and [`suite`] are the fixed cases, as text; [`run`] plays one against a peer.
//! - [`net`] is a peer over sockets, [`memory`] a server of this project, with or without a defect.
//! - [`control`] changes the resources of a server; [`mode`] runs all cases, [`walk`] random walks, [`tap`] a proxy;
//!   [`report`] writes the results.
//! - [`client`] is the kit as a server: the fixed cases for clients.
//! - [`message`] and [`resource`] are the messages and resources that the kit sends and reads.

pub mod client;
pub mod control;
mod dialogue;
pub mod memory;
pub mod message;
pub mod mode;
pub mod net;
mod program;
pub mod referee;
pub mod report;
pub mod resource;
pub mod run;
pub mod story;
pub mod suite;
pub mod tap;
pub mod walk;
