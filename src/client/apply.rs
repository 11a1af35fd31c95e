//! The processing of responses, from receipt to verdict.
//!
//! A response passes three stages. The client reads it on receipt (`Protocol::read`), classifies it once earlier
//! responses are processed (`classify.rs`), and then applies it here. The rest is an update for the application, which
//! its verdict settles.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

use super::action::{Action, Effect, Failed};
use super::classify::Classified;
use super::config::{DataErrors, Limits, Settings};
use super::failure::{Cause, Effects, Failure};
use super::guard::Guard;
use super::holdings::{Absence, Held, Taken};
use super::in_flight::{Out, PendingAck, Seen};
use super::incoming::{Heartbeat, Incoming, Merged};
use super::subscription::Subscription;
use super::timers::Asked;
use super::update::{Offer, Rejection, Token, Update, Verdict};
use super::variant::Protocol;
use super::waiting::Merging;
use crate::error::{Code, Misuse, Status};
use crate::name::{ResourceName, Version, WILDCARD};
use crate::time::Instant;

impl<T: Clone> Subscription<T> {
    /// Merges the names that were subscribed to since the last call.
    pub(super) fn merge_added_names<V: Protocol<StreamState = T>>(&mut self) {
        let mut names_added = self.take_names_added();
        if names_added.is_empty() {
            return;
        }
        names_added.retain(|name| !self.wants(name.as_str()));
        if self.announced.asked() {
            names_added.iter().for_each(|name| V::subscribed(self, name));
        }
        if !self.failures.is_empty() {
            // A new subscription by name is answered, even if the error is the same as before.
            let asked_for = |name: &&ResourceName| !self.holdings.has(name.as_str());
            names_added.iter().filter(asked_for).for_each(|name| _ = self.failures.remove(name));
        }
        self.holdings.want(names_added);
    }

    pub(super) fn unsubscribe<V: Protocol<StreamState = T>>(&mut self, name: &str, settings: &Settings) {
        if let Some(name) = self.remove_name(name, V::ALIASES, settings) {
            V::unsubscribed(self, &name, settings);
        }
    }

    /// Reads a response and queues it.
    pub(super) fn receive<V: Protocol<StreamState = T>>(
        &mut self,
        now: Instant,
        response: V::Response,
        settings: &Settings,
    ) {
        self.merge_added_names::<V>();
        let mut incoming = V::read(response, self.in_flight.count(), settings, &self.resource_type, &self.holdings);
        if !settings.ttl {
            incoming.resources.drop_ttls();
        }
        // C-TIMER-07: a received resource exists, even if it is broken or still queued.
        if self.timers.running() <= incoming.resources.len() {
            self.timers.stop_where(|name| incoming.mentions(name));
        } else {
            let aliases = incoming.resources.with_aliases().flat_map(|resource| resource.aliases());
            for name in incoming.resources.names().chain(incoming.others()).chain(aliases) {
                self.timers.stop(name);
                if let Some(glob) = self.holdings.globs().of(name.as_str()) {
                    self.timers.stop(glob);
                }
            }
        }
        self.note_life::<V>(now, &mut incoming);
        self.in_flight.wait(incoming, &self.merging::<V>(settings));
    }

    fn merging<V: Protocol<StreamState = T>>(&self, settings: &Settings) -> Merging {
        Merging::new(V::ANSWERS_EACH, self.resource_type.has_heartbeats(), &settings.limits)
    }

    /// Starts the existence timers of the names in a request that the transport has taken.
    pub(super) fn sent<V: Protocol<StreamState = T>>(&mut self, now: Instant, seq: u64, settings: &Settings) {
        while let Some(asked) = self.timers.take_asked(seq) {
            let names = match asked {
                Asked::All => self.holdings.names().cloned().collect(),
                Asked::These(names) => names,
            };
            for name in names {
                if let Some(timeout) = V::timeout(self, &name, settings).filter(|_| self.is_awaited(&name)) {
                    self.timers.start(&name, now, timeout);
                }
            }
        }
    }

    /// Processes the waiting responses, up to one with an update for the application.
    pub(super) fn advance<V: Protocol<StreamState = T>>(
        &mut self,
        now: Instant,
        epoch: u64,
        settings: &Settings,
        act: &mut impl FnMut(Action),
    ) {
        let merging = self.merging::<V>(settings);
        while let Some(incoming) = self.in_flight.next(&merging) {
            if self.in_flight.take_overflowed() {
                self.ask_for_all::<V>(settings);
            }
            let classified = self.classify::<V>(incoming, settings);
            self.apply::<V>(now, epoch, classified, settings, act);
        }
    }

