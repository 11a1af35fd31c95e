//! The server: what a control plane is to one of its clients.
//!
//! A [`Server`] is one accepted stream, and a value: requests go in, actions and responses come out. What it has to
//! say it reads from a [`Source`], such as a [`Cache`], at the moment when there is room to send.
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
mod config;
mod delta;
mod errors;
mod hash;
mod invariants;
mod parts;
mod portion;
mod resource;
mod response;
mod retry;
mod sotw;
mod source;
mod subscription;
mod variant;

use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::mem::take;

pub use self::action::{Action, DropReason};
pub use self::cache::{Cache, DependentName};
pub use self::config::{Config, Dialect, Limits, Scope};
use self::parts::Part;
pub use self::portion::Portion;
use self::portion::Room;
pub use self::resource::Resource;
pub use self::response::Response;
pub use self::retry::Retry;
pub use self::source::{Entry, Page, Revision, Source, State};
use self::subscription::{Changed, Draft, Subscription};
pub use self::variant::Variant;
use self::variant::{Order, Size};
use crate::error::{Code, Error, Misuse, PeerMisbehaved, Status};
use crate::interest::Interest;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};
use crate::queue::Queue;
use crate::resource_type::Place;
use crate::time::Instant;

/// Tells streams apart. Unique among the streams of a process, or nonces are not.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamId(pub u64);

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One stream of a server. New is open, dropped is closed.
///
/// Its methods are of three kinds: `handle_*` for what happened, `poll_*` for what is to be done, and questions. A
/// driver calls them in any order and at any time, and after each polls what it has room for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Server<V: Variant> {
    config: Config,
    stream: StreamId,
    /// Counts the responses.
    sent: u64,
    /// Of the source.
    epoch: Option<u64>,
    /// The revision at which there was nothing to say, and until when that holds if nothing is asked.
    idle: Option<(Revision, Option<Instant>)>,
    greeted: bool,
    closed: bool,
    /// Whether the client supports TTLs.
    ttl: bool,
    /// In push order.
    types: Vec<Subscription>,
    actions: Queue<Action>,
    variant: PhantomData<V>,
}

impl<V: Variant> Server<V> {
    /// A stream that was just accepted.
    pub fn new(config: Config, stream: StreamId) -> Self {
        Self {
            config,
            stream,
            sent: 0,
            epoch: None,
            idle: None,
            greeted: false,
            closed: false,
            ttl: false,
            types: Vec::new(),
            actions: Queue::new(),
            variant: PhantomData,
        }
    }

    // What happened.

    /// A request came.
    ///
    /// # Errors
    ///
    /// [`Error::Peer`] if the request breaks the protocol or a limit: close the stream, with the status that it
    /// names. [`Error::Caller`] if the actions were not polled. The machine is as it was.
    pub fn handle_request(&mut self, now: Instant, mut request: V::Request) -> Result<(), Error> {
        if self.closed {
            return Ok(());
        }
        let at = self.check(&mut request)?;
        self.idle = None;
        if !self.greeted {
            self.greeted = true;
            if let Some(node) = V::node(&request) {
                self.ttl = V::supports_ttl(node);
                self.actions.push(Action::Node(node.clone()));
            }
        }
        let (at, first) = match at {
            Ok(at) => (at, false),
            Err(at) => {
                let kind = self.config.settings().kind(V::type_url(&mut request));
                // One more, not twice as many: a stream has few types and there are many streams.
                self.types.reserve_exact(1);
                self.types.insert(at, Subscription::new(kind, V::ALIASES));
                (at, true)
            }
        };
        let (nonce, error) = V::take_answer(&mut request);
        self.hear_answer(now, at, first, nonce, error);
        if self.closed {
            return Ok(());
        }
        let subscription = &mut self.types[at];
        let heard = V::hear(request, subscription, first);
        if first || heard.turned || !heard.added.is_empty() || !heard.removed.is_empty() {
            self.actions.push(Action::Subscribed {
                type_url: subscription.type_url().clone(),
                added: heard.added,
                removed: heard.removed,
                wildcard: subscription.interest.wildcard(),
            });
        }
        Ok(())
    }

