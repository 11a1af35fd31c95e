//! The server side of a stream: the state that a control plane keeps for each connected client.
//!
//! A [`Server`] is one accepted stream, held as a value: requests go in, actions and responses come out. The machine
//! reads resources from a [`Source`], such as a [`Cache`], at the moment when there is room to send. The manual shows
//! [a driver](crate::manual::_01_driver) and [a source](crate::manual::_03_source). Clients that must see different
//! resources have different sources: [groups of nodes](Source#groups-of-nodes).
//!
//! ```
//! use xds_machine::message::{Node, delta};
//! use xds_machine::server::{Action, Cache, Config, Resource, Server, StreamId};
//! use xds_machine::{Delta, Instant, TypeUrl, type_url};
//!
//! let now = Instant::EPOCH;
//! let clusters = TypeUrl::from(type_url::CLUSTER);
//! let mut cache = Cache::new(1);
//! cache.insert(&clusters, Resource::new("c1", &b"\x0a\x02c1"[..]));
//!
//! let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
//! let mut request = delta::Request::new(clusters.clone());
//! request.subscribe = vec!["c1".into(), "c2".into()];
//! server.handle_request(now, request)?;
//!
//! let response = server.poll_transmit(now, &cache).expect("every subscription is answered");
//! assert_eq!(response.resources().next().expect("c1").name(), "c1");
//! assert_eq!(response.removed(), ["c2"]);
//! assert_eq!(server.poll_transmit(now, &cache), None, "until there is something new");
//! # Ok::<(), xds_machine::Error>(())
//! ```

mod action;
mod cache;
mod changes;
mod claims;
mod config;
mod delivery;
mod delta;
mod draft;
mod encoding;
mod errors;
mod exchange;
mod extent;
mod hash;
mod heartbeat;
mod invariants;
mod limits;
mod nonce;
mod of_type;
mod order;
mod page;
mod parts;
mod pending;
mod rejections;
mod resource;
mod respond;
mod response;
mod response_limit;
mod sent;
mod sent_aliases;
mod size;
pub(crate) mod snapshot;
mod sotw;
mod source;
mod subscription;
mod variant;
mod view;
mod wanted;

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;

pub use self::action::{Action, DropReason};
pub use self::cache::{Cache, DependentName};
pub use self::config::{Config, Dialect, Limits, ResponseLimit, Scope};
pub use self::delivery::{Delivered, Delivery, DeliveryStatus};
use self::exchange::Answered;
pub use self::nonce::StreamId;
pub use self::page::Page;
pub use self::resource::Resource;
pub use self::response::Response;
pub use self::source::{Entry, Source, State};
use self::subscription::Subscription;
pub use self::variant::Variant;
use crate::error::{Code, Error, Misuse, PeerMisbehaved, Status};
use crate::interest::Interest;
use crate::message::Node;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, TypeUrl, Version};
use crate::queue::Queue;
pub use crate::revision::Revision;
use crate::time::Instant;

/// One stream of a server: created when the stream opens, dropped when it closes.
///
/// Methods are of three kinds: `handle_*` for events, `poll_*` for work to do, and queries. A driver calls them in
/// any order and at any time, and polls after each event as far as it has room.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Server<V: Variant> {
    config: Config,
    stream: StreamId,
    /// Number of responses sent.
    sent: u64,
    /// Epoch of the source.
    epoch: Option<u64>,
    /// Source revision at which nothing was left to send, and the time until which that holds if no request arrives.
    idle: Option<(Revision, Option<Instant>)>,
    node: Option<Arc<Node>>,
    closed: bool,
    /// Whether the client supports TTLs.
    ttl: bool,
    /// Subscriptions in push order; empty until the first request is accepted.
    types: Vec<Subscription>,
    /// The index of the type whose turn it is to send.
    turn: usize,
    actions: Queue<Action>,
    variant: PhantomData<V>,
}

impl<V: Variant> Server<V> {
    /// Creates the machine of a stream that was just accepted.
    pub fn new(config: Config, stream: StreamId) -> Self {
        Self {
            config,
            stream,
            sent: 0,
            epoch: None,
            idle: None,
            node: None,
            closed: false,
            ttl: false,
            types: Vec::new(),
            turn: 0,
            actions: Queue::new(),
            variant: PhantomData,
        }
    }

    // Events.

