//! Watching: a watcher names a resource and receives the events of that resource.
//!
//! A client machine has one application, whereas a program has many parts that subscribe to resources, some of them the
//! same. [`Watches`] mediates for one type: it subscribes for the first watcher of a name and unsubscribes after the
//! last, decodes each resource once (with the caller's function), keeps the resource for later watchers, and sends each
//! watcher the changes in the terms of gRFC A88: the resource changed, or has an ambient error.
//!
//! ```
//! # use xds_machine::message::{Node, sotw};
//! use xds_machine::client::{Client, Config};
//! use xds_machine::watch::{News, Watches};
//! use xds_machine::message::Any;
//! use xds_machine::{Instant, Sotw, TypeUrl, type_url};
//!
//! let now = Instant::EPOCH;
//! let endpoints = TypeUrl::from(type_url::ENDPOINT);
//! let mut client = Client::<Sotw>::new(Config::new(Node::new("example")));
//! let mut watches = Watches::<Vec<u8>>::new(endpoints.clone());
//! let (one, two) = (watches.watch(&mut client, "a")?, watches.watch(&mut client, "a")?);
//!
//! client.handle_open();
//! let first = client.poll_transmit().expect("one request for both");
//! # let any = Any { type_url: endpoints.clone(), value: (&b"\x0a\x01a"[..]).into() };
//! # let response = sotw::Response { version: "1".into(), resources: vec![sotw::Item::Bare(any)],
//! #     type_url: endpoints.clone(), nonce: "n1".into(), control_plane: String::new(), errors: vec![] };
//! client.handle_response(now, response)?;
//!
//! // What a driver does after each input:
//! while let Some(action) = client.poll_action() {
//!     let other = watches.handle_action(action, |resource| Ok::<_, String>(resource.body().to_vec()));
//!     assert_eq!(other, None, "an action of another type is given back");
//! }
//! while let Some(verdict) = watches.poll_verdict() {
//!     client.handle_verdict(now, verdict)?;
//! }
//! let told: Vec<_> = std::iter::from_fn(|| watches.poll_event()).map(|event| (event.watch, event.news)).collect();
//! let news = News::Changed(Ok(b"\x0a\x01a".to_vec()));
//! assert_eq!(told, [(one, news.clone()), (two, news)]);
//!
//! watches.unwatch(&mut client, one);
//! assert!(client.wants_stream(), "somebody watches");
//! watches.unwatch(&mut client, two);
//! assert!(!client.wants_stream());
//! # Ok::<(), xds_machine::Error>(())
//! ```

//! # Aliases
//!
//! A watched name may be an alias (delta; xds_protocol.rst, "Resource names"). Its watcher receives the events of the
//! target under the watched name: content (which is decoded once), errors and removal. When the alias comes to stand
//! for another resource, the watcher receives the new target's content; if the new target is rejected, the former
//! content stays as long as the former target does. The wildcard and collections do not cover aliases: their watchers
//! receive each resource under its own name.
//!
//! # Several servers
//!
//! Over [`Servers`], pass each action to [`Watches::handle_servers_action`] for every watched type. That method also
//! maps unreachable servers to the watchers concerned.
//!
//! ```
//! use xds_machine::client;
//! use xds_machine::message::Node;
//! use xds_machine::servers::{Config, Connect, Policy, ServerId, Servers};
//! use xds_machine::watch::{News, Watches};
//! use xds_machine::{Delta, Instant, type_url};
//!
//! let now = Instant::EPOCH;
//! let decode = |_: ServerId, resource: client::Resource<'_>| Ok::<_, String>(resource.body().to_vec());
//! let config = Config::new(Policy::Grpc, [client::Config::new(Node::new("me"))]);
//! let mut servers = Servers::<Delta>::new(config)?;
//! let mut listeners = Watches::<Vec<u8>>::new(type_url::LISTENER);
//! let mut clusters = Watches::<Vec<u8>>::new(type_url::CLUSTER);
//! clusters.watch(&mut servers, "c")?;
//! let Some(Connect::Open(stream)) = servers.poll_connect(now) else { panic!("a stream is needed") };
//! servers.handle_close(now, stream, 4); // it can't be reached
//!
//! // What a driver does after each input:
//! while let Some(action) = servers.poll_action() {
//!     let other = listeners.handle_servers_action(action, decode);
//!     let other = other.and_then(|action| clusters.handle_servers_action(action, decode));
//!     // What is left is of no type that is watched, or is for a log.
//!     other.into_iter().for_each(|action| println!("{action:?}"));
//! }
//! for watches in [&mut listeners, &mut clusters] {
//!     while let Some(verdict) = watches.poll_verdict() {
//!         servers.handle_verdict(now, verdict)?;
//!     }
//! }
//! let event = clusters.poll_event().expect("who waits is told");
//! assert!(matches!(event.news, News::Changed(Err(_))));
//!
//! // What there is to see of it all, for a dump: what each server's client knows, and what is watched.
//! let known: Vec<_> = servers.states().map(|(server, _, name, state)| (server, name.as_str(), state.status)).collect();
//! assert_eq!(known, [(ServerId(0), "c", client::ResourceStatus::Requested)]);
//! let watched: Vec<_> = clusters.iter().map(|of| (of.name.as_str(), of.value, of.unreachable.is_some())).collect();
//! assert_eq!(watched, [("c", None, true)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aliases;
mod event;
mod known;
mod ledger;
mod sorted;
mod unreachable;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Display;

