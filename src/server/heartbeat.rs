//! When to say that resources with a TTL live on (xds_protocol.rst, "TTL").

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use super::of_type::OfType;
use super::pending::Pending;
use super::resource::Resource;
use super::sent::Sent;
use super::source::{Entry, Source};
use super::view::View;
use super::wanted::Wanted;
use crate::model::{Label, Relabel};
use crate::name::Version;
use crate::revision::Revision;
use crate::time::Instant;

/// However short a TTL is, heartbeats are not more frequent than this.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// Of a client that supports TTLs; of another nothing is here.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Heartbeat(Option<Box<Schedule>>);

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Schedule {
    due: Option<Instant>,
    /// What changed since this revision and was sent needs no heartbeat yet. `None`: something changed and was not sent, for
    /// it came to nothing, so that all does.
    said_to: Option<Revision>,
    /// The version that the client accepted last, by which a SotW heartbeat goes.
    accepted: Version,
}

impl Heartbeat {
    /// When heartbeats are due.
    #[inline]
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.as_ref()?.due
    }

    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// The version that the client accepted last, if it supports TTLs and accepted one.
    pub(super) fn accepted(&self) -> Option<&Version> {
        self.0.as_ref().map(|schedule| &schedule.accepted).filter(|version| !version.is_empty())
    }

    /// The client accepted a response.
    pub(super) fn accept(&mut self, version: &Version) {
        if let Some(schedule) = &mut self.0 {
            schedule.accepted = version.clone();
        }
    }

    /// What the client has from another stream may have little time left: it lives on at once (S-TTL-04).
    pub(super) fn claim(&mut self, now: Instant, at: Revision) {
        let schedule = self.0.get_or_insert_default();
        (schedule.due, schedule.said_to) = (Some(now), Some(at));
    }

    /// Something with a TTL changed and is as the client has it.
    pub(super) fn note_flap(&mut self) {
        if let Some(schedule) = &mut self.0 {
            schedule.said_to = None;
        }
    }

    /// A response was made; `said` tells whether it was the time for heartbeats. The next are due a third of the shortest TTL
    /// from now, so that one may be lost and one late (S-TTL-04). What is due before that stays, unless it was said now, or
    /// everything that it is about was sent.
    pub(super) fn schedule<'a, S: Source>(
        &mut self,
        now: Instant,
        of: OfType<'_, S>,
        wanted: &Wanted,
        said: bool,
        sent: impl Iterator<Item = &'a Resource>,
    ) {
        let ttls = || expiring(of, wanted).filter_map(|entry| entry.resource()?.ttl());
        let Some(shortest) = ttls().min() else {
            if let Some(schedule) = &mut self.0 {
                schedule.due = None;
            }
            return;
        };
        let next = now + (shortest / 3).max(SHORTEST_INTERVAL);
        let schedule = self.0.get_or_insert_default();
        let sent_all = || sent.filter(|resource| resource.ttl().is_some()).count() == ttls().count();
        match schedule.due {
            Some(due) if !said && !sent_all() => schedule.due = Some(due.min(next)),
            _ => (schedule.due, schedule.said_to) = (Some(next), Some(of.now())),
        }
    }

    /// What lives on: the client has it as it is, and was not sent it lately.
    pub(super) fn alive<'s, S: Source>(
        &self,
        of: OfType<'s, S>,
        wanted: &Wanted,
        view: &View,
        pending: &Pending,
    ) -> Vec<Resource> {
        let Some(schedule) = &self.0 else { return Vec::new() };
        let sent_lately = |entry: &Entry<'_>| schedule.said_to.is_some_and(|said_to| entry.since > said_to);
        let sent = Sent::new(of, wanted, view, pending, |resource| resource.ttl().is_some());
        let alive = expiring(of, wanted).filter(|entry| !sent_lately(entry));
        alive.filter_map(|entry| entry.resource().filter(|resource| sent.has(&entry, resource)).cloned()).collect()
    }
}

/// The wanted resources that have a TTL.
pub(super) fn expiring<'s, S: Source>(of: OfType<'s, S>, wanted: &Wanted) -> impl Iterator<Item = Entry<'s>> {
    of.expiring().filter(move |entry| entry.resource().is_some_and(|resource| wanted.wants(of, resource)))
}

impl Relabel for Heartbeat {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        if let Some(schedule) = &mut self.0 {
            schedule.due.relabel(by);
            schedule.said_to.relabel(by);
        }
    }
}