    /// Requests everything again, because a response was refused while too much waited.
    fn ask_for_all<V: Protocol<StreamState = T>>(&mut self, settings: &Settings) {
        let names: Vec<ResourceName> = self.holdings.names().cloned().collect();
        if V::ANSWERS_EACH {
            V::refetch(self, names, settings);
        } else {
            V::ask_anew(self, names);
        }
    }

    /// The third stage: applies a response, and emits an update for the application to judge.
    fn apply<V: Protocol<StreamState = T>>(
        &mut self,
        now: Instant,
        epoch: u64,
        classified: Classified,
        settings: &Settings,
        act: &mut impl FnMut(Action),
    ) {
        let Classified { mut incoming, answers_all, synced, gone } = classified;
        let only_heartbeats = incoming.has_only_heartbeats();
        if answers_all {
            self.holdings.note_all_answered();
        }
        V::processed(self, &incoming);
        for name in incoming.faults().filter_map(|fault| fault.name.as_ref()) {
            self.holdings.note_rejected(name);
        }
        let mut effects = Effects { removed: gone.removed, ..Effects::default() };
        for (name, claim) in gone.missing {
            self.timers.stop(&name);
            let absence = Absence { version: incoming.resources.version().clone(), at: now, claim };
            if self.holdings.set_does_not_exist(&name, Some(absence)) {
                effects.missing.push(name);
            }
        }
        self.holdings.unbind(&gone.unbound);
        self.record_deletions(now, incoming.resources.version(), settings, &mut effects);
        self.record_errors::<V>(now, &mut incoming, settings, &mut effects);
        self.apply_heartbeats::<V>(now, &mut incoming);
        // C-RES-12: a resource that is not wanted is ignored, including its faults.
        let takes = |fault: &Rejection| fault.name.as_ref().is_none_or(|name| V::takes(self, name.as_str()));
        incoming.faults.retain(takes);
        incoming.merged.iter_mut().for_each(|merged| merged.faults.retain(takes));
        self.note_faults(now, &incoming, settings, &mut effects);
        self.keep_wanted::<V>(&mut incoming, &effects);
        let type_url = self.type_url().clone();
        if !effects.failed.is_empty() {
            act(Action::Errors { type_url: type_url.clone(), errors: effects.take_failed() });
        }
        if !effects.missing.is_empty() {
            act(Action::DoesNotExist { type_url: type_url.clone(), names: effects.missing });
        }
        let merged = incoming.merged.iter().map(|merged| (&merged.nonce, &merged.faults));
        for (nonce, faults) in merged.chain([(&incoming.nonce, &incoming.faults)]).filter(|(_, it)| !it.is_empty()) {
            let (nonce, faults) = (nonce.clone(), faults.clone());
            act(Action::Rejected { type_url: type_url.clone(), nonce, faults });
        }
        let has_all = incoming.has_all;
        let mut not_found = core::mem::take(&mut incoming.not_found);
        not_found.retain(|(name, _)| effects.removed.binary_search(name).is_ok());
        let out = self.offer(epoch, incoming, effects.removed, settings);
        let completes = V::completes(self);
        let by_wildcard = completes && self.wants(WILDCARD);
        let unheard = if V::CLAIMS_HELD_VERSIONS || by_wildcard { Vec::new() } else { self.unheard() };
        let completes = (!only_heartbeats).then_some(completes);
        let out = Out { not_found, has_all, completes, unheard, ..out };
        if !out.offer.resources.is_empty() || !out.offer.removed.is_empty() {
            act(Action::Apply(Update { token: out.token.clone(), offer: out.offer.clone() }));
            self.in_flight.set_out(out);
            self.holdings.end_extensions(|name| self.in_flight.has_content(name.as_str()));
            return;
        }
        if synced && out.is_faultless() && self.holdings.names().len() > 0 {
            act(Action::Synced { type_url, answers_wildcard: self.all_answered() });
        }
        self.settle::<V>(now, out, Vec::new(), settings);
    }

    /// Returns whether the wildcard is subscribed to and answered.
    fn all_answered(&self) -> bool {
        self.wants(WILDCARD) && self.holdings.is_answered(WILDCARD)
    }