pub use self::event::{Event, News, WatchId, Watched};
use self::known::Change;
use self::ledger::Ledger;
use crate::client::{self, Action, Client, Effect, Rejection, Update, Verdict};
use crate::error::{Code, Misuse, Status};
use crate::model::{Label, Relabel};
use crate::name::{ResourceName, TypeUrl, WILDCARD};
use crate::servers::{self, ServerId, Servers};

/// The target of subscriptions: a [`Client`], or several [`Servers`].
pub trait Subscribe {
    /// Subscribes to a resource.
    ///
    /// # Errors
    ///
    /// [`Misuse::EmptyName`], and any other reason why the name can't be subscribed to.
    fn subscribe(&mut self, type_url: &TypeUrl, name: ResourceName) -> Result<(), Misuse>;

    /// Unsubscribes from a resource.
    fn unsubscribe(&mut self, type_url: &TypeUrl, name: &ResourceName);
}

impl<V: client::Variant> Subscribe for Client<V> {
    fn subscribe(&mut self, type_url: &TypeUrl, name: ResourceName) -> Result<(), Misuse> {
        self.resources_mut(type_url).subscribe([name])
    }

    fn unsubscribe(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        self.resources_mut(type_url).unsubscribe([name]);
    }
}

impl<V: client::Variant> Subscribe for Servers<V> {
    fn subscribe(&mut self, type_url: &TypeUrl, name: ResourceName) -> Result<(), Misuse> {
        self.resources_mut(type_url).subscribe([name])
    }

    fn unsubscribe(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        self.resources_mut(type_url).unsubscribe([name]);
    }
}

/// The watchers of one type. All subscriptions to the type must be made here.
///
/// `T` is the decoded form of a resource. Its equality decides whether a resource changed. Each watcher gets a clone,
/// so an `Arc` is a good choice.
///
/// Events are made from the current state when they are polled: a slow watcher receives the latest content, and not
/// each intermediate one. Memory therefore grows only with the watched resources.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Watches<T> {
    type_url: TypeUrl,
    ledger: Ledger<T>,
    /// If set, verdicts wait for the watchers.
    waits: bool,
    /// A verdict, and the watchers with unfinished events of its update.
    waiting: Option<(Verdict, BTreeSet<WatchId>)>,
    verdicts: VecDeque<Verdict>,
}

impl<T: Clone + PartialEq> Watches<T> {
    /// Makes the watches of one type, with no watcher yet.
    pub fn new(type_url: impl Into<TypeUrl>) -> Self {
        let (waiting, verdicts) = (None, VecDeque::new());
        Self { type_url: type_url.into(), ledger: Ledger::new(), waits: false, waiting, verdicts }
    }

    /// Delays each verdict until all watchers have finished their events ([`handle_done`](Self::handle_done)).
    /// Meanwhile the type's responses wait, and after enough of them the whole stream.
    #[must_use]
    pub fn with_back_pressure(self) -> Self {
        Self { waits: true, ..self }
    }

    // Watchers.

    /// Watches a resource by its name or an alias, or all resources of a collection or of [`WILDCARD`]. The state that
    /// is already known is reported at once.
    ///
    /// # Errors
    ///
    /// [`Misuse::EmptyName`], or with several servers [`Misuse::NoServer`]; then nothing is watched.
    pub fn watch(&mut self, client: &mut impl Subscribe, name: impl Into<ResourceName>) -> Result<WatchId, Misuse> {
        let name = name.into();
        if !self.ledger.is_watched(&name) {
            client.subscribe(&self.type_url, name.clone())?;
        }
        Ok(self.ledger.watch(name))
    }

    /// Removes a watcher. An unknown watcher is ignored.
    pub fn unwatch(&mut self, client: &mut impl Subscribe, watch: WatchId) {
        if let Some(name) = self.ledger.unwatch(watch) {
            client.unsubscribe(&self.type_url, &name);
        }
        self.release();
    }

    // Inputs.