    /// Handles a request of the client.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Peer`] if the request breaks the protocol or a limit: close the stream with the status of the
    /// error. Returns [`Error::Caller`] if too many actions wait to be polled. An error leaves the machine unchanged.
    pub fn handle_request(&mut self, _now: Instant, mut request: V::Request) -> Result<(), Error> {
        if self.closed {
            return Ok(());
        }
        let at = self.check(&mut request)?;
        self.idle = None;
        if self.types.is_empty() {
            if let Some(node) = V::node(&request) {
                self.ttl = V::supports_ttl(node);
                self.node = Some(node.clone());
                self.actions.push(Action::Node(node.clone()));
            }
        }
        let (at, first) = match at {
            Ok(at) => (at, false),
            Err(at) => {
                let resource_type = self.config.settings().resource_type(V::type_url(&mut request));
                // Grows by exactly one: a stream has few types, and there are many streams.
                self.types.reserve_exact(1);
                self.types.insert(at, Subscription::new(resource_type, V::ALIASES));
                self.turn += usize::from(at < self.turn);
                (at, true)
            }
        };
        let (nonce, error, version) = V::take_answer(&mut request);
        let is_foreign = self.handle_answer(at, first, &nonce, version.as_ref(), error);
        let subscription = &mut self.types[at];
        let change = V::apply_request(request, subscription, first, self.config.settings());
        if subscription.wanted.is_empty() {
            // Each later subscription is answered, whatever was rejected before.
            subscription.exchange.forget_rejections();
        }
        if !first && change.is_empty() {
            if is_foreign {
                self.count_foreign(at);
            }
        } else {
            self.actions.push(Action::Subscribed {
                type_url: subscription.type_url().clone(),
                added: change.added,
                removed: change.removed,
                wildcard: subscription.wanted.wildcard(),
            });
        }
        Ok(())
    }