    /// Returns the held names that the server may not have known when it made the last response: each resource came by
    /// a wildcard, which was unsubscribed before the name was announced.
    fn unheard(&self) -> Vec<ResourceName> {
        let is_held = |name: &&ResourceName| self.holdings.held().contains_key(*name);
        self.announced.unheard().filter(is_held).cloned().collect()
    }

    /// Keeps only the wanted resources of a response.
    fn keep_wanted<V: Protocol<StreamState = T>>(&self, incoming: &mut Incoming, effects: &Effects) {
        if V::takes(self, WILDCARD) {
            return;
        }
        let owners = self.alias_owners::<V>(incoming);
        let by_alias = owners.iter().filter(|(alias, _)| V::takes(self, alias.as_str())).map(|(_, name)| name);
        let by_alias: BTreeSet<&ResourceName> = by_alias.collect();
        let stays = |name: &ResourceName| effects.removed.binary_search(name).is_err(); // not without its last alias
        incoming.resources.retain(|resource| {
            let name = resource.name();
            (V::takes(self, name.as_str()) || by_alias.contains(name)) && stays(name)
        });
    }

    /// Returns the part of a response that the application has to judge.
    fn offer(&self, epoch: u64, mut incoming: Incoming, removed: Vec<ResourceName>, settings: &Settings) -> Out {
        let seen = incoming.compared.then(|| Seen {
            losses: self.holdings.losses(),
            new: core::mem::take(&mut incoming.new),
            plain: incoming.resources.is_plain(),
        });
        let (client, type_url) = (settings.id, self.type_url().clone());
        let (serial, nonce, guard) = (incoming.serial, incoming.nonce, Guard::default());
        let token = Token { client, type_url, epoch, serial, nonce, guard };
        let drops_rejected = settings.data_errors == DataErrors::Drop;
        let all_fails = self.failures.contains_key(WILDCARD);
        let all_answered = self.all_answered();
        let offer = Arc::new(Offer { resources: incoming.resources, removed, drops_rejected, all_fails, all_answered });
        let (unsubscribed, unannounced) = (BTreeSet::new(), BTreeSet::new());
        let (not_found, has_all, completes, unheard) = (Vec::new(), false, None, Vec::new());
        Out {
            token,
            offer,
            faults: incoming.faults,
            code: incoming.code,
            merged: incoming.merged,
            late_errors: incoming.late_errors,
            not_found,
            has_all,
            completes,
            unheard,
            live: true,
            unsubscribed,
            unannounced,
            seen,
        }
    }

    /// Notes at once what a response says of the life of held resources, though the response may have to wait: a
    /// heartbeat renews the TTL (C-TTL-02), and newer content of a resource, or a heartbeat of that content, keeps the
    /// held content alive until the verdict.
    fn note_life<V: Protocol<StreamState = T>>(&mut self, now: Instant, incoming: &mut Incoming) {
        if !self.holdings.has_extensions() && self.holdings.next_expiry().is_none() {
            if incoming.heartbeats.is_empty() {
                return;
            }
        } else {
            for resource in incoming.resources.iter() {
                self.holdings.extend(resource.name(), resource.ttl().map(|ttl| now + ttl));
            }
        }
        let version = incoming.resources.version().clone();
        let mut heartbeats = core::mem::take(&mut incoming.heartbeats);
        for heartbeat in &mut heartbeats {
            let matches = |held: &Held| V::heartbeat_matches(self, held, heartbeat, &version);
            let Some(held) = self.holdings.held().get(&heartbeat.name) else { continue };
            let until = heartbeat.ttl.map(|ttl| now + ttl);
            if matches(held) {
                heartbeat.renewed = true;
                self.holdings.renew(&heartbeat.name, until);
                continue;
            }
            let mut unjudged = self.in_flight.unjudged_content(heartbeat.name.as_str());
            if unjudged.any(|content| V::heartbeat_matches_unjudged(content, heartbeat, &version)) {
                self.holdings.extend(&heartbeat.name, until);
            }
        }
        incoming.heartbeats = heartbeats;
    }