    /// Handles an action of the client machine. Returns an action that concerns another type or no watcher.
    ///
    /// `decode` decodes a resource, or returns the reason to reject it. A resource that is no longer watched is not
    /// decoded.
    pub fn handle_action<E: Display>(
        &mut self,
        action: Action,
        decode: impl FnMut(client::Resource<'_>) -> Result<T, E>,
    ) -> Option<Action> {
        let ledger = &mut self.ledger;
        match action {
            Action::Apply(update) if *update.type_url() == self.type_url => self.apply(update, decode),
            Action::Errors { type_url, errors } if type_url == self.type_url => {
                for client::Failed { name, status, effect } in errors {
                    match effect {
                        Effect::Removes => ledger.remove_for(&name, status),
                        // Even for an alias with content, which is that of its target.
                        Effect::Fails if status.is(Code::NotFound) => ledger.change(&name, &Change::Gone(status)),
                        Effect::Ambient | Effect::Fails => ledger.change(&name, &Change::Error(status)),
                    }
                }
            }
            Action::DoesNotExist { type_url, names } if type_url == self.type_url => {
                for name in names {
                    let status = || Status::new(Code::NotFound, "the resource does not exist");
                    // Unless the reason was reported just before.
                    if ledger.error(name.as_str()).is_none_or(|error| !error.is(Code::NotFound)) {
                        ledger.change(&name, &Change::Gone(status()));
                    }
                }
            }
            Action::Expired { type_url, names } if type_url == self.type_url => {
                for name in names {
                    ledger.change(&name, &Change::Gone(Status::new(Code::NotFound, "the TTL of the resource ran out")));
                }
            }
            Action::Rejected { type_url, faults, .. } if type_url == self.type_url => {
                for Rejection { name, reason } in faults {
                    let status = Status::new(Code::InvalidArgument, reason);
                    name.into_iter().for_each(|name| ledger.change(&name, &Change::Error(status.clone())));
                }
            }
            Action::Synced { type_url, answers_wildcard } if type_url == self.type_url => {
                ledger.change(&WILDCARD.into(), &Change::Fine);
                if answers_wildcard {
                    ledger.synced();
                }
            }
            other => return Some(other),
        }
        self.release();
        None
    }

    /// Handles an action of several servers: an action of a client like [`handle_action`](Self::handle_action), and a
    /// report about reachability like [`handle_unreachable`](Self::handle_unreachable) and
    /// [`handle_reachable`](Self::handle_reachable), for the names of the authority. Returns an action that concerns
    /// another type, and every report about servers, because the watches of other types need these too.
    ///
    /// `decode` receives the server of the resource, because servers may be trusted to different degrees.
    pub fn handle_servers_action<E: Display>(
        &mut self,
        action: servers::Action,
        mut decode: impl FnMut(ServerId, client::Resource<'_>) -> Result<T, E>,
    ) -> Option<servers::Action> {
        use servers::Action::{Client, Reachable, Unreachable};
        match action {
            Client { server, action } => {
                let other = self.handle_action(action, |resource| decode(server, resource));
                return other.map(|action| Client { server, action });
            }
            Unreachable { ref authority, server } => {
                let status = Status::new(Code::Unavailable, format!("server {} can't be reached", server.0));
                self.set_unreachable(authority.clone(), Some(status));
            }
            Reachable { ref authority } => self.set_unreachable(authority.clone(), None),
            _ => {}
        }
        Some(action)
    }

    /// Records that a watcher has finished an event. Has an effect only with
    /// [`with_back_pressure`](Self::with_back_pressure).
    pub fn handle_done(&mut self, watch: WatchId) {
        self.ledger.done(watch);
        self.release();
    }

    /// Records that the server is unreachable: a connection failed, or a stream ended before any response, with
    /// whatever status (gRFC A57). A stream that ends after a response is no error.
    pub fn handle_unreachable(&mut self, status: Status) {
        self.ledger.set_unreachable(|unreachable| unreachable.set_all(Some(status)));
        self.release();
    }

    /// Records that the server responds again, and clears the status of
    /// [`handle_unreachable`](Self::handle_unreachable).
    pub fn handle_reachable(&mut self) {
        self.ledger.set_unreachable(|unreachable| unreachable.set_all(None));
        self.release();
    }

    // Outputs.

    /// Returns the next event of any watcher; watchers take turns.
    pub fn poll_event(&mut self) -> Option<Event<T>> {
        let event = self.ledger.next(self.waits);
        self.release();
        event
    }

    /// Returns the next event of one watcher.
    pub fn poll_watch(&mut self, watch: WatchId) -> Option<Event<T>> {
        let event = self.ledger.next_of(watch, self.waits);
        self.release();
        event
    }

    /// Returns the next watcher with pending events, for a program that polls each watcher by
    /// [`poll_watch`](Self::poll_watch): the watcher is to be woken. Each watcher is returned once for any number of
    /// events, and again after a further change. Do not mix with [`poll_event`](Self::poll_event), which passes over
    /// the watchers that were returned.
    pub fn poll_ready(&mut self) -> Option<WatchId> {
        self.ledger.next_ready()
    }

    /// Returns the next verdict, for [`Client::handle_verdict`].
    pub fn poll_verdict(&mut self) -> Option<Verdict> {
        self.verdicts.pop_front()
    }

    // Queries.

    /// Returns the type that is watched.
    pub fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    /// Returns the held content of a watched resource, by its name or by a watched alias.
    pub fn get(&self, name: impl Into<ResourceName>) -> Option<&T> {
        self.ledger.get(name.into().as_str())
    }

    /// Returns the error of a watched resource. The status of its servers is [separate](Self::unreachable).
    pub fn error(&self, name: impl Into<ResourceName>) -> Option<&Status> {
        self.ledger.error(name.into().as_str())
    }

    /// Returns why the servers of a name are unreachable; `None` if they are reachable as far as known.
    pub fn unreachable(&self, name: impl Into<ResourceName>) -> Option<&Status> {
        self.ledger.unreachable(name.into().as_str())
    }

    /// Returns everything that is watched: first the watched names in order, then the other resources that a wildcard
    /// or a collection brought, in order.
    pub fn iter(&self) -> impl Iterator<Item = Watched<'_, T>> {
        self.ledger.iter()
    }

    // Private.

    fn set_unreachable(&mut self, authority: Option<Arc<str>>, status: Option<Status>) {
        self.ledger.set_unreachable(|unreachable| unreachable.set(authority, status));
        self.release();
    }

    fn apply<E: Display>(&mut self, update: Update, mut decode: impl FnMut(client::Resource<'_>) -> Result<T, E>) {
        let drops = update.drops_rejected();
        let mut rejections = Vec::new();
        self.ledger.begin(update.removed());
        if !update.has_collection_error() {
            self.ledger.change(&WILDCARD.into(), &Change::Fine);
        }
        let aliases = self.aliases(&update);
        for resource in update.resources() {
            let (name, aliases) = (resource.name(), aliases.get(resource.name()).map_or(&[][..], Vec::as_slice));
            if aliases.is_empty() && !self.ledger.covers(name) {
                continue;
            }
            match decode(resource) {
                Ok(value) => self.ledger.put(name, aliases, value),
                Err(error) => {
                    let reason = error.to_string();
                    let status = Status::new(Code::InvalidArgument, reason.as_str());
                    let change = if drops { Change::Gone(status) } else { Change::Error(status) };
                    self.ledger.reject(name, aliases, &change);
                    rejections.push(Rejection::new(name.clone(), reason));
                }
            }
        }
        update.removed().iter().for_each(|name| self.ledger.remove(name, drops));
        if update.answers_wildcard() && !self.ledger.is_synced() {
            self.ledger.synced();
        }
        let verdict = update.reject(rejections);
        let busy = if self.waits { self.ledger.busy() } else { BTreeSet::new() };
        // The machine has one update in flight at a time; if another one came, the first verdict is not lost.
        let before = self.waiting.replace((verdict, busy));
        self.verdicts.extend(before.map(|(verdict, _)| verdict));
    }

    /// Returns the watched aliases of an update's resources, by resource. If two resources share an alias, the last one
    /// has it; a name that a resource has is not an alias.
    fn aliases(&mut self, update: &Update) -> BTreeMap<ResourceName, Vec<ResourceName>> {
        let mut owners = BTreeMap::new();
        for resource in update.resources().filter(|resource| !resource.aliases().is_empty()) {
            let watched = resource.aliases().iter().filter(|alias| self.ledger.is_watched(alias));
            let other = watched.filter(|alias| update.resource(*alias).is_none());
            owners.extend(other.map(|alias| (alias.clone(), resource.name().clone())));
        }
        let mut aliases: BTreeMap<ResourceName, Vec<ResourceName>> = BTreeMap::new();
        for (alias, owner) in owners {
            self.ledger.moves(&alias, Some(&owner));
            aliases.entry(owner).or_default().push(alias);
        }
        update.resources().for_each(|resource| self.ledger.moves(resource.name(), None));
        aliases
    }

    /// Releases the verdict once no watcher is busy with its update.
    fn release(&mut self) {
        let Some((_, busy)) = &mut self.waiting else { return };
        busy.retain(|&watch| self.ledger.is_busy(watch));
        if busy.is_empty() {
            self.verdicts.extend(self.waiting.take().map(|(verdict, _)| verdict));
        }
    }
}

impl<T> Relabel for Watches<T> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        let waiting = self.waiting.iter_mut().map(|(verdict, _)| verdict);
        waiting.chain(&mut self.verdicts).for_each(|verdict| verdict.relabel(by));
    }
}
