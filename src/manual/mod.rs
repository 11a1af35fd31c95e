//! The manual: a guide to xDS and to this crate in six chapters, the design rules, and reference pages.
//!
//! # The guide
//!
//! Each chapter first explains an idea of the protocol, then shows a complete program that uses it. The programs run as
//! tests of this crate.
//!
//! 1. [A driver](_01_driver): requests, responses, ACK, NACK and nonces; the loop around a client and around a server.
//! 2. [A client that follows references](_02_references): resource types that refer to each other, wildcards,
//!    subscriptions that come and go.
//! 3. [A source of resources](_03_source): what a server asks of a store, and a store over a `BTreeMap`.
//! 4. [Groups of nodes](_04_groups): different resources for different clients, and the epoch of a store.
//! 5. [Several servers and many watchers](_05_servers): fallback, authorities, existence time-outs, errors beside data.
//! 6. [Testing](_06_testing): a machine as a state of a model checker, and as a target of a fuzzer.
//!
//! # The reference
//!
//! - [Design rules](rules): fourteen decisions that shape both machines. Comments in the source cite them by number.
//! - [The life of a name](names): the states of one resource name on a client and on a server.
//! - [A slow application](slow): what a client may hold while its application is slow, for how long, and what the server
//!   sees.
//! - [The cost model](cost): what each operation costs, and what a stream keeps.
//! - [The catalogue of protocol rules](catalogue): 516 rules, each with the function that decides it and the test that
//!   shows it. Comments in the source cite them by id, such as [S-SOTW-12](catalogue).
//!
//! The reference for a single item is the documentation of the item itself.

#[doc = include_str!("01-driver.md")]
pub mod _01_driver {}

#[doc = include_str!("02-references.md")]
pub mod _02_references {}

#[doc = include_str!("03-source.md")]
pub mod _03_source {}

#[doc = include_str!("04-groups.md")]
pub mod _04_groups {}

#[doc = include_str!("05-servers.md")]
pub mod _05_servers {}

#[doc = include_str!("06-testing.md")]
pub mod _06_testing {}

#[doc = include_str!("rules.md")]
pub mod rules {}

#[doc = include_str!("names.md")]
#[doc = ""]
#[doc = include_str!("../client/announced.md")]
#[doc = include_str!("names-server.md")]
pub mod names {}

#[doc = include_str!("slow.md")]
pub mod slow {}

#[doc = include_str!("cost.md")]
pub mod cost {}

#[doc = include_str!("../../tests/protocol/rules.md")]
pub mod catalogue {}
