//! Errors of single resources: reported by the server (cncf/xds TP3), rejected, deleted and kept, or not received in
//! time. A resource without an error has no entry (gRFC A88).

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

use super::action::Effect;
use super::config::{DataErrors, Settings};
use super::failure::{Cause, Effects, Failure};
use super::in_flight::Out;
use super::incoming::Incoming;
use super::subscription::Subscription;
use super::update::Rejection;
use super::variant::Protocol;
use crate::error::{Code, Status};
use crate::name::{ResourceName, Version, WILDCARD};
use crate::time::Instant;
use crate::xdstp::Parts;

impl<T> Subscription<T> {
    /// Keeps deleted resources that are held, if configured, and records an error of each (gRFC A53, gRFC A88).
    pub(super) fn record_deletions(
        &mut self,
        now: Instant,
        version: &Version,
        settings: &Settings,
        effects: &mut Effects,
    ) {
        if settings.data_errors != DataErrors::Keep {
            for name in effects.removed.iter().chain(&effects.missing) {
                self.failures.remove(name);
            }
            return;
        }
        for name in core::mem::take(&mut effects.removed) {
            let stream_state = |failure: &Failure| failure.status.is(Code::NotFound);
            if !self.failures.get(&name).is_some_and(stream_state) {
                let status = Status::new(Code::NotFound, "the server deleted the resource");
                self.holdings.unclaim(&name);
                self.fail(&name, Cause::Deleted, status.clone(), version, now, settings);
                effects.fail(name, status, Effect::Ambient);
            }
        }
    }

    /// Drops the errors of resources that no name covers any more, because their alias stands for another one now.
    pub(super) fn drop_uncovered_failures<V: Protocol<StreamState = T>>(&mut self) {
        if V::ALIASES && !self.failures.is_empty() {
            let Self { failures, holdings, .. } = self;
            failures.retain(|name, _| holdings.covers(name.as_str()));
        }
    }

    /// Records the errors that the server reports. An error is kept until another error or a resource replaces it,
    /// because a server reports it once.
    pub(super) fn record_errors<V: Protocol<StreamState = T>>(
        &mut self,
        now: Instant,
        incoming: &mut Incoming,
        settings: &Settings,
        effects: &mut Effects,
    ) {
        let errors = core::mem::take(&mut incoming.errors);
        let of_all = |name: &str| name.is_empty() || name == WILDCARD;
        let said_more = !incoming.resources.is_empty() || errors.is_empty();
        if said_more && !incoming.refused && !errors.iter().any(|error| of_all(error.name.as_str())) {
            self.failures.remove(WILDCARD);
        }
        let said = if errors.is_empty() { Vec::new() } else { effects.removed.clone() };
        for error in errors {
            // An error of a collection has the collection's name: empty is the legacy wildcard (TP3).
            let all = of_all(error.name.as_str());
            let name = if all { WILDCARD.into() } else { error.name };
            if !V::takes(self, name.as_str()) {
                if all && !self.wants(WILDCARD) {
                    incoming.fault(None, "an error has no name"); // C-ERR-06
                }
                continue;
            }
            let Some(mut status) = error.status.filter(|status| status.code != 0) else {
                incoming.fault(None, format!("the error of {name} has no status")); // C-ERR-06
                continue;
            };
            let there = incoming.resources.find(name.as_str()).is_some();
            if there || incoming.has_heartbeat(&name) {
                continue; // C-ERR-08
            }
            status.truncate(settings.limits.error_bytes);
            let does_not_exist = self.holdings.does_not_exist(name.as_str());
            let awaited = self.wants(name.as_str()) && status.is(Code::NotFound) && !does_not_exist;
            let news_to = !self.holdings.has(name.as_str()) && awaited;
            let same = |failure: &&mut Failure| failure.cause == Cause::Server && failure.status == status;
            if let Some(failure) = self.failures.get_mut(&name).filter(same).filter(|_| !news_to) {
                failure.standing = true;
            } else {
                let effect = self.effect(&name, &status, settings, &said, effects);
                self.fail(&name, Cause::Server, status.clone(), incoming.resources.version(), now, settings);
                effects.fail(name, status, effect);
            }
        }
        effects.sort();
    }

