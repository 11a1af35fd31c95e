//! Several servers: fallback, failover and authorities, built from one [`Client`] for each server.
//!
//! [`Servers`] is a layer above the client, not another client: each server's requests, versions and subscriptions are
//! those of its own [`Client`], as if there were no other. The layer decides which servers have a stream, subscribes
//! each client to the names of its server, and forwards the clients' actions. A version of one server is therefore
//! never sent to another.
//!
//! The application has one set of resources, regardless of their server. These rules keep the set consistent:
//!
//! - An update of one server replaces a resource of another; switching servers alone replaces and removes nothing. The
//!   other client is informed that its resource is replaced ([`LayerMut::adopt`](client::LayerMut::adopt)); that client
//!   no longer claims the resource, and requests it again.
//! - A removal by a server, by name or by absence, applies to the resource whichever server sent the resource.
//! - One update of a type is in flight at a time for the servers that are asked for the same names, as a fallback and
//!   its primary are. The next server's update waits, so that no late update overwrites a newer one, and removals are
//!   derived from the application's actual resources. Servers of different authorities do not wait for each other.
//! - A verdict goes to the client that the update came from, even if its server is no longer used.
//!
//! The rules also hold for resources that are subscribed to by an alias (VHDS): the other clients learn the target of
//! the alias.
//!
//! A resource whose name has an authority other than those of its server's lists (a wildcard may bring one) belongs to
//! the names without authority.
//!
//! [`Watches`](crate::watch::Watches) work above this layer as above a client: see "Several servers" in
//! [`watch`](crate::watch), and the [manual](crate::manual::_05_servers) for a program with both.
//!
//! # The loop
//!
//! As with one client, with one addition: execute the commands of [`poll_connect`](Servers::poll_connect), at least at
//! the time of [`poll_timeout`](Servers::poll_timeout) and after every other call.
//!
//! ```
//! use xds_machine::client;
//! use xds_machine::message::Node;
//! use xds_machine::servers::{Action, Config, Connect, Policy, ServerId, Servers};
//! use xds_machine::{Delta, Instant, TypeUrl, type_url};
//!
//! let now = Instant::EPOCH;
//! let client = client::Config::new(Node::new("me"));
//! let mut servers = Servers::<Delta>::new(Config::new(Policy::Grpc, [client.clone(), client]))?;
//! servers.resources_mut(&TypeUrl::from(type_url::ENDPOINT)).subscribe(["a"])?;
//!
//! // The first server is tried, and can't be reached.
//! let Some(Connect::Open(primary)) = servers.poll_connect(now) else { panic!("a stream is needed") };
//! assert_eq!(primary.server(), ServerId(0));
//! let random = 4; // of your random number generator
//! servers.handle_close(now, primary, random);
//!
//! // So the second is asked.
//! assert_eq!(servers.poll_action(), Some(Action::Switched { authority: None, to: ServerId(1) }));
//! let Some(Connect::Open(fallback)) = servers.poll_connect(now) else { panic!("a stream is needed") };
//! servers.handle_open(fallback);
//! let first = servers.poll_transmit(fallback).expect("it is asked");
//! assert_eq!(first.request.subscribe.len(), 1);
//!
//! // The first is tried again in due time.
//! let later = servers.poll_timeout().expect("the end of the backoff");
//! assert!(matches!(servers.poll_connect(later), Some(Connect::Open(again)) if again.server() == ServerId(0)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod action;
pub(crate) mod authority;
mod choice;
mod config;
mod group;
mod invariants;
mod link;
mod resources;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

pub use self::action::{Action, Connect, Stream};
pub use self::config::{Config, ConfigError, Policy, ServerId};
use self::group::Group;
use self::link::{Link, Out, State};
pub use self::resources::ResourcesMut;
use crate::client::{self, Client, Sent, Transmit, Update, Variant, Verdict};
use crate::error::{Error, Misuse};
use crate::model::{Label, Relabel};
use crate::name::{ResourceName, TypeUrl};
use crate::queue::Queue;
use crate::time::Instant;

/// The number of actions that may wait to be polled.
const WAITING_ACTIONS: usize = 1024;

