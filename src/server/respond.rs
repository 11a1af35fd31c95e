//! The next response of a stream: which type has its turn, what it waits for, and what it sends.

use alloc::vec::Vec;
use core::marker::PhantomData;

use super::Server;
use super::claims::Claims;
use super::draft::{Draft, Order};
use super::exchange::Out;
use super::extent::Extent;
use super::nonce;
use super::order;
use super::response::Response;
use super::response_limit::{self, Budget};
use super::source::Source;
use super::variant::Variant;
use crate::name::Version;
use crate::time::Instant;

impl<V: Variant> Server<V> {
    /// Polls the types in turns, each turn in push order. `again`: whether a second turn may follow.
    pub(super) fn poll<S: Source>(&mut self, now: Instant, source: &S, again: bool) -> Option<Response<V>> {
        let count = self.types.len();
        for at in (self.turn..count).chain(0..self.turn) {
            if let Some(response) = self.poll_type(at, now, source) {
                // A type that always has something to send does not take the room of the others.
                self.turn = (at + 1) % count;
                return Some(response);
            }
            if self.closed {
                return None;
            }
        }
        self.turn = 0;
        // Removals of one type may wait for a name of another, which was answered by nothing in this turn.
        if again && self.types.iter().any(|of| of.defer_until.is_some()) {
            return self.poll(now, source, false);
        }
        self.idle = Some((source.revision(), self.poll_timeout()));
        None
    }

    /// Returns the next response of one type.
    fn poll_type<S: Source>(&mut self, at: usize, now: Instant, source: &S) -> Option<Response<V>> {
        let of = &mut self.types[at];
        of.hold = None;
        if !source.is_known(of.type_url()) {
            return None;
        }
        let heartbeats_due = of.heartbeat.is_due(now);
        // A full-state type that repeats everything has nothing to wait for.
        let has_all = heartbeats_due && V::heartbeats_with_all(of);
        let waits_until = of.exchange.waits_until(now).filter(|_| !has_all);
        let answers = V::ANSWERS_AT_ONCE && of.pending.is_new() && of.exchange.has_room_for_answers();
        if waits_until.is_some() && !answers {
            return self.wait(at, now, waits_until, heartbeats_due, source);
        }
        // Removals that the claims reveal are sent below.
        let claimed = of.pending.claims().is_some_and(Claims::is_unsettled);
        if claimed {
            let settings = self.config.settings();
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
            (of.defer_until, of.clusters_until) = (None, None); // nothing waits for other types
            return None;
        }
        let for_clusters = self.wait_for_clusters(at, now, source);
        let order = self.order(at, now, waits_until.or(for_clusters).is_some(), source);
        let of = &mut self.types[at];
        if order.answers_only && of.pending.is_empty() && of.view.sent_to().is_some() {
            of.hold = waits_until.or(for_clusters);
            if !heartbeats_due {
                return None;
            }
            if let Some(until) = of.hold.filter(|_| V::heartbeats_with_all(of)) {
                of.heartbeat.put_off(until); // such heartbeats would carry the changes that wait
                return None;
            }
        }
        if let Some(version) = V::version_of_heartbeats(of).filter(|_| heartbeats_due) {
            if let Some(response) = self.beat(at, now, version, source) {
                return Some(response);
            }
        }
        let of = &mut self.types[at];
        let mut draft = Draft::default();
        draft.must_send |= of.pending.reply();
        if let Err(status) = V::draft(of, source, order, &mut draft) {
            self.close(status);
            return None;
        }
        if heartbeats_due {
            V::add_heartbeats(of, source, &mut draft);
        }
        let extent = of.note_sent(now, self.config.settings().removal_delay, order.names, source, &mut draft);
        if self.ttl && (draft.must_send || heartbeats_due) {
            of.schedule_heartbeats(now, source, heartbeats_due, &draft);
        }
        if !order.answers_only {
            of.clusters_until = None; // a later change waits for the clusters that change with it
        }
        if !draft.must_send {
            of.hold = waits_until.or(for_clusters);
            return None;
        }
        let type_url = of.type_url().clone();
        order::refresh_dependents(&mut self.types, &type_url, &draft, source, order.names);
        let version = draft.version(source.version(&type_url), V::NAMES_REMOVALS);
        draft.only_beats = self.ttl && draft.has_only_beats();
        Some(self.respond(at, now, version, extent, draft))
    }

