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
use self::claims::Claims;
pub use self::config::{Config, Dialect, Limits, ResponseLimit, Scope};
pub use self::delivery::{Delivered, Delivery, DeliveryStatus};
use self::draft::{Draft, Order};
use self::extent::Extent;
pub use self::nonce::StreamId;
pub use self::page::Page;
pub use self::resource::Resource;
pub use self::response::Response;
use self::response_limit::Budget;
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
                (at, true)
            }
        };
        let (nonce, error) = V::take_answer(&mut request);
        self.handle_answer(at, first, nonce, error);
        if self.closed {
            return Ok(());
        }
        let subscription = &mut self.types[at];
        let change = V::apply_request(request, subscription, first, self.config.settings());
        if first || change.wildcard || !change.added.is_empty() || !change.removed.is_empty() {
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
    /// after a request and after a change of the source. At most one response of a type is in flight; changes that
    /// occur before its ACK or NACK are sent together afterwards.
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

    /// Polls the types in their order. `again`: whether a second turn may follow.
    fn poll<S: Source>(&mut self, now: Instant, source: &S, again: bool) -> Option<Response<V>> {
        for at in 0..self.types.len() {
            if let Some(response) = self.poll_type(at, now, source) {
                return Some(response);
            }
            if self.closed {
                return None;
            }
        }
        // Removals of one type may wait for a name of another, which was answered by nothing in this turn.
        if again && self.types.iter().any(|of| of.defer_until.is_some()) {
            return self.poll(now, source, false);
        }
        self.idle = Some((source.revision(), self.poll_timeout()));
        None
    }

    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout); `None` if no time-out is running.
    pub fn poll_timeout(&self) -> Option<Instant> {
        // A type with a response in flight sends nothing before the ACK or NACK.
        let waits = self.types.iter().filter(|of| !of.exchange.is_waiting());
        let due = |of: &Subscription| of.defer_until.into_iter().chain(of.heartbeat.due()).min();
        if self.closed { None } else { waits.filter_map(due).min() }
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
        if self.actions.len() >= limits.waiting_actions {
            return Err(Misuse::ActionsWaiting { limit: limits.waiting_actions }.into());
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
    /// makes it a NACK).
    fn handle_answer(&mut self, at: usize, first: bool, nonce: Nonce, error: Option<Status>) {
        if first {
            return; // S-COM-03: its nonce and error belong to an earlier stream
        }
        let settings = self.config.settings();
        let (error_bytes, most) = (settings.limits.error_bytes, settings.limits.stale_requests);
        let of = &mut self.types[at];
        let mut error = error;
        if let Some(error) = &mut error {
            error.truncate(error_bytes);
        }
        if nonce == *of.exchange.nonce() && !nonce.is_empty() {
            let rejection = error.as_ref().map(|error| error.message.as_str());
            if let Some((version, revision)) = of.handle_answer(rejection) {
                let type_url = of.type_url().clone();
                self.actions.push(match error {
                    None => Action::Ack { type_url, version, revision, nonce },
                    Some(error) => Action::Nack { type_url, version, revision, nonce, error },
                });
                return;
            }
        }
        if error.is_none() && !V::is_stale(&nonce, &self.types[at]) {
            self.types[at].exchange.reset_stale();
            return;
        }
        let too_many = self.types[at].exchange.count_stale() > most;
        let reason = if nonce.is_empty() { DropReason::NoNonce } else { DropReason::OtherNonce };
        let nonce = if nonce.as_bytes().len() > nonce::LONGEST { Nonce::default() } else { nonce };
        action::drop_stale(&mut self.actions, self.types[at].type_url().clone(), nonce, reason);
        if too_many {
            let message = format!("more than {most} stale requests in a row");
            self.close(Status::new(Code::ResourceExhausted, message));
        }
    }

    /// Returns the next response of one type.
    fn poll_type<S: Source>(&mut self, at: usize, now: Instant, source: &S) -> Option<Response<V>> {
        let of = &mut self.types[at];
        if of.exchange.is_waiting() || !source.is_known(of.type_url()) {
            return None;
        }
        // Removals that the claims reveal are sent below.
        let claimed = of.pending.claims().is_some_and(Claims::is_unsettled);
        let settings = self.config.settings();
        if claimed {
            of.settle_claims(source, settings.response_limit.is_limited(), settings.limits.names_per_type);
            if self.ttl {
                of.heartbeat.claim(now);
            }
        }
        of.settle_late(source);
        if of.heartbeat.left_some_out() {
            of.note_left_out(now, source);
        }
        let heartbeats_due = of.heartbeat.is_due(now);
        if !claimed && !heartbeats_due && of.is_quiet(source) {
            of.defer_until = None; // no deferred removal is left
            return None;
        }
        let order = self.order(at, now, source);
        let of = &mut self.types[at];
        if order.answers_only && of.pending.is_empty() && of.view.sent_to().is_some() {
            if !heartbeats_due {
                return None;
            }
            if V::heartbeats_with_all(of) && V::has_push(of, source) {
                // Such a heartbeat would carry changes that have to wait, so it is skipped until the next due time.
                of.schedule_heartbeats(now, source, true, &Draft::default());
                return None;
            }
        }
        if let Some(version) = V::version_of_heartbeats(of).filter(|_| heartbeats_due) {
            let mut draft = Draft::default();
            of.add_heartbeats(source, &mut draft);
            of.schedule_heartbeats(now, source, true, &draft);
            if draft.must_send {
                return Some(self.respond(at, version, Extent::NOTHING, draft));
            }
        }
        let mut draft = Draft::default();
        draft.must_send |= of.pending.reply();
        if let Err(status) = V::draft(of, source, order, &mut draft) {
            self.close(status);
            return None;
        }
        if heartbeats_due {
            V::add_heartbeats(of, source, &mut draft);
        }
        let extent = of.note_sent(now, settings.removal_delay, order.names, source, &mut draft);
        if self.ttl && (draft.must_send || heartbeats_due || of.heartbeat.due().is_none()) {
            of.schedule_heartbeats(now, source, heartbeats_due, &draft);
        }
        if !draft.must_send {
            return None;
        }
        let type_url = of.type_url().clone();
        order::refresh_dependents(&mut self.types, &type_url, &draft, source, order.names);
        let version = draft.version(source.version(&type_url), V::NAMES_REMOVALS);
        Some(self.respond(at, version, extent, draft))
    }

    /// Returns the constraints of the other types and of the configuration on a response.
    fn order<S: Source>(&self, at: usize, now: Instant, source: &S) -> Order {
        let (settings, of) = (self.config.settings(), &self.types[at]);
        let push_order = of.resource_type.push_order();
        let defer_removals = (V::NAMES_REMOVALS || settings.sotw_removal_delay)
            && push_order.is_referred_to()
            && of.defer_until.is_none_or(|until| now < until)
            && !settings.removal_delay.is_zero()
            && order::has_unsent_front::<V, S>(&self.types, source);
        Order {
            answers_only: push_order.refers_to_clusters() && order::has_unsent_clusters(&self.types, source),
            defer_removals,
            budget: Budget::new(settings.response_limit, || {
                let control_plane = settings.control_plane.as_deref().unwrap_or_default();
                response_limit::envelope_bytes(of.type_url(), &source.version(of.type_url()), control_plane)
            }),
            names: settings.limits.names_per_type,
        }
    }

    fn respond(&mut self, at: usize, version: Version, extent: Extent, draft: Draft) -> Response<V> {
        self.sent += 1;
        let of = &mut self.types[at];
        let nonce = nonce::nonce(self.stream, self.sent);
        let revision = of.view.sent_to().unwrap_or_default();
        of.exchange.send(nonce.clone(), version.clone(), revision, extent);
        Response {
            type_url: of.type_url().clone(),
            version,
            revision,
            nonce,
            parts: draft.parts,
            removed: draft.removed,
            errors: draft.errors,
            control_plane: self.config.settings().control_plane.clone(),
            ttl: self.ttl,
            variant: PhantomData,
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
