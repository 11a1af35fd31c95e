//! Several servers: fallback, failover and authorities, put together of one [`Client`] for each server.
//!
//! [`Servers`] is a layer above the client, not another one: each server's requests, versions and subscriptions are those
//! of its own [`Client`], as if it were alone. The layer decides which servers have a stream, tells each client what is
//! wanted of its server, and hands on what the clients say. So no version of one server is ever told to another.
//!
//! What the application has is one set of resources, wherever they came from. The rules that keep it whole:
//!
//! - An update of one server replaces what another sent, and nothing else does: switching makes nothing vanish. The other
//!   client is told that what it gave is replaced ([`LayerMut::adopt`](client::LayerMut::adopt)), claims it no more, and asks for it again.
//! - What a server says is gone, by name or by absence, is gone, whoever sent it.
//! - Of one type, one update is out at a time, also of different servers that stand in one list. What came from the next
//!   one waits; so nothing late overwrites what is newer, and removals are worked out of what the application really has.
//! - A verdict goes to the client that the update came from, though its server is not asked any more.
//!
//! All this holds of resources that are wanted by an alias (VHDS): the other clients learn what the alias stands for.
//!
//! A resource whose name has another authority than those of the list that its server stands in (a wildcard may bring
//! one) belongs to the names without authority.
//!
//! [`Watches`](crate::watch::Watches) stand above this as above a client: see "Several servers" in [`watch`](crate::watch),
//! and for a program with both the [manual](crate::manual::_05_servers).
//!
//! # The loop
//!
//! As with one client, and besides: do what [`poll_connect`](Servers::poll_connect) says, at least when
//! [`poll_timeout`](Servers::poll_timeout) says so and after every other call.
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
use self::link::{Link, State};
pub use self::resources::ResourcesMut;
use crate::client::{self, Client, Sent, Transmit, Update, Variant, Verdict};
use crate::error::{Error, Misuse};
use crate::model::{Label, Relabel};
use crate::name::{ResourceName, TypeUrl};
use crate::queue::Queue;
use crate::time::Instant;

/// How many actions may wait to be polled.
const WAITING_ACTIONS: usize = 1024;

/// One client of several servers: see the [module](self).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Servers<V: Variant> {
    policy: Policy,
    /// By their numbers.
    links: Vec<Link<V>>,
    /// The first is that of the names without authority.
    groups: Vec<Group>,
    authorities: BTreeMap<Arc<str>, usize>,
    actions: Queue<Action>,
}