    /// Waits for the ACK or NACK of the last response. Heartbeats go out beside it (S-TTL-04).
    fn wait<S: Source>(
        &mut self,
        at: usize,
        now: Instant,
        until: Option<Instant>,
        heartbeats_due: bool,
        source: &S,
    ) -> Option<Response<V>> {
        if heartbeats_due {
            let of = &self.types[at];
            let version = of.exchange.version_out().filter(|_| !V::NAMES_REMOVALS).cloned();
            let version = version.unwrap_or_else(|| source.version(of.type_url()));
            if let Some(response) = self.beat(at, now, version, source) {
                return Some(response);
            }
        }
        let (of, wait) = (&mut self.types[at], self.config.settings().answer_wait);
        if !of.is_quiet(source) {
            of.hold = until;
            if of.resource_type.push_order().refers_to_clusters() {
                of.clusters_until.get_or_insert(now + wait);
            }
        } else {
            of.clusters_until = None;
        }
        None
    }

    /// Returns the time until which the changes of a type wait for unsent clusters; `None` if they do not wait.
    fn wait_for_clusters<S: Source>(&mut self, at: usize, now: Instant, source: &S) -> Option<Instant> {
        let of = &self.types[at];
        let waits = of.resource_type.push_order().refers_to_clusters()
            && of.has_news(source)
            && order::has_unsent_clusters(&self.types, now, source);
        let until = &mut self.types[at].clusters_until;
        if !waits {
            *until = None;
            return None;
        }
        let until = *until.get_or_insert(now + self.config.settings().answer_wait);
        Some(until).filter(|until| now < *until)
    }

    /// Returns a response with heartbeats alone, if a resource needs one, and schedules the next ones.
    fn beat<S: Source>(&mut self, at: usize, now: Instant, version: Version, source: &S) -> Option<Response<V>> {
        let of = &mut self.types[at];
        let mut draft = Draft::default();
        // In SotW the version that the client will have accepted by then is not known, and a heartbeat has only that.
        let with_content = !V::NAMES_REMOVALS && of.exchange.is_out();
        of.add_heartbeats(source, with_content, &mut draft);
        of.schedule_heartbeats(now, source, true, &draft);
        if !draft.must_send {
            return None;
        }
        draft.only_beats = true;
        let extent = Extent::of_names(source.revision(), core::mem::take(&mut draft.answered));
        Some(self.respond(at, now, version, extent, draft))
    }

    /// Returns the constraints of the other types and of the configuration on a response. `answers_only`: changes wait.
    fn order<S: Source>(&self, at: usize, now: Instant, answers_only: bool, source: &S) -> Order {
        let (settings, of) = (self.config.settings(), &self.types[at]);
        let defer_removals = (V::NAMES_REMOVALS || settings.sotw_removal_delay)
            && of.resource_type.push_order().is_referred_to()
            && of.defer_until.is_none_or(|until| now < until)
            && !settings.removal_delay.is_zero()
            && order::has_unsent_front::<V, S>(&self.types, source);
        Order {
            answers_only,
            defer_removals,
            budget: Budget::new(settings.response_limit, || {
                let control_plane = settings.control_plane.as_deref().unwrap_or_default();
                response_limit::envelope_bytes(of.type_url(), &source.version(of.type_url()), control_plane)
            }),
            names: settings.limits.names_per_type,
        }
    }

    fn respond(&mut self, at: usize, now: Instant, version: Version, extent: Extent, mut draft: Draft) -> Response<V> {
        self.sent += 1;
        let of = &mut self.types[at];
        let nonce = nonce::nonce(self.stream, self.sent);
        let mut revision = of.view.sent_to().unwrap_or_default();
        let mut until = Some(now + self.config.settings().answer_wait);
        if draft.only_beats {
            until = None;
            revision = of.exchange.revision_before().unwrap_or(revision);
        }
        let beats = core::mem::take(&mut draft.beats);
        let out = Out {
            nonce: nonce.clone(),
            version: version.clone(),
            revision,
            extent,
            until,
            beats,
            is_replaced: false,
            shares: Vec::new(),
            refused: None,
        };
        of.exchange.send(now, out);
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
}