    /// Applies the heartbeats of a response that did not renew a held resource when they were read: they may be those of
    /// content that was accepted since. A heartbeat renews the TTL (C-TTL-02, C-TTL-03) and does nothing else. A
    /// heartbeat with a version that is not held is a resource without content, and a fault unless the server sent it
    /// for an earlier subscription (C-DELTA-17).
    fn apply_heartbeats<V: Protocol<StreamState = T>>(&mut self, now: Instant, incoming: &mut Incoming) {
        for heartbeat in core::mem::take(&mut incoming.heartbeats).into_iter().filter(|heartbeat| !heartbeat.renewed) {
            let matches = |held: &Held| V::heartbeat_matches(self, held, &heartbeat, incoming.resources.version());
            if self.holdings.held().get(&heartbeat.name).is_some_and(matches) {
                self.holdings.renew(&heartbeat.name, heartbeat.ttl.map(|ttl| now + ttl));
            } else if self.is_selected(&heartbeat) {
                let reason = "no content, and no heartbeat of what is held";
                incoming.fault_in(heartbeat.serial, heartbeat.name, reason);
            }
        }
    }

    /// Returns whether a name that the server knows to be subscribed, or the wildcard, selects the resource of a
    /// heartbeat. Such a resource expired, and the server sends its content again only if the heartbeat is rejected.
    fn is_selected(&self, heartbeat: &Heartbeat) -> bool {
        let by_glob = |name: &ResourceName| {
            self.holdings.globs().of(name.as_str()).is_some_and(|glob| self.is_announced(glob.as_str()))
        };
        let mut names = heartbeat.aliases.iter().chain([&heartbeat.name]);
        self.is_announced(WILDCARD) || names.any(|name| self.is_announced(name.as_str()) || by_glob(name))
    }

    // Verdicts.

    /// Applies a verdict. Returns the errors that were reported meanwhile of content in the update.
    pub(super) fn verdict<V: Protocol<StreamState = T>>(
        &mut self,
        now: Instant,
        verdict: Verdict,
        settings: &Settings,
    ) -> Result<Vec<Failed>, Misuse> {
        let Some(mut out) = self.in_flight.take_out(&verdict.token) else {
            return Err(Misuse::UnknownUpdate { type_url: self.type_url().clone() });
        };
        self.merge_added_names::<V>();
        let late = out.take_late_errors();
        self.settle::<V>(now, out, verdict.rejections, settings);
        let mut effects = Effects::default();
        late.into_iter().for_each(|mut late| self.record_errors::<V>(now, &mut late, settings, &mut effects));
        Ok(effects.take_failed())
    }

    /// Commits the accepted part of an update, and answers the response if its stream is still open.
    fn settle<V: Protocol<StreamState = T>>(
        &mut self,
        now: Instant,
        out: Out,
        rejections: Vec<Rejection>,
        settings: &Settings,
    ) {
        let rejected: BTreeSet<&ResourceName> =
            rejections.iter().filter_map(|rejection| rejection.name.as_ref()).collect();
        let whole = rejections.is_empty() && out.is_faultless();
        let implied = whole && V::implies_version(&self.resource_type);
        if whole {
            out.unheard.iter().for_each(|name| self.holdings.unclaim(name));
        }
        self.holdings.take(now, &Taken { out: &out, rejected: &rejected, implied, aliases: V::ALIASES });
        self.drop_uncovered_failures::<V>();
        if !out.unannounced.is_empty() {
            self.note_taken_unannounced(&out, &rejected);
        }
        self.note_verdict(now, &out, &rejections, &rejected, settings);
        let mut in_part = out.offer.resources.names().any(|name| !rejected.contains(name));
        for name in &out.offer.removed {
            if rejected.contains(name) && self.holdings.covers(name.as_str()) {
                continue; // the resource stays
            }
            self.note_gone(now, &out, name);
            in_part = true;
        }
        self.holdings.end_extensions(|name| self.in_flight.has_content(name.as_str()));
        let version = out.offer.resources.version();
        // Heartbeats under the accepted version undo no part of a later response that was accepted.
        let repeats = out.completes.is_none() && version == self.holdings.version();
        if whole && !repeats {
            self.holdings.set_version(now, version.clone());
            if out.completes == Some(false) && !self.resource_type.is_full_state() {
                self.holdings.set_incomplete(WILDCARD); // this version may not cover all resources
            }
        } else if !whole && in_part {
            self.holdings.note_part_accepted();
        }
        if !out.live {
            return;
        }
        if whole {
            let Self { holdings, announced, failures, .. } = self;
            // No version covers an error of the server. A resource that was rejected before is gone.
            let is_complete = |name: &ResourceName| {
                announced.is_confirmed(name.as_str())
                    && failures.get(name).is_none_or(|failure| failure.cause != Cause::Server)
            };
            if out.has_all {
                holdings.forget_lapsed(); // the response would have had them
                holdings.complete_names(is_complete);
            }
            if out.completes == Some(true) && V::completes(self) {
                self.holdings.complete_all();
            }
        }
        self.answer(out, &rejections, &settings.limits);
    }

