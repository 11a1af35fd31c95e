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
//! Reading down, the modules are words ([`ResourceName`], [`TypeUrl`], [`xdstp`], ..), messages ([`message`]), and machines
//! ([`client`], [`server`]). Above the client are two layers that use what is public of it: [`servers`], several servers,
//! and [`watch`], many watchers. Reading across, the two machines have the same parts. [`proto`] is the wire, and [`service`]
//! the paths of its methods.
//!
//! # The contract
//!
//! No I/O, no clock, no randomness, no async, no threads. Time is a value that is handed in ([`Instant`]), and so is
//! jitter. The same inputs give the same outputs, to the byte. Every public value is `Clone + Debug`; machines, messages,
//! actions and tokens are `Eq + Hash` besides, so that a machine can *be* a state of a model checker ([`model`]).
//!
//! No input of a peer panics, or leaves half a change: what can be answered is answered (with a NACK, say), what can't is
//! an [`Error`], and the machine equals what it was. Errors are split by culprit: [`Error::Peer`] ends the stream, with
//! the gRPC status that it names; [`Error::Caller`] is a bug of the caller. All that a peer can make grow has a limit in
//! the machine's configuration.
//!
//! # The loop
//!
//! Nothing is queued that could be derived: a message is made of the state at the moment when it is polled. So a driver
//! may call the methods in any order and at any time, and after whatever happened does what there is to do:
//!
//! 1. `poll_action` until there is none: give updates to the application, and its [`client::Verdict`] back, now or later.
//!    A verdict may bring further actions, so repeat until there is neither;
//! 2. if the transport has room, `poll_transmit`, and send; repeat; on a server, `poll_action` once more after it;
//! 3. wait for the first of: a message (a client reads only while [`wants_response`](client::Client::wants_response)
//!    says so), room in the transport, a verdict, a command of the application, a change of the store, `poll_timeout`;
//! 4. call the `handle_*` of what happened; end the stream on [`Error::Peer`], on [`server::Action::Close`], and when
//!    [`wants_new_stream`](client::Client::wants_new_stream) says so;
//! 5. after a client's stream has ended, call `handle_close` whatever the reason was, wait as [`client::Backoff`] says,
//!    and go on with 1 meanwhile: a TTL may run out without a stream.
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
//! The programs in `examples/` are such drivers over tonic, over threads, and over nothing.
//!
//! # The manual
//!
//! The [`manual`] has a guide to xDS in six chapters, each with a program that runs; it begins with
//! [a driver](manual::_01_driver) in full. It also has the [design rules](manual::rules), the
//! [life of a name](manual::names) and the [cost model](manual::cost).

#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

extern crate alloc;

pub mod client;
mod ensure;
mod error;
mod fields;
mod globs;
mod interest;
pub mod manual;
pub mod message;
pub mod model;
mod name;
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
