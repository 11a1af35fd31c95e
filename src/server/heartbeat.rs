//! The schedule of heartbeats for resources with a TTL (xds_protocol.rst, "TTL").

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use super::changes;
use super::draft::Draft;
use super::of_type::OfType;
use super::pending::Pending;
use super::resource::Resource;
use super::sent::Sent;
use super::source::{Entry, Source};
use super::view::View;
use super::wanted::Wanted;
use crate::model::{Label, Relabel};
use crate::name::{ResourceName, Version};
use crate::time::Instant;

/// The minimum interval of heartbeats, however short a TTL is.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// The schedule of a client that supports TTLs; empty for other clients.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Heartbeat(Option<Box<Schedule>>);

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Schedule {
    due: Option<Instant>,
    /// The resources that the last heartbeats left out, because they were about to be sent; each until it is sent.
    left_out: BTreeSet<ResourceName>,
    /// The version that the client accepted last, which a SotW heartbeat repeats.
    accepted: Version,
}

impl Heartbeat {
    /// Returns the time at which heartbeats are due.
    #[inline]
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.as_ref()?.due
    }

    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// Returns the version that the client accepted last, if it supports TTLs and accepted one.
    pub(super) fn accepted(&self) -> Option<&Version> {
        self.0.as_ref().map(|schedule| &schedule.accepted).filter(|version| !version.is_empty())
    }

    /// Notes the version of a response that the client accepted.
    pub(super) fn accept(&mut self, version: &Version) {
        if let Some(schedule) = &mut self.0 {
            schedule.accepted = version.clone();
        }
    }

    /// Makes heartbeats due at once: resources that the client has from another stream may be about to expire
    /// (S-TTL-04).
    pub(super) fn claim(&mut self, now: Instant) {
        self.0.get_or_insert_default().due = Some(now);
    }

    /// Puts off heartbeats that are due, because they would carry changes that have to wait.
    pub(super) fn put_off(&mut self, until: Instant) {
        if let Some(schedule) = &mut self.0 {
            schedule.due = Some(until);
        }
    }

    /// Notes the resources that the due heartbeats leave out.
    pub(super) fn leave_out(&mut self, names: BTreeSet<ResourceName>) {
        if let Some(schedule) = &mut self.0 {
            schedule.left_out = names;
        }
    }

    /// Returns whether the last heartbeats left a resource out.
    #[inline]
    pub(super) fn left_some_out(&self) -> bool {
        self.0.as_ref().is_some_and(|schedule| !schedule.left_out.is_empty())
    }

    /// Returns the resources that the last heartbeats left out, and that still wait.
    pub(super) fn left_out<S: Source>(
        &self,
        of: OfType<'_, S>,
        wanted: &Wanted,
        view: &View,
        pending: &Pending,
    ) -> BTreeSet<ResourceName> {
        let Some(schedule) = self.0.as_ref().filter(|schedule| !schedule.left_out.is_empty()) else {
            return BTreeSet::new();
        };
        let (_, mut left_out) = alive(of, wanted, view, pending);
        left_out.retain(|name| schedule.left_out.contains(name));
        left_out
    }

    /// Makes heartbeats due at once for a resource that the last ones left out, and that the client has all the same:
    /// its pending name was dropped, or its change was reverted (S-TTL-04).
    pub(super) fn note_left_out<S: Source>(
        &mut self,
        now: Instant,
        of: OfType<'_, S>,
        wanted: &Wanted,
        view: &View,
        pending: &Pending,
    ) {
        let Some(schedule) = &mut self.0 else { return };
        let (alive, _) = alive(of, wanted, view, pending);
        if alive.iter().any(|resource| schedule.left_out.contains(resource.name())) {
            schedule.due = Some(schedule.due.map_or(now, |due| due.min(now)));
        }
    }

    /// Schedules the next heartbeats after a response; `was_due`: heartbeats were due now. The interval is a third of
    /// the shortest TTL, so that one heartbeat may be lost and one late (S-TTL-04). An earlier due time stays, unless
    /// every resource with a TTL was sent. Only heartbeats that were due read all resources with a TTL: a change costs as
    /// much as it is large.
    pub(super) fn schedule<S: Source>(
        &mut self,
        now: Instant,
        of: OfType<'_, S>,
        wanted: &Wanted,
        was_due: bool,
        draft: &Draft,
    ) {
        if let Some(schedule) = self.0.as_mut().filter(|schedule| !schedule.left_out.is_empty()) {
            for resource in draft.resources() {
                schedule.left_out.remove(resource.name());
            }
            let is_wanted = |name: &ResourceName| of.get(name).resource().is_none_or(|there| wanted.wants(of, there));
            schedule.left_out.retain(is_wanted);
        }
        let sent = || draft.resources().filter_map(Resource::ttl);
        let shortest =
            if was_due { expiring(of, wanted).filter_map(|entry| entry.resource()?.ttl()).min() } else { sent().min() };
        let Some(shortest) = shortest else {
            if let Some(schedule) = &mut self.0 {
                // The client may have an earlier form with a TTL: heartbeats that are due later still look for it.
                schedule.due = schedule.due.filter(|_| !was_due);
            }
            return;
        };
        let next = now + (shortest / 3).max(SHORTEST_INTERVAL);
        let sent_all = || {
            let count = sent().count();
            of.expiring().take(count + 1).count() == count
        };
        let earlier = self.due().filter(|_| !was_due && !sent_all());
        self.0.get_or_insert_default().due = Some(earlier.map_or(next, |due| due.min(next)));
    }
}

/// Returns the resources that need a heartbeat, because the client was sent their current form, and those that get none
/// because they are about to be sent, also in a form without a TTL. A resource that was sent in the last interval needs
/// one too: if it is about to change at the next heartbeats, it misses those, and the change may be reverted before it is
/// sent.
pub(super) fn alive<S: Source>(
    of: OfType<'_, S>,
    wanted: &Wanted,
    view: &View,
    pending: &Pending,
) -> (Vec<Resource>, BTreeSet<ResourceName>) {
    let sent = Sent::new(of, wanted, view, pending, |resource| resource.ttl().is_some());
    // No TTL runs of a resource that is new to the client.
    let may_have = |name: &ResourceName| match (of.present_since(name), view.sent_to_of(name)) {
        (Some(since), Some(sent_to)) => since <= sent_to,
        _ => true,
    };
    let (mut alive, mut left_out) = (Vec::new(), BTreeSet::new());
    for entry in expiring(of, wanted) {
        let Some(resource) = entry.resource() else { continue };
        if sent.has(&entry, resource) {
            alive.push(resource.clone());
        } else if may_have(resource.name()) {
            left_out.insert(resource.name().clone());
        }
    }
    changes::each_change(of, wanted, view, |_, resource| {
        let sent = || of.previous(resource.name(), view.sent_to_of(resource.name())?);
        if resource.ttl().is_none() && sent().is_some_and(|sent| sent.ttl().is_some()) {
            left_out.insert(resource.name().clone());
        }
    });
    (alive, left_out)
}

/// Returns the subscribed resources that have a TTL.
pub(super) fn expiring<'s, S: Source>(of: OfType<'s, S>, wanted: &Wanted) -> impl Iterator<Item = Entry<'s>> {
    of.expiring().filter(move |entry| entry.resource().is_some_and(|resource| wanted.wants(of, resource)))
}

impl Relabel for Heartbeat {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        if let Some(schedule) = &mut self.0 {
            schedule.due.relabel(by);
        }
    }
}