    /// The time that [`poll_timeout`](Self::poll_timeout) gave has come: the next
    /// [`poll_transmit`](Self::poll_transmit) may have something to send.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.idle = None;
        }
    }

    // What to do.

    /// The next thing that happened.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop()
    }

    /// The next response, made of what is true at this moment: call it when the transport has room, after a request
    /// and after a change of the source. At most one response of a type is out; what changes until it is answered
    /// comes in one response afterwards.
    pub fn poll_transmit<S: Source>(&mut self, now: Instant, source: &S) -> Option<Response<V>> {
        let idle =
            |(at, until): (Revision, Option<Instant>)| at == source.revision() && until.is_none_or(|due| now < due);
        if self.closed || self.idle.is_some_and(idle) {
            return None;
        }
        if *self.epoch.get_or_insert_with(|| source.epoch()) != source.epoch() {
            self.close(Status::new(Code::Unavailable, "the source of resources started anew"));
            return None;
        }
        for at in 0..self.types.len() {
            if let Some(response) = self.poll_type(at, now, source) {
                return Some(response);
            }
            if self.closed {
                return None;
            }
        }
        self.idle = Some((source.revision(), self.poll_timeout()));
        None
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = |subscription: &Subscription| {
            let held = subscription.held_until.filter(|_| subscription.out.is_none());
            held.into_iter().chain(subscription.next_beat()).chain(subscription.next_retry()).min()
        };
        self.types.iter().filter_map(due).min()
    }

    // Questions.

    /// Which stream this is.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// The types that were asked for, in push order.
    pub fn types(&self) -> impl Iterator<Item = &TypeUrl> {
        self.types.iter().map(Subscription::type_url)
    }

    /// What the client wants of a type; `None` if it never asked.
    pub fn interest(&self, type_url: &TypeUrl) -> Option<&Interest> {
        let found = self.types.iter().find(|subscription| subscription.type_url() == type_url);
        found.map(|subscription| &subscription.interest)
    }

    // Private.

    /// Refuses what can't be taken in, before anything changes. Otherwise finds the type, or where it belongs.
    fn check(&self, request: &mut V::Request) -> Result<Result<usize, usize>, Error> {
        let settings = self.config.settings();
        let limits = &settings.limits;
        if self.actions.len() >= limits.waiting_actions {
            return Err(Misuse::ActionsWaiting { limit: limits.waiting_actions }.into());
        }
        if settings.require_node && !self.greeted && V::node(request).is_none_or(|node| node.id.is_empty()) {
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
        self.check_size(V::type_url(request), size, at)?;
        let initial = if at.is_err() { V::initial_bytes(request) } else { 0 };
        if initial > 0 {
            let len = initial + self.types.iter().map(Subscription::initial_bytes).sum::<usize>();
            let limit = limits.name_bytes_per_stream;
            if len > limit {
                return Err(PeerMisbehaved::TooManyInitialVersionBytes { len, limit }.into());
            }
        }
        Ok(at)
    }

    /// Whether a type may be of this size. It may be of that which it has: the server itself keeps names of what was asked for
    /// by another, and an answer to a response is not to be refused for that.
    fn check_size(&self, type_url: &TypeUrl, size: Size, at: Result<usize, usize>) -> Result<(), PeerMisbehaved> {
        let had = at.map_or(Size::default(), |at| self.types[at].size());
        if size.names <= had.names && size.bytes <= had.bytes {
            return Ok(());
        }
        let limits = &self.config.settings().limits;
        let others = self.types.iter().enumerate().filter(|&(other, _)| at != Ok(other));
        let all = others.fold(size, |all, (_, other)| all + other.size());
        let (count, limit) = (size.names, limits.names_per_type);
        if count > limit {
            return Err(PeerMisbehaved::TooManyNames { type_url: type_url.clone(), count, limit });
        }
        let (count, limit) = (all.names, limits.names_per_stream);
        if count > limit {
            return Err(PeerMisbehaved::TooManyNamesOnStream { count, limit });
        }
        let (len, limit) = (all.bytes, limits.name_bytes_per_stream);
        if len > limit {
            return Err(PeerMisbehaved::TooManyNameBytes { len, limit });
        }
        Ok(())
    }

    /// Where a type is, or belongs, in push order.
    fn find(&self, type_url: &TypeUrl) -> Result<usize, usize> {
        if let Some(at) = self.types.iter().position(|subscription| subscription.type_url() == type_url) {
            return Ok(at);
        }
        let place = self.config.settings().types.get(type_url).place();
        Err(self.types.partition_point(|other| (other.kind.place(), other.type_url()) < (place, type_url)))
    }

    /// The half of a request that answers a response (DESIGN rule 8: a NACK is the presence of an error).
    fn hear_answer(&mut self, now: Instant, at: usize, first: bool, nonce: Nonce, error: Option<Status>) {
        if first {
            return; // S-COM-03: whatever nonce or error it has is of an earlier stream
        }
        let subscription = &mut self.types[at];
        let type_url = subscription.type_url().clone();
        let (error_bytes, most) = {
            let limits = &self.config.settings().limits;
            (limits.error_bytes, limits.stale_requests)
        };
        if nonce == subscription.nonce && !nonce.is_empty() {
            if let Some(version) = subscription.out.take().or_else(|| subscription.late.take()) {
                subscription.stale = 0;
                match self.config.settings().retry.filter(|_| error.is_some()) {
                    Some(retry) => subscription.was_rejected(now, retry),
                    None => subscription.was_accepted(),
                }
                if self.ttl && error.is_none() {
                    subscription.accepted = version.clone();
                }
                self.actions.push(match error {
                    None => Action::Ack { type_url, version, nonce },
                    Some(mut error) => {
                        error.truncate(error_bytes);
                        Action::Nack { type_url, version, nonce, error }
                    }
                });
                return;
            }
        }
        let stale = V::is_stale(&nonce, subscription);
        if !stale && error.is_none() {
            subscription.stale = 0;
            return;
        }
        subscription.stale = subscription.stale.saturating_add(1);
        let too_many = subscription.stale > most;
        let reason = if nonce.is_empty() { DropReason::NoNonce } else { DropReason::OtherNonce };
        let nonce = if nonce.as_bytes().len() > NONCE_BYTES { Nonce::default() } else { nonce };
        self.drop_stale(type_url, nonce, reason);
        if too_many {
            let message = format!("more than {most} stale requests in a row");
            self.close(Status::new(Code::ResourceExhausted, message));
        }
    }

    /// The next response of one type.
    fn poll_type<S: Source>(&mut self, at: usize, now: Instant, source: &S) -> Option<Response<V>> {
        let subscription = &mut self.types[at];
        if subscription.out.is_some() || !source.is_known(subscription.type_url()) {
            return None;
        }
        if self.ttl && subscription.initial.is_some() {
            // What the client has from another stream may have little time left (S-TTL-04).
            subscription.beat.get_or_insert((now, Some(source.revision())));
        }
        let (beats, mut retries) = (subscription.beats(now), subscription.retries(now));
        if !beats && !retries && subscription.is_quiet(source) {
            subscription.held_until = None; // nothing is left of what was held back
            return None;
        }
        subscription.note_flaps(source);
        let subscription = &self.types[at];
        // DESIGN rule 11: what refers to clusters waits for clusters that are not sent, unless it was asked for.
        let place = subscription.kind.place();
        let answers_only = place.is_front() && self.has_unsent_clusters(source);
        if answers_only && !subscription.owes() {
            if let Some(retry) = self.config.settings().retry.filter(|_| retries) {
                self.types[at].put_off_retry(now + retry.after); // or it would be due all the time
                retries = false;
            }
            if !beats {
                return None;
            }
            let subscription = &self.types[at];
            if V::beats_with_all(subscription) && V::has_push(subscription, source) {
                // What changed would go with it. The next beat may do.
                self.types[at].schedule_beat(now, source, &Draft::default(), true);
                return None;
            }
        }
        let settings = self.config.settings();
        let (hold, names, subscription) = (settings.removal_hold, settings.limits.names_per_type, &self.types[at]);
        let hold_removals = (V::NAMES_REMOVALS || settings.sotw_removal_hold)
            && place.is_back()
            && subscription.held_until.is_none_or(|until| now < until)
            && !hold.is_zero()
            && self.has_unsent_front(source);

        let room = Room::new(self.config.settings().portion, || self.envelope_bytes(at, source));
        let order = Order { answers_only, hold_removals, room, names };
        let subscription = &mut self.types[at];
        if let Some(version) = V::version_of_beats(subscription).filter(|_| beats) {
            let mut draft = Draft::default();
            draft.add_heartbeats(subscription, source);
            subscription.schedule_beat(now, source, &draft, true);
            if draft.send {
                return Some(self.respond(at, version, &mut draft));
            }
        }
        let base = self.config.settings().retry.map(|_| subscription.base(retries));
        if retries {
            subscription.try_again();
        }
        let mut draft = Draft { send: subscription.answer, ..Draft::default() };
        let Ok(()) = V::draft(subscription, source, order, &mut draft) else {
            subscription.drop_unwanted(); // the draft took what was owed, and names that left may be counted for that
            self.close(Status::new(Code::Unavailable, "behind the removals that are remembered"));
            return None;
        };
        // What is still to come in portions does not live on yet.
        let beats = beats && subscription.progress.is_none();
        if beats {
            V::add_heartbeats(subscription, source, &mut draft);
        }
        let answered = base.as_ref().map(|_| draft.answered.clone().unwrap_or_default());
        subscription.served(now, hold, source, &mut draft);
        if self.ttl && (draft.send || beats || subscription.beat.is_none()) {
            subscription.schedule_beat(now, source, &draft, beats);
        }
        if !draft.send {
            // The end of a large answer may be that there is nothing more; what changed meanwhile comes then.
            return if draft.again { self.poll_type(at, now, source) } else { None };
        }
        let type_url = self.types[at].type_url().clone();
        self.refresh_dependents(&type_url, &draft, source);
        if let (Some(base), Some(answered)) = (base, answered) {
            self.types[at].note_out(base, answered, draft.whole);
        }
        let mut version = source.version(&type_url);
        if draft.held && !V::NAMES_REMOVALS {
            version = format!("{version}{STILL}").into();
        }
        Some(self.respond(at, version, &mut draft))
    }

    fn respond(&mut self, at: usize, version: Version, draft: &mut Draft) -> Response<V> {
        self.sent += 1;
        let subscription = &mut self.types[at];
        subscription.nonce = nonce(self.stream, self.sent);
        subscription.out = Some(version.clone());
        subscription.late = None;
        Response {
            type_url: subscription.type_url().clone(),
            version,
            nonce: subscription.nonce.clone(),
            parts: take(&mut draft.parts),
            removed: take(&mut draft.removed),
            errors: take(&mut draft.errors),
            control_plane: self.config.settings().control_plane.clone(),
            ttl: self.ttl,
            variant: PhantomData,
        }
    }

    /// The most that a response of a type has around its resources.
    fn envelope_bytes(&self, at: usize, source: &impl Source) -> usize {
        const KEYS_AND_NONCE: usize = 80;
        let control_plane = self.config.settings().control_plane.as_deref().unwrap_or_default().len();
        let type_url = self.types[at].type_url();
        type_url.as_str().len() + source.version(type_url).as_bytes().len() + control_plane + KEYS_AND_NONCE
    }

    /// Whether clusters wait for the answer to the last response before they can be sent.
    fn has_unsent_clusters(&self, source: &impl Source) -> bool {
        let unsent = |other: &Subscription| other.out.is_some() && (other.owes() || other.has_change(source));
        self.types.iter().any(|other| other.kind.place() == Place::Cluster && unsent(other))
    }

    /// Whether something that refers to clusters waits to be sent.
    fn has_unsent_front(&self, source: &impl Source) -> bool {
        let unsent = |other: &Subscription| other.owes() || V::has_push(other, source);
        self.types.iter().any(|other| other.kind.place().is_front() && unsent(other))
    }

    /// What a client needs again once it has what is being sent (DESIGN rule 11, S-ADS-20): the endpoints of the
    /// clusters that changed.
    fn refresh_dependents<S: Source>(&mut self, type_url: &TypeUrl, draft: &Draft, source: &S) {
        let Some(dependent_type) = source.dependent_type(type_url) else { return };
        let Some(dependents) = self.types.iter_mut().find(|other| other.type_url() == dependent_type) else { return };
        let mut refresh = |resource: &Resource| {
            let Some(name) = source.dependent(type_url, resource) else { return };
            let Some(dependent) = source.get(dependents.type_url(), &name).resource() else { return };
            let own = match dependents.interest.names.get(&*name) {
                Some(name) => Some(name.clone()),
                None => dependents.interest.covers(&name).then(|| ResourceName::from(&*name)),
            };
            let aliases: Vec<ResourceName> = dependents.aliases_of(source, dependent).cloned().collect();
            let comes_anyhow = dependents.cursor.is_none() || (dependents.sweep && dependents.progress.is_none());
            // By all its names, for some may leave.
            for wanted in own.into_iter().chain(aliases) {
                if let Some(initial) = &mut dependents.initial {
                    initial.doubt(&wanted); // though the client has it
                }
                if !comes_anyhow {
                    dependents.owed.insert(wanted);
                }
            }
        };
        match &draft.changed {
            Changed::WhatIsSent => {
                // What lives on is as it was.
                let sent = draft.parts.iter().filter(|part| !matches!(part, Part::Heartbeat(_)));
                sent.flat_map(Part::resources).for_each(refresh);
            }
            Changed::These(resources) => resources.iter().for_each(&mut refresh),
        }
    }

    fn close(&mut self, status: Status) {
        self.closed = true;
        self.actions.push(Action::Close(status));
    }

    fn drop_stale(&mut self, type_url: TypeUrl, nonce: Nonce, reason: DropReason) {
        if let Some(Action::DropStale { type_url: last, nonce: last_nonce, reason: last_reason, count }) =
            self.actions.last_mut()
        {
            if *last == type_url && *last_reason == reason {
                *count += 1;
                *last_nonce = nonce;
                return;
            }
        }
        self.actions.push(Action::DropStale { type_url, nonce, reason, count: 1 });
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

/// What a version ends in if what is gone is still there: it is not the version of what there is (DESIGN rule 13).
const STILL: char = '+';

/// The longest nonce that is reported; a longer one is nobody's.
const NONCE_BYTES: usize = 64;

/// A nonce that no other response of the process has (DESIGN rule 6): `stream.count`.
fn nonce(stream: StreamId, sent: u64) -> Nonce {
    let mut text = [0; 41]; // twice the digits of the largest number, and a dot
    let mut at = text.len();
    for number in [sent, stream.0] {
        if at < text.len() {
            at -= 1;
            text[at] = b'.';
        }
        let mut rest = number;
        loop {
            at -= 1;
            text[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
    }
    Nonce::ascii(&text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_made_of_the_stream_and_the_count() {
        assert_eq!(nonce(StreamId(0), 1), "0.1");
        assert_eq!(nonce(StreamId(17), 1200), "17.1200");
        assert_eq!(nonce(StreamId(u64::MAX), u64::MAX), "18446744073709551615.18446744073709551615");
    }
}
