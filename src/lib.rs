//! Sans-IO state machines for the [xDS transport protocol], by which Envoy, gRPC and service meshes get their
//! configuration: client and server, state-of-the-world ([`Sotw`]) and incremental ([`Delta`]), aggregated (ADS) or a
//! stream for each type.
//!
//! [xDS transport protocol]: https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol
//!
//! # The picture
//!
//! ```text
//!   subscribe ──►┌───────────────┐  poll_transmit            ┌───────────────┐
//! unsubscribe ──►│               │─────── request ──────────►│ handle_request├──► Ack, Nack, Subscribed, ..
//!                │   Client<V>   │                           │   Server<V>   │
//!    Apply(u) ◄──│               │◄────── response ──────────│               │◄── Source: your store, or Cache
//!     Verdict ──►└───────────────┘  handle_response          └───────────────┘  poll_transmit(&source)
//! ```
//!
//! From the bottom up, the modules are names and URLs ([`ResourceName`], [`TypeUrl`], [`xdstp`], ..), messages
//! ([`message`]), and the machines [`client`] and [`server`], which have the same parts. Two layers build on the
//! client: [`servers`] for several servers, and [`watch`] for several watchers. Load reports ([`load`]) are a separate
//! protocol. [`proto`] is the wire format, and [`service`] has the paths of the gRPC methods.
//!
//! # The contract
//!
//! No I/O, no clock, no randomness, no async, no threads. Time is passed in as a value ([`Instant`]), and so is jitter.
//! The same inputs give the same outputs, to the byte. Every public type that owns its data is `Clone + Debug`;
//! machines, messages, actions and tokens are also `Eq + Hash`: a machine can *be* a state of a [model checker](model).
//!
//! No input of a peer panics or leaves a partial change: the machine answers bad input if the protocol allows (with a
//! NACK, for example), and otherwise returns an [`Error`] and stays unchanged. Errors are split by culprit:
//! [`Error::Peer`] ends the stream with the gRPC status that the error carries; [`Error::Caller`] is a bug of the
//! caller. The machine's configuration limits everything that a peer can make grow.
//!
//! # The loop
//!
//! Nothing is queued that can be derived: a message is made from the state at the moment when it is polled. A driver
//! may therefore call the methods in any order and at any time. After every event the driver runs these steps:
//!
//! 1. Call `poll_action` until it returns `None`: pass updates to the application, and return its [`client::Verdict`]
//!    now or later. A verdict may cause further actions, so repeat until there are neither.
//! 2. If the transport has room, call `poll_transmit` and send; repeat. On a server, call `poll_action` once more
//!    afterwards.
//! 3. Wait for the first of: a message (a client reads only while [`wants_response`](client::Client::wants_response)
//!    returns `true`), room in the transport, a verdict, a command of the application, a change of the store,
//!    `poll_timeout`.
//! 4. Call the `handle_*` method of the event. End the stream on [`Error::Peer`], on [`server::Action::Close`], and
//!    when [`wants_new_stream`](client::Client::wants_new_stream) returns `true`.
//! 5. After a client's stream has ended, for whatever reason, call `handle_close`, wait as [`client::Backoff`] says,
//!    and meanwhile continue with step 1: a TTL may expire without a stream.
//!
//! ```
//! use xds_machine::client::{Action, Client, Config};
//! use xds_machine::message::{Node, delta};
//! use xds_machine::{Delta, Error, Instant, TypeUrl, type_url};
//!
//! /// What a transport is to this driver.
//! trait Transport {
//!     fn send(&mut self, request: delta::Request);
//!     /// Waits until the time given at most.
//!     fn receive(&mut self, until: Option<Instant>) -> Event;
//! }
//!
//! enum Event {
//!     Response(Instant, delta::Response),
//!     Timeout(Instant),
//!     Closed(Instant),
//! }
//!
//! /// One stream. The client outlives it: call this again with the next one.
//! fn run(client: &mut Client<Delta>, mut now: Instant, transport: &mut impl Transport) -> Result<(), Error> {
//!     client.handle_open();
//!     let ended = converse(client, &mut now, transport);
//!     client.handle_close(); // whatever ended the stream
//!     ended
//! }
//!
//! fn converse(client: &mut Client<Delta>, now: &mut Instant, transport: &mut impl Transport) -> Result<(), Error> {
//!     loop {
//!         while let Some(action) = client.poll_action() {
//!             if let Action::Apply(update) = action {
//!                 client.handle_verdict(*now, update.accept())?;
//!             }
//!         }
//!         while let Some(transmit) = client.poll_transmit() {
//!             transport.send(transmit.request);
//!             client.handle_sent(*now, transmit.sent);
//!         }
//!         match transport.receive(client.poll_timeout()) {
//!             Event::Response(at, response) => {
//!                 *now = at;
//!                 client.handle_response(at, response)?;
//!             }
//!             Event::Timeout(at) => {
//!                 *now = at;
//!                 client.handle_timeout(at);
//!             }
//!             Event::Closed(at) => {
//!                 *now = at;
//!                 return Ok(());
//!             }
//!         }
//!     }
//! }
//!
//! # struct Nothing;
//! # impl Transport for Nothing {
//! #     fn send(&mut self, request: delta::Request) { assert_eq!(request.subscribe, [xds_machine::ResourceName::from("*")]); }
//! #     fn receive(&mut self, _: Option<Instant>) -> Event { Event::Closed(Instant::EPOCH) }
//! # }
//! let mut client = Client::<Delta>::new(Config::new(Node::new("me")));
//! client.resources_mut(&TypeUrl::from(type_url::ENDPOINT)).subscribe(["*"])?;
//! run(&mut client, Instant::EPOCH, &mut Nothing)?;
//! # Ok::<(), Error>(())
//! ```
//!
//! Ready-made drivers are crates of their own: `xds-machine-tonic` over gRPC, and `xds-machine-driver` below it, over
//! any stream and sink of messages. The programs `blocking` and `quickstart` in `examples/` are drivers by themselves.
//!
//! # The manual
//!
//! The [`manual`] has a guide to xDS in six chapters, each with a program that runs; the guide begins with a complete
//! [driver](manual::_01_driver). The manual also has the [design rules](manual::rules), the [life of a
//! name](manual::names) and the [cost model](manual::cost).

#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

extern crate alloc;

pub mod client;
pub mod csds;
mod ensure;
mod error;
mod fetch;
mod fields;
pub mod file;
mod globs;
mod interest;
pub mod load;
pub mod manual;
pub mod message;
pub mod model;
mod name;
pub mod poll;
pub mod proto;
mod queue;
pub mod resource_type;
mod revision;
pub mod server;
pub mod servers;
pub mod service;
mod text;
mod time;
pub mod type_url;
mod url;
mod variant;
pub mod watch;
mod wire;
pub mod xdstp;

pub use error::{Code, Error, Misuse, PeerMisbehaved, Status, UnknownCode};
pub use interest::Interest;
pub use name::{Nonce, ResourceName, TypeUrl, Version, WILDCARD};
pub use time::Instant;
pub use variant::{Delta, Sotw};

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