impl<V: Variant> Servers<V> {
    /// A client that wants nothing yet.
    ///
    /// # Errors
    ///
    /// If the configuration makes no sense.
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
        Ok(Self { policy: config.policy, links, groups, authorities, actions: Queue::new() })
    }

    // What happened.

    /// Records that a stream is up. An attempt that is over is ignored.
    pub fn handle_open(&mut self, stream: Stream) {
        if let Some(link) = self.links.get_mut(stream.server.0).filter(|link| link.is(stream)) {
            if link.state == State::Connecting {
                link.state = State::Up { answered: false };
                link.client.handle_open();
            }
        }
    }

    /// A response came. Of a stream that is over it is ignored, and of a server that is asked no more it is answered and
    /// nothing else. A server that answers works: its backoff begins anew, and servers that are less preferred are asked no
    /// more.
    ///
    /// # Errors
    ///
    /// As [`Client::handle_response`]; nothing changed.
    pub fn handle_response(&mut self, now: Instant, stream: Stream, response: V::Response) -> Result<(), Error> {
        self.check_actions()?;
        let server = stream.server.0;
        if !self.links.get(server).is_some_and(|link| link.is_up(stream)) {
            return Ok(());
        }
        // Though it be asked no more: its client wants nothing then, and has to answer all the same, for the server may be
        // asked again before the driver has closed the stream.
        let link = &mut self.links[server];
        link.client.handle_response(now, response)?;
        link.state = State::Up { answered: true };
        link.failing = false;
        link.backoff.reset();
        self.answered(server);
        self.drain(server);
        Ok(())
    }

    /// The transport has taken a request, and all before it: see [`Client::handle_sent`].
    pub fn handle_sent(&mut self, now: Instant, stream: Stream, sent: Sent) {
        if let Some(link) = self.links.get_mut(stream.server.0).filter(|link| link.is_up(stream)) {
            link.client.handle_sent(now, sent);
        }
    }

    /// The application has judged an update: see [`Client::handle_verdict`].
    ///
    /// # Errors
    ///
    /// As [`Client::handle_verdict`]; nothing changed.
    pub fn handle_verdict(&mut self, now: Instant, verdict: Verdict) -> Result<(), Misuse> {
        self.check_actions()?;
        let type_url = verdict.type_url().clone();
        let server = usize::try_from(verdict.client_id()).unwrap_or(usize::MAX);
        let rejected: BTreeSet<_> =
            verdict.rejections().iter().filter_map(|rejection| rejection.name.clone()).collect();
        let unknown = || Misuse::UnknownUpdate { type_url: type_url.clone() };
        let link = self.links.get_mut(server).ok_or_else(unknown)?;
        let of_type = link.out.iter().position(|update| *update.type_url() == type_url).ok_or_else(unknown)?;
        link.client.handle_verdict(now, verdict)?;
        let update = link.out.remove(of_type);
        self.tell_the_others(server, &update, &rejected);
        self.drain(server);
        self.release(now, server, &type_url);
        Ok(())
    }

    /// A stream ended, or could not be opened. The next one waits as the server's backoff says; `random` is any number,
    /// evenly distributed (see [`Backoff::next_delay`](client::Backoff::next_delay)).
    pub fn handle_close(&mut self, now: Instant, stream: Stream, random: u64) {
        let server = stream.server.0;
        let Some(link) = self.links.get_mut(server).filter(|link| link.is(stream)) else { return };
        let answered = link.state == State::Up { answered: true };
        link.client.handle_close();
        link.state = State::Down(now + link.backoff.next_delay(random));
        link.failing |= !answered;
        self.ended(server, answered);
        self.forgive();
    }

    /// The time that [`poll_timeout`](Self::poll_timeout) gave has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        for server in 0..self.links.len() {
            if self.actions.len() < WAITING_ACTIONS {
                self.links[server].client.handle_timeout(now);
                self.drain(server);
            }
        }
    }

    // What to do.

    /// The next stream to open or to close.
    pub fn poll_connect(&mut self, now: Instant) -> Option<Connect> {
        for server in 0..self.links.len() {
            let used = self.is_used(server);
            let link = &mut self.links[server];
            match link.state {
                State::Down(until) if used && until <= now => {
                    link.connect();
                    return Some(Connect::Open(link.attempt(server)));
                }
                // What this server may not have can't be said on this stream.
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

    /// The next thing for the application.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop()
    }

    /// The next request on a stream: see [`Client::poll_transmit`].
    pub fn poll_transmit(&mut self, stream: Stream) -> Option<Transmit<V::Request>> {
        let used = self.is_used(stream.server.0);
        let link = self.links.get_mut(stream.server.0).filter(|link| used && link.is_up(stream))?;
        link.client.poll_transmit()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and [`poll_connect`](Self::poll_connect).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = |(server, link): (usize, &Link<V>)| {
            let connect = match link.state {
                State::Down(until) if self.is_used(server) => Some(until),
                _ => None,
            };
            link.client.poll_timeout().into_iter().chain(connect).min()
        };
        self.links.iter().enumerate().filter_map(next).min()
    }

    // Questions.

    /// Whether [`poll_transmit`](Self::poll_transmit) would give a request.
    pub fn wants_transmit(&self, stream: Stream) -> bool {
        let up = self.links.get(stream.server.0).filter(|link| link.is_up(stream));
        up.is_some_and(|link| link.client.wants_transmit()) && self.is_used(stream.server.0)
    }

    /// Whether the stream may be read: see [`Client::wants_response`].
    pub fn wants_response(&self, stream: Stream) -> bool {
        let up = self.links.get(stream.server.0).filter(|link| link.is_up(stream));
        up.is_some_and(|link| link.client.wants_response())
    }

    // Private.

    /// Whether a server has, or should have, a stream.
    fn is_used(&self, server: usize) -> bool {
        self.groups.iter().any(|group| group.place(self.policy, server).is_some())
    }

    /// Takes what a client has to say.
    fn drain(&mut self, server: usize) {
        while let Some(action) = self.links[server].client.poll_action() {
            match &action {
                client::Action::Apply(update) => {
                    self.links[server].out.push(update.clone());
                    self.beside(server, |client| client.layer_mut(update.type_url()).block_updates());
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

    /// The other clients learn what became of an update: what the application has now is not what they sent.
    fn tell_the_others(&mut self, server: usize, update: &Update, rejected: &BTreeSet<ResourceName>) {
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

    /// An update was judged: whoever waited for that goes on, one after the other.
    fn release(&mut self, now: Instant, server: usize, type_url: &TypeUrl) {
        for at in 0..=self.links[server].related.len() {
            let other = self.links[server].related.get(at).copied().unwrap_or(server);
            let judges = |link: &usize| self.links[*link].judges(type_url);
            if !judges(&other) && !self.links[other].related.iter().any(judges) {
                self.links[other].client.layer_mut(type_url).unblock_updates(now);
                self.drain(other);
            }
        }
    }

    /// A client that wants more now may not speak while one beside it waits for a verdict.
    fn hold_beside(&mut self, server: usize) {
        let out = self.links[server].related.iter().flat_map(|&other| &self.links[other].out);
        let types: Vec<TypeUrl> = out.map(|update| update.type_url().clone()).collect();
        types.iter().for_each(|type_url| self.links[server].client.layer_mut(type_url).block_updates());
    }

    fn beside(&mut self, server: usize, mut each: impl FnMut(&mut Client<V>)) {
        for at in 0..self.links[server].related.len() {
            let other = self.links[server].related[at];
            each(&mut self.links[other].client);
        }
    }

    /// Something may be lacking that was there.
    fn review(&mut self, at: usize) {
        if !self.groups[at].wanted.is_empty() {
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