    /// Handles the arrival of the time that [`poll_timeout`](Self::poll_timeout) returned: the next
    /// [`poll_transmit`](Self::poll_transmit) may have something to send.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.idle = None;
        }
    }

    // Output.

    /// Returns the next action.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop()
    }

    /// Returns the next response, built from the current state of the source: call it when the transport has room,
    /// after a request and after a change of the source. Changes that occur before the ACK or NACK of a response are sent
    /// together afterwards, or when [`Config::with_answer_wait`] is over. Types take turns.
    pub fn poll_transmit<S: Source>(&mut self, now: Instant, source: &S) -> Option<Response<V>> {
        let idle =
            |(at, until): (Revision, Option<Instant>)| at == source.revision() && until.is_none_or(|due| now < due);
        // The node, and so the source that serves it, may be unknown before the first request.
        if self.closed || self.idle.is_some_and(idle) || self.types.is_empty() {
            return None;
        }
        if *self.epoch.get_or_insert_with(|| source.epoch()) != source.epoch() {
            self.close(Status::new(Code::Unavailable, "the source of resources started anew"));
            return None;
        }
        self.poll(now, source, true)
    }

    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout); `None` if no time-out is running.
    pub fn poll_timeout(&self) -> Option<Instant> {
        // What waits for an ACK or NACK does not wait for the end of a deferral besides.
        let due = |of: &Subscription| of.hold.or(of.defer_until).into_iter().chain(of.heartbeat.due()).min();
        if self.closed { None } else { self.types.iter().filter_map(due).min() }
    }

    // Queries.

    /// Returns the id that the stream was made with.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Returns the node of the client, as reported in the first request of the stream.
    pub fn node(&self) -> Option<&Node> {
        self.node.as_deref()
    }

    /// Returns the requested types, in push order.
    pub fn types(&self) -> impl Iterator<Item = &TypeUrl> {
        self.types.iter().map(Subscription::type_url)
    }

    /// Returns the client's interest in a type; `None` if the type was never requested.
    pub fn interest(&self, type_url: &TypeUrl) -> Option<&Interest> {
        Some(self.subscription(type_url)?.wanted.interest())
    }

    // Private.

    fn subscription(&self, type_url: &TypeUrl) -> Option<&Subscription> {
        self.types.iter().find(|of| of.type_url() == type_url)
    }

    /// Validates a request before anything changes. Returns the index of its type, or `Err` with the index to insert
    /// it at.
    fn check(&self, request: &mut V::Request) -> Result<Result<usize, usize>, Error> {
        let settings = self.config.settings();
        let limits = &settings.limits;
        let most = limits.waiting_actions.max(1);
        if self.actions.len() >= most {
            return Err(Misuse::ActionsWaiting { limit: most }.into());
        }
        if settings.require_node && self.types.is_empty() && V::node(request).is_none_or(|node| node.id.is_empty()) {
            return Err(PeerMisbehaved::MissingNode.into()); // S-COM-05
        }
        let type_url = V::type_url(request);
        match &settings.scope {
            // S-COM-07
            Scope::Ads if type_url.as_str().is_empty() => return Err(PeerMisbehaved::MissingTypeUrl.into()),
            Scope::Ads => {}
            // S-COM-08
            Scope::Single(only) if type_url.as_str().is_empty() => *type_url = only.clone(),
            // S-COM-09
            Scope::Single(only) if type_url != only => {
                let (expected, got) = (only.clone(), type_url.clone());
                return Err(PeerMisbehaved::WrongType { expected, got }.into());
            }
            Scope::Single(_) => {}
        }
        let (len, limit) = (type_url.as_str().len(), limits.type_url_bytes);
        if len > limit {
            return Err(PeerMisbehaved::TypeUrlTooLong { len, limit }.into());
        }
        let at = self.find(type_url);
        if at.is_err() && self.types.len() >= limits.types {
            return Err(PeerMisbehaved::TooManyTypes { limit: limits.types }.into());
        }
        let known = at.ok().map(|at| &self.types[at]);
        let size = V::check(request, known, settings)?;
        limits::check_size(limits, &self.types, V::type_url(request), size, at.ok())?;
        if at.is_err() {
            limits::check_claims(limits, &self.types, V::initial_bytes(request))?;
        }
        Ok(at)
    }

    /// Returns the index of a type in push order, or `Err` with the index to insert it at.
    fn find(&self, type_url: &TypeUrl) -> Result<usize, usize> {
        if let Some(at) = self.types.iter().position(|subscription| subscription.type_url() == type_url) {
            return Ok(at);
        }
        let push_order = self.config.settings().types.get(type_url).push_order();
        Err(self
            .types
            .partition_point(|other| (other.resource_type.push_order(), other.type_url()) < (push_order, type_url)))
    }

    /// Handles the ACK or NACK of a request ([design rule 8](crate::manual::rules#rule-8): the presence of an error
    /// makes it a NACK). `version`: the version that the client accepted last (SotW). Returns whether the request
    /// answers no response of the stream: a client that is late, or repeats itself, has the nonce of an earlier one.
    fn handle_answer(
        &mut self,
        at: usize,
        first: bool,
        nonce: &Nonce,
        version: Option<&Version>,
        error: Option<Status>,
    ) -> bool {
        if first {
            return false; // S-COM-03: its nonce and error belong to an earlier stream
        }
        let limits = &self.config.settings().limits;
        let of = &mut self.types[at];
        let (type_url, mut error) = (of.type_url().clone(), error);
        if let Some(error) = &mut error {
            error.truncate(limits.error_bytes);
        }
        let rejection = error.as_ref().map(|error| error.message.as_str());
        let answered = of.handle_answer(nonce, version, rejection, limits.names_per_type);
        if let Some(Answered { version, revision, is_late: false, .. }) = answered {
            let nonce = nonce.clone();
            self.actions.push(match error {
                None => Action::Ack { type_url, version, revision, nonce },
                Some(error) => Action::Nack { type_url, version, revision, nonce, error },
            });
            return false;
        }
        if answered.is_none() && error.is_none() && !V::is_stale(nonce, of) {
            of.exchange.reset_foreign();
            return false;
        }
        if let Some(rejection) = rejection.filter(|_| answered.is_none()) {
            of.exchange.refuse(nonce, rejection);
        }
        let is_answer = !nonce.is_empty() || error.is_some();
        let is_foreign = is_answer && !nonce::was_given(self.stream, self.sent, nonce);
        let reason = if nonce.is_empty() { DropReason::NoNonce } else { DropReason::OtherNonce };
        let nonce = if nonce.as_bytes().len() > nonce::LONGEST { Nonce::default() } else { nonce.clone() };
        action::drop_stale(&mut self.actions, type_url, nonce, reason, error);
        is_foreign
    }

    /// Counts a request that changed no names, and has a nonce of no response: too many in a row end the stream.
    fn count_foreign(&mut self, at: usize) {
        let most = self.config.settings().limits.stale_requests;
        if self.types[at].exchange.count_foreign() > most {
            let message = format!("more than {most} stale requests in a row");
            self.close(Status::new(Code::ResourceExhausted, message));
        }
    }

    fn close(&mut self, status: Status) {
        self.closed = true;
        self.actions.push(Action::Close(status));
    }
}

impl<V: Variant> Relabel for Server<V> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        by(Label::Stream(&mut self.stream.0));
        by(Label::Given(&mut self.sent));
        if let Some((at, until)) = &mut self.idle {
            at.relabel(by);
            until.relabel(by);
        }
        self.types.iter_mut().for_each(|subscription| subscription.relabel(by));
        self.actions.iter_mut().for_each(|action| action.relabel(by));
    }
}