    /// Answers a response, and before it those that were merged into it: each with the faults of what it had.
    fn answer(&mut self, out: Out, rejections: &[Rejection], limits: &Limits) {
        let version = self.holdings.version().clone();
        let has = |merged: &Merged, rejection: &Rejection| rejection.name.as_ref().is_some_and(|name| merged.has(name));
        for merged in &out.merged {
            let own = rejections.iter().filter(|rejection| has(merged, rejection));
            let error = nack(merged.code, merged.faults.iter().chain(own), limits.error_bytes);
            let (nonce, serial, version) = (merged.nonce.clone(), merged.serial, version.clone());
            self.in_flight.answer(PendingAck { nonce, serial, version, error }, limits.waiting_responses);
        }
        let own = rejections.iter().filter(|rejection| !out.merged.iter().any(|merged| has(merged, rejection)));
        let error = nack(out.code, out.faults.iter().chain(own), limits.error_bytes);
        let Token { nonce, serial, .. } = out.token;
        self.in_flight.answer(PendingAck { nonce, serial, version, error }, limits.waiting_responses);
    }

    /// Notes that the application accepted the removal of a resource.
    fn note_gone(&mut self, now: Instant, out: &Out, name: &ResourceName) {
        let anew = out.unsubscribed.contains(name);
        self.holdings.remove(name, anew);
        if anew || !self.wants(name.as_str()) {
            self.failures.remove(name);
            return;
        }
        let exists = |failure: &Failure| !failure.status.is(Code::NotFound);
        if !self.failures.get(name).is_some_and(exists) {
            let claim = out.not_found.iter().find(|(other, _)| other == name).map(|(_, version)| version.clone());
            let absence = Absence { version: out.offer.resources.version().clone(), at: now, claim };
            self.holdings.set_does_not_exist(name, Some(absence));
        }
        self.timers.stop(name);
    }

    // Time.

    /// Handles the time-outs that are due: names that are missing, and resources that expired.
    pub(super) fn timeout<V: Protocol<StreamState = T>>(
        &mut self,
        now: Instant,
        settings: &Settings,
        act: &mut impl FnMut(Action),
    ) {
        let (mut missing, mut failed) = (Vec::new(), Vec::new());
        while let Some(name) = self.timers.take_due(now) {
            if self.announced.time_out(&name) || name.is_wildcard() {
                continue;
            }
            if settings.transient_timeout {
                let status = Status::new(Code::Unavailable, "the resource did not come in time");
                self.fail(&name, Cause::TimedOut, status.clone(), &Version::default(), now, settings);
                failed.push(Failed { name, status, effect: Effect::Fails });
            } else if self.holdings.set_does_not_exist(&name, None) {
                self.failures.remove(&name);
                missing.push(name);
            }
        }
        if !failed.is_empty() {
            failed.sort_by(|a, b| a.name.cmp(&b.name));
            act(Action::Errors { type_url: self.type_url().clone(), errors: failed });
        }
        if !missing.is_empty() {
            missing.sort();
            act(Action::DoesNotExist { type_url: self.type_url().clone(), names: missing });
        }
        let limit = if self.announced.asked() { settings.limits.resources_per_type } else { 0 };
        let expired = self.holdings.expire(now, limit);
        for name in expired.iter().filter(|name| !self.holdings.wants(name.as_str())) {
            self.failures.remove(name);
        }
        if !expired.is_empty() {
            act(Action::Expired { type_url: self.type_url().clone(), names: expired });
        }
    }
}

/// Returns the `error_detail` of a NACK, whose code is never 0 (C-SOTW-04); `None` without rejections.
fn nack<'a>(code: Code, rejections: impl Iterator<Item = &'a Rejection>, limit: usize) -> Option<Status> {
    let (mut message, mut any) = (String::new(), false);
    for rejection in rejections {
        any = true;
        if message.len() > limit {
            break;
        }
        let gap = if message.is_empty() { "" } else { "; " };
        let written = match &rejection.name {
            Some(name) => write!(message, "{gap}{name}: {}", rejection.reason),
            None => write!(message, "{gap}{}", rejection.reason),
        };
        debug_assert!(written.is_ok(), "a string takes all there is");
    }
    any.then(|| {
        let mut status = Status::new(code, message);
        status.truncate(limit);
        status
    })
}