/// A client of several servers: see the [module](self).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Servers<V: Variant> {
    policy: Policy,
    /// Indexed by the server's number.
    links: Vec<Link<V>>,
    /// The first group is that of the names without authority.
    groups: Vec<Group>,
    authorities: BTreeMap<Arc<str>, usize>,
    actions: Queue<Action>,
    /// Whether the clients' time-outs stand still because too many actions waited: they go on with the next call that
    /// has the time.
    goes_on: bool,
}

impl<V: Variant> Servers<V> {
    /// Makes a client without subscriptions.
    ///
    /// # Errors
    ///
    /// If the configuration is invalid.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let lists = config.lists()?;
        let related = |server: usize| {
            let mut related: BTreeSet<usize> = BTreeSet::new();
            lists.iter().filter(|(_, list)| list.contains(&server)).for_each(|(_, list)| related.extend(list));
            related.remove(&server);
            related.into_iter().collect()
        };
        let client = |(server, client): (usize, &client::Config)| {
            let client = Client::new(client.clone().with_id(server as u64));
            Link::new(client, config.backoff.clone(), related(server))
        };
        let links = config.servers.iter().enumerate().map(client).collect();
        let number = |(at, (authority, _)): (usize, &(Option<Arc<str>>, _))| Some((authority.clone()?, at));
        let authorities = lists.iter().enumerate().filter_map(number).collect();
        let groups = lists.into_iter().map(|(authority, servers)| Group::new(authority, servers)).collect();
        Ok(Self { policy: config.policy, links, groups, authorities, actions: Queue::new(), goes_on: false })
    }

    // Inputs.

    /// Records that a stream is up. An attempt that is over is ignored.
    pub fn handle_open(&mut self, stream: Stream) {
        if let Some(link) = self.links.get_mut(stream.server.0).filter(|link| link.is(stream)) {
            if link.state == State::Connecting {
                link.state = State::Up { answered: false };
                link.client.handle_open();
            }
        }
    }

    /// Handles a response. A response on a stream that is over is ignored, and one of a server that is no longer used
    /// is only ACKed or NACKed. A server that responds works: its backoff is reset, and less preferred servers are no
    /// longer used.
    ///
    /// # Errors
    ///
    /// As for [`Client::handle_response`]; nothing has changed then.
    pub fn handle_response(&mut self, now: Instant, stream: Stream, response: V::Response) -> Result<(), Error> {
        self.check_actions()?;
        let server = stream.server.0;
        if !self.links.get(server).is_some_and(|link| link.is_up(stream)) {
            return Ok(());
        }
        // Also for a server that is no longer used: its client is subscribed to nothing then, but must still ACK or
        // NACK, because the server may be used again before the driver has closed the stream.
        let link = &mut self.links[server];
        link.client.handle_response(now, response)?;
        link.state = State::Up { answered: true };
        link.failing = false;
        link.backoff.reset();
        self.answered(server);
        self.drain(server);
        self.go_on(now);
        Ok(())
    }

    /// Records that the transport took a request and all before it: see [`Client::handle_sent`].
    pub fn handle_sent(&mut self, now: Instant, stream: Stream, sent: Sent) {
        if let Some(link) = self.links.get_mut(stream.server.0).filter(|link| link.is_up(stream)) {
            link.client.handle_sent(now, sent);
        }
    }

    /// Handles the application's verdict on an update: see [`Client::handle_verdict`].
    ///
    /// # Errors
    ///
    /// As for [`Client::handle_verdict`]; nothing has changed then.
    pub fn handle_verdict(&mut self, now: Instant, verdict: Verdict) -> Result<(), Misuse> {
        self.check_actions()?;
        let type_url = verdict.type_url().clone();
        let server = usize::try_from(verdict.client_id()).unwrap_or(usize::MAX);
        let rejected: BTreeSet<_> =
            verdict.rejections().iter().filter_map(|rejection| rejection.name.clone()).collect();
        let unknown = || Misuse::UnknownUpdate { type_url: type_url.clone() };
        let link = self.links.get_mut(server).ok_or_else(unknown)?;
        let of_type = link.out.iter().position(|out| *out.update.type_url() == type_url).ok_or_else(unknown)?;
        link.client.handle_verdict(now, verdict)?;
        let Out { update, .. } = link.out.remove(of_type);
        self.inform_others(server, &update, &rejected);
        self.drain(server);
        self.release(now, server, &type_url);
        self.go_on(now);
        Ok(())
    }

    /// Records that a stream ended or could not be opened. The next one waits for the server's backoff; `random` is any
    /// number, evenly distributed (see [`Backoff::next_delay`](client::Backoff::next_delay)).
    pub fn handle_close(&mut self, now: Instant, stream: Stream, random: u64) {
        let server = stream.server.0;
        let Some(link) = self.links.get_mut(server).filter(|link| link.is(stream)) else { return };
        let answered = link.state == State::Up { answered: true };
        link.client.handle_close();
        link.state = State::Down(now + link.backoff.next_delay(random));
        link.failing |= !answered;
        self.ended(server, answered);
        self.clear_failures();
        self.go_on(now);
    }

    /// Handles the time of [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Instant) {
        for server in 0..self.links.len() {
            self.links[server].client.handle_timeout(now);
            self.drain(server);
        }
        self.go_on(now);
    }

    // Outputs.

    /// Returns the next stream to open or to close.
    pub fn poll_connect(&mut self, now: Instant) -> Option<Connect> {
        for server in 0..self.links.len() {
            let used = self.is_used(server);
            let link = &mut self.links[server];
            match link.state {
                State::Down(until) if used && until <= now => {
                    link.connect();
                    return Some(Connect::Open(link.attempt(server)));
                }
                // A held resource can't be asked about on this stream; the first request of the next one claims it.
                State::Up { answered: true } if used && link.client.wants_new_stream() => {
                    link.client.handle_close();
                    link.state = State::Down(now);
                    return Some(Connect::Close(link.attempt(server)));
                }
                State::Connecting | State::Up { .. } if !used => {
                    link.client.handle_close();
                    link.state = State::Down(now);
                    return Some(Connect::Close(link.attempt(server)));
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the next action for the application.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop()
    }

    /// Returns the next request on a stream: see [`Client::poll_transmit`].
    pub fn poll_transmit(&mut self, stream: Stream) -> Option<Transmit<V::Request>> {
        let used = self.is_used(stream.server.0);
        let link = self.links.get_mut(stream.server.0).filter(|link| used && link.is_up(stream))?;
        link.client.poll_transmit()
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) and [`poll_connect`](Self::poll_connect).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = |(server, link): (usize, &Link<V>)| {
            link.client.poll_timeout().into_iter().chain(self.next_attempt(ServerId(server))).min()
        };
        let goes_on = (self.goes_on && self.check_actions().is_ok()).then_some(Instant::EPOCH);
        self.links.iter().enumerate().filter_map(next).chain(goes_on).min()
    }

    // Queries.

    /// Returns whether [`poll_transmit`](Self::poll_transmit) would return a request.
    pub fn wants_transmit(&self, stream: Stream) -> bool {
        let up = self.links.get(stream.server.0).filter(|link| link.is_up(stream));
        up.is_some_and(|link| link.client.wants_transmit()) && self.is_used(stream.server.0)
    }

    /// Returns whether the stream may be read: see [`Client::wants_response`].
    pub fn wants_response(&self, stream: Stream) -> bool {
        let up = self.links.get(stream.server.0).filter(|link| link.is_up(stream));
        up.is_some_and(|link| link.client.wants_response()) && self.check_actions().is_ok()
    }

    /// Returns when [`poll_connect`](Self::poll_connect) opens the next stream to a server. Returns `None` if the
    /// server has a stream, or is not used now.
    pub fn next_attempt(&self, server: ServerId) -> Option<Instant> {
        match self.links.get(server.0)?.state {
            State::Down(until) if self.is_used(server.0) => Some(until),
            _ => None,
        }
    }

    // Private.

    /// Returns whether a server has, or should have, a stream.
    fn is_used(&self, server: usize) -> bool {
        self.groups.iter().any(|group| group.place(self.policy, server).is_some())
    }

    /// Forwards the actions of a client.
    fn drain(&mut self, server: usize) {
        while let Some(action) = self.links[server].client.poll_action() {
            match &action {
                client::Action::Apply(update) => {
                    self.give(server, update.clone());
                }
                client::Action::Expired { type_url, names } => {
                    self.beside(server, |client| client.layer_mut(type_url).forget(names));
                    (0..self.groups.len()).for_each(|at| self.review(at));
                }
                client::Action::DoesNotExist { type_url, names } => {
                    self.beside(server, |client| client.layer_mut(type_url).mark_does_not_exist(names));
                }
                _ => {}
            }
            self.actions.push(Action::Client { server: ServerId(server), action });
        }
    }

    /// Informs the other clients about the outcome of an update: the application no longer has the resources that they
    /// sent.
    fn inform_others(&mut self, server: usize, update: &Update, rejected: &BTreeSet<ResourceName>) {
        let type_url = update.type_url();
        let layer = self.links[server].client.layer(type_url);
        let missing = update.removed().iter().filter(|&name| layer.does_not_exist(name));
        let missing: Vec<ResourceName> = missing.cloned().collect();
        self.beside(server, |client| {
            let mut layer = client.layer_mut(type_url);
            let accepted = update.resources().filter(|resource| !rejected.contains(resource.name()));
            let accepted = accepted.map(|resource| (resource.name().clone(), resource.aliases(), None));
            layer.adopt_with_aliases(accepted);
            let removed = update.removed().iter().filter(|name| !rejected.contains(*name));
            layer.forget(removed);
            layer.mark_does_not_exist(&missing);
            if update.drops_rejected() {
                let dropped =
                    update.resources().map(|resource| resource.name()).filter(|name| rejected.contains(*name));
                layer.forget(dropped);
            }
        });
    }

    /// Lets the updates that waited for this verdict continue, one after the other.
    fn release(&mut self, now: Instant, server: usize, type_url: &TypeUrl) {
        for at in 0..=self.links[server].related.len() {
            let other = self.links[server].related.get(at).copied().unwrap_or(server);
            if !self.must_wait(other, type_url) {
                self.links[other].client.layer_mut(type_url).unblock_updates(now);
                self.drain(other);
            }
        }
    }

    /// Lets the clients' time-outs stand still while too many actions wait.
    fn go_on(&mut self, now: Instant) {
        self.goes_on = self.check_actions().is_err();
        self.links.iter_mut().for_each(|link| link.client.set_unread(now, self.goes_on));
    }

    /// Returns whether updates of a server have to wait: its own is judged, or that of a server which was asked for the
    /// same names since the update went out.
    fn must_wait(&self, server: usize, type_url: &TypeUrl) -> bool {
        let mut related = self.links[server].related.iter();
        self.links[server].judges(type_url) || related.any(|&other| self.links[other].blocks(server, type_url))
    }

    /// Returns whether two servers are asked for the same names of a type.
    fn contend(&self, a: usize, b: usize, type_url: &TypeUrl) -> bool {
        let both = |group: &Group| group.members().contains(&a) && group.members().contains(&b);
        self.groups.iter().any(|group| both(group) && group.subscribed.contains_key(type_url))
    }

    /// Notes an update that the application is given, and blocks those of the servers that are asked for the same names.
    fn give(&mut self, server: usize, update: Update) {
        let type_url = update.type_url().clone();
        let mut blocks = self.links[server].related.clone();
        blocks.retain(|&other| self.contend(server, other, &type_url));
        for &other in &blocks {
            self.links[other].client.layer_mut(&type_url).block_updates();
        }
        self.links[server].out.push(Out { update, blocks });
    }

    /// Blocks the updates of a newly subscribed client while another client of the list waits for a verdict.
    fn block_while_judged(&mut self, server: usize) {
        for at in 0..self.links[server].related.len() {
            let other = self.links[server].related[at];
            for out in 0..self.links[other].out.len() {
                let type_url = self.links[other].out[out].update.type_url().clone();
                if self.contend(server, other, &type_url) {
                    self.links[other].out[out].blocks.push(server);
                    self.links[server].client.layer_mut(&type_url).block_updates();
                }
            }
        }
    }

    fn beside(&mut self, server: usize, mut each: impl FnMut(&mut Client<V>)) {
        for at in 0..self.links[server].related.len() {
            let other = self.links[server].related[at];
            each(&mut self.links[other].client);
        }
    }

    /// Falls back if a resource may be unknown now that was known before.
    fn review(&mut self, at: usize) {
        if !self.groups[at].subscribed.is_empty() {
            self.fall_back(at);
        }
    }

    fn check_actions(&self) -> Result<(), Misuse> {
        let limit = WAITING_ACTIONS;
        if self.actions.len() < limit { Ok(()) } else { Err(Misuse::ActionsWaiting { limit }) }
    }
}

impl<V: Variant> Relabel for Servers<V> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.links.iter_mut().for_each(|link| link.relabel(by));
        self.actions.iter_mut().for_each(|action| action.relabel(by));
    }
}
