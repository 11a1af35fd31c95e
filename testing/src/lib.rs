//! Tests for users of [`xds_machine`]: for the author of a [`Source`], of a driver, or of an application that is to be
//! model-checked. Also the harness that verifies `xds-machine` itself.
//!
//! All tests run the real machines, and need no network and no runtime.
//!
//! # Testing a source
//!
//! [`source::check_source`] changes a store at random, and a [`Cache`] in the same way. Clients of both variants are
//! served from each, with limited responses and over streams that break, and must end with the same resources. A
//! [`source::Probe`] checks the contract of [`Source`] at each call, and names the violated rule.
//!
//! ```
//! use xds_machine::server::{Entry, Page, Resource, Revision, Source, State};
//! use xds_machine::{ResourceName, TypeUrl, Version, type_url};
//! use xds_machine_testing::source::{Plan, Store, check_source};
//!
//! /// Clusters, in the order of their last change.
//! #[derive(Default)]
//! struct Shelf { revision: u64, there: Vec<(u64, Resource)>, gone: Vec<(u64, ResourceName)> }
//!
//! impl Source for Shelf {
//!     fn epoch(&self) -> u64 { 1 }
//!     fn revision(&self) -> Revision { Revision(self.revision) }
//!     fn type_revision(&self, _: &TypeUrl) -> Revision { self.revision() }
//!     fn is_known(&self, of: &TypeUrl) -> bool { of.as_str() == type_url::CLUSTER }
//!     fn version(&self, _: &TypeUrl) -> Version { self.revision.to_string().into() }
//!     fn get(&self, _: &TypeUrl, name: &ResourceName) -> Entry<'_> {
//!         let there = self.there.iter().find(|(_, resource)| resource.name() == name);
//!         let gone = self.gone.iter().find(|(_, gone)| gone == name).map_or(0, |(since, _)| *since);
//!         there.map_or(Entry::absent(Revision(gone)), |(at, resource)| Entry::present(resource, Revision(*at)))
//!     }
//!     fn changes(&self, _: &TypeUrl, since: Revision) -> impl Iterator<Item = Entry<'_>> {
//!         let after = self.there.iter().rev().filter(move |(at, _)| *at > since.0); // the latest first
//!         after.map(|(at, resource)| Entry::present(resource, Revision(*at)))
//!     }
//!     fn removals(&self, _: &TypeUrl, since: Revision) -> Option<impl Iterator<Item = (&ResourceName, Entry<'_>)>> {
//!         let after = self.gone.iter().rev().filter(move |(at, _)| *at > since.0);
//!         Some(after.map(|(at, name)| (name, Entry::absent(Revision(*at)))))
//!     }
//!     fn pages(&self, _: &TypeUrl) -> impl Iterator<Item = Page> {
//!         std::iter::once(Page::new(self.there.iter().map(|(_, resource)| resource.clone()).collect()))
//!     }
//! }
//!
//! impl Store for Shelf {
//!     fn put(&mut self, of: &TypeUrl, resource: Resource) {
//!         if self.get(of, resource.name()).state != State::Present(&resource) {
//!             self.revision += 1;
//!             self.there.retain(|(_, other)| other.name() != resource.name());
//!             self.gone.retain(|(_, name)| name != resource.name());
//!             self.there.push((self.revision, resource));
//!         }
//!     }
//!     fn remove(&mut self, of: &TypeUrl, name: &str) {
//!         if self.get(of, &name.into()).state != State::Absent {
//!             self.revision += 1;
//!             self.there.retain(|(_, resource)| resource.name() != name);
//!             self.gone.push((self.revision, name.into()));
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), xds_machine_testing::source::Failure> {
//! let clusters = Plan { types: vec![type_url::CLUSTER.into()], ..Plan::default() };
//! check_source(&clusters, Shelf::default)
//! # }
//! ```
//!
//! # Testing a driver
//!
//! [`driver::check_driver`] runs a driver of a client against a scripted server, over an in-memory transport that
//! blocks or is polled; [`driver::check_server_driver`] runs a driver of a server against scripted clients. A failure
//! names the violated rule: "on a new stream the client claims what it has", "an error of `handle_response` ends the
//! stream".
//!
//! ```
//! use xds_machine::client::{Action, Client, Config};
//! use xds_machine::message::Node;
//! use xds_machine::proto::delta;
//! use xds_machine::{Delta, Instant};
//! use xds_machine_testing::driver::{Network, Pipe, Received, check_driver};
//!
//! const NOW: Instant = Instant::EPOCH; // a driver for tests: no clock
//!
//! fn drive(network: Network) {
//!     let mut client = Client::<Delta>::new(Config::new(Node::new("n")));
//!     client.resources_mut(&network.type_url()).subscribe(network.names()).expect("good names");
//!     while let Some(pipe) = network.connect() {
//!         client.handle_open();
//!         run(&mut client, &pipe, &network);
//!         client.handle_close();
//!         pipe.close();
//!     }
//! }
//!
//! /// One stream, until it ends.
//! fn run(client: &mut Client<Delta>, pipe: &Pipe, network: &Network) {
//!     loop {
//!         while let Some(action) = client.poll_action() {
//!             if let Action::Apply(update) = action {
//!                 client.handle_verdict(NOW, network.apply(update)).expect("the update is out");
//!             }
//!         }
//!         while let Some(transmit) = client.poll_transmit() {
//!             pipe.send(delta::encode_request(&transmit.request));
//!             client.handle_sent(NOW, transmit.sent);
//!         }
//!         let Received::Message(bytes) = pipe.recv(None) else { return };
//!         let Ok(response) = delta::decode_response(bytes) else { return };
//!         if client.handle_response(NOW, response).is_err() {
//!             return;
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), xds_machine_testing::driver::Failure> {
//! check_driver::<Delta>(drive)
//! # }
//! ```
//!
//! # Model-checking an application
//!
//! A machine is a value with equality and a hash, so it can be part of the state of a model. [`duo::Duo`] is a client,
//! a server and the wires between them; the caller adds the application. [`search::explore`] takes all steps in every
//! order, and returns a shortest trace to a fault; [`canonical`](xds_machine::model::canonical) makes states equal that
//! differ only in counters.
//!
//! ```
//! use std::collections::BTreeMap;
//! use xds_machine::client::{Action, Config};
//! use xds_machine::message::Node;
//! use xds_machine::model::{Label, Relabel, canonical};
//! use xds_machine::server::{self, Cache, Resource};
//! use xds_machine::{Delta, ResourceName, TypeUrl, type_url};
//! use xds_machine_testing::duo::{self, Duo};
//! use xds_machine_testing::search::{Model, explore};
//!
//! #[derive(Clone, Hash)]
//! struct Proxy { duo: Duo<Delta>, store: Cache, table: BTreeMap<ResourceName, u8>, puts: u8, cuts: u8 }
//!
//! #[derive(Clone, Copy, Debug)]
//! enum Step { Protocol(duo::Step), Put(&'static str), Cut }
//!
//! fn clusters() -> TypeUrl { type_url::CLUSTER.into() }
//!
//! impl Model for Proxy {
//!     type Step = Step;
//!     fn steps(&self, steps: &mut Vec<Step>) {
//!         let own = self.duo.steps(&self.store).filter(|step| *step != duo::Step::Cut);
//!         steps.extend(own.map(Step::Protocol));
//!         steps.extend(["a", "b"].map(Step::Put).into_iter().filter(|_| self.puts > 0));
//!         steps.extend((self.cuts > 0).then_some(Step::Cut));
//!     }
//!     fn is_own(step: Step) -> bool { matches!(step, Step::Protocol(_)) }
//!     fn take(&mut self, step: Step) {
//!         match step {
//!             Step::Protocol(step) => self.duo.take(step, &self.store),
//!             Step::Cut => { self.cuts -= 1; self.duo.take(duo::Step::Cut, &self.store) }
//!             Step::Put(name) => {
//!                 self.puts -= 1;
//!                 self.store.insert(&clusters(), Resource::new(name, vec![self.puts]));
//!             }
//!         }
//!         while let Some(action) = self.duo.client.poll_action() {
//!             let Action::Apply(update) = action else { continue };
//!             self.table.extend(update.resources().map(|cluster| (cluster.name().clone(), cluster.body()[0])));
//!             self.duo.client.handle_verdict(self.duo.now, update.accept()).expect("the update is out");
//!         }
//!     }
//!     fn check_settled(&self) {
//!         for cluster in self.store.resources(&clusters()) {
//!             assert_eq!(self.table.get(cluster.name()), Some(&cluster.body()[0]), "{}", cluster.name());
//!         }
//!     }
//!     fn canonicalize(&mut self) {
//!         canonical(self, self.duo.now);
//!         self.duo.renumbered();
//!     }
//! }
//!
//! impl Relabel for Proxy {
//!     fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
//!         self.duo.relabel(by);
//!         self.store.relabel(by);
//!     }
//! }
//!
//! let mut duo = Duo::new(Config::new(Node::new("proxy")), server::Config::ads());
//! duo.client.resources_mut(&clusters()).subscribe(["*"]).expect("a good name");
//! let report = explore(Proxy { duo, store: Cache::new(1), table: BTreeMap::new(), puts: 2, cuts: 1 }, 100_000);
//! assert!(report.fault.is_none(), "{:?}", report.fault);
//! assert!(report.complete && report.states > 500, "{report:?}");
//! ```
//!
//! # The harness of the crate
//!
//! The other modules verify `xds-machine`: [`world`] (clients, servers, wires, applications, a store, and the
//! invariants), [`shapes`] (those that the exhaustive check explores), [`several`] (a client of several servers),
//! [`watching`] (watchers of a client), [`checker`] (search, walks and shrinking in a [`world::World`]), [`letter`]
//! (peers that follow the letter of the specification), [`hostile`] (peers that violate the specification), [`input`]
//! (every field wrong in every way), [`script`] (stories in plain text), [`replay`] (recordings of real clients) and
//! [`tables`] (tables of rules). They may change with each release of `xds-machine`.
//!
//! [`Cache`]: xds_machine::server::Cache
//! [`Source`]: xds_machine::server::Source

pub mod checker;
pub mod driver;
pub mod duo;
pub mod hostile;
pub mod input;
pub mod letter;
pub mod loads;
pub mod polling;
pub mod random;
pub mod replay;
pub mod script;
pub mod search;
pub mod several;
pub mod shapes;
pub mod shrink;
pub mod source;
pub mod tables;
pub mod variant;
pub mod watching;
pub mod world;