    /// Applies an error that the server reports, and returns its effect.
    fn effect(
        &mut self,
        name: &ResourceName,
        status: &Status,
        settings: &Settings,
        removed: &[ResourceName],
        effects: &mut Effects,
    ) -> Effect {
        if name.is_wildcard() {
            return if self.holdings.held().is_empty() { Effect::Fails } else { Effect::Ambient };
        }
        if self.holdings.has_member(name) {
            return Effect::Ambient;
        }
        let gone = status.is(Code::NotFound);
        if self.holdings.has(name.as_str()) {
            let said = removed.binary_search(name).is_ok();
            let removes = match settings.data_errors {
                DataErrors::Keep => false,
                DataErrors::Delete => gone,
                DataErrors::Drop => status.is_data_error(),
            };
            if removes && !said {
                effects.removed.push(name.clone());
            }
            if removes || said {
                return Effect::Removes;
            }
            self.holdings.unclaim(name);
            return Effect::Ambient;
        }
        // NOT_FOUND means the same as a time-out that passed, or a removal (TP3).
        if gone && self.holdings.set_does_not_exist(name, None) {
            self.timers.stop(name);
            effects.missing.push(name.clone());
        }
        Effect::Fails
    }

    /// Records the faults that the machine itself found, which count as rejections.
    pub(super) fn note_faults(
        &mut self,
        now: Instant,
        incoming: &Incoming,
        settings: &Settings,
        effects: &mut Effects,
    ) {
        for Rejection { name, reason } in incoming.faults() {
            let Some(name) = name else { continue };
            let dropped = settings.data_errors == DataErrors::Drop && self.holdings.has(name.as_str());
            if dropped {
                effects.removed.push(name.clone());
            }
            let status = Status::new(Code::InvalidArgument, reason.as_str());
            self.fail(name, Cause::Rejected, status, incoming.resources.version(), now, settings);
        }
        effects.sort();
    }

    /// Records the verdict on an update: accepted resources lose their errors, rejected resources get one, and are
    /// removed if configured.
    pub(super) fn note_verdict(
        &mut self,
        now: Instant,
        out: &Out,
        rejections: &[Rejection],
        rejected: &BTreeSet<&ResourceName>,
        settings: &Settings,
    ) {
        let accepted =
            |name: &ResourceName| out.offer.resources.find(name.as_str()).is_some() && !rejected.contains(name);
        let by_member = |name: &ResourceName| {
            let glob = Parts::of(name.as_str()).filter(|_| name.is_glob());
            glob.is_some_and(|glob| {
                out.offer.resources.names().any(|name| glob.has(name.as_str()) && !rejected.contains(name))
            })
        };
        self.failures.retain(|name, _| !accepted(name) && !by_member(name));
        for Rejection { name, reason } in rejections {
            let Some(name) =
                name.as_ref().filter(|name| self.holdings.covers(name.as_str()) && !out.unsubscribed.contains(*name))
            else {
                continue;
            };
            let Some(at) = out.offer.resources.find(name.as_str()) else {
                if out.offer.removed.binary_search(name).is_ok() {
                    let status = Status::new(Code::InvalidArgument, reason.as_str());
                    self.fail(name, Cause::Rejected, status, out.offer.resources.version(), now, settings);
                }
                continue;
            };
            if settings.data_errors == DataErrors::Drop {
                self.holdings.drop_rejected(name);
                if !self.holdings.covers(name.as_str()) {
                    continue; // only an alias stood for it, which is free now
                }
            }
            let (status, resource) = (Status::new(Code::InvalidArgument, reason.as_str()), out.offer.resources.at(at));
            self.fail(name, Cause::Rejected, status, resource.version(), now, settings);
        }
    }

    /// Records an error of a name that a subscription covers. A server can report errors of any number of names that
    /// are neither subscribed to by name nor held, so the number of errors is limited.
    pub(super) fn fail(
        &mut self,
        name: &ResourceName,
        cause: Cause,
        mut status: Status,
        version: &Version,
        now: Instant,
        settings: &Settings,
    ) {
        let known = self.wants(name.as_str()) || self.holdings.has(name.as_str());
        if known || self.failures.len() < settings.limits.resources_per_response {
            status.truncate(settings.limits.error_bytes);
            let (standing, version) = (cause == Cause::Server, version.clone());
            self.failures.insert(name.clone(), Failure { cause, standing, status, version, at: now });
        }
    }

    /// Returns whether the absence of a name from a response of a full-state type means nothing: the server reported an
    /// error of it on this stream, and need not repeat it (C-ERR-07).
    pub(super) fn is_excused(&self, name: &ResourceName) -> bool {
        self.failures.get(name).is_some_and(|failure| failure.standing)
    }
}
