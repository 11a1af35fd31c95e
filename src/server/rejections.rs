//! Rejected resources that did not change since. They are not sent again (S-SOTW-12, S-DELTA-24) unless the
//! configuration enables retries, because some clients reject for transient reasons. Retries have a delay and a
//! maximum number, so that they never loop (S-NACK-01).

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::config::Retry;
use super::extent::{Extent, More};
use crate::ensure::ensure;
use crate::model::{Label, Relabel};
use crate::name::ResourceName;
use crate::revision::Revision;
use crate::time::Instant;

/// The number of rejections that are kept separately; older ones are joined.
const APART: usize = 8;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Rejections {
    /// Rejections, the oldest first.
    list: Vec<Rejection>,
    /// The names of the response in flight that rejected responses had.
    resent: BTreeSet<ResourceName>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Rejection {
    extent: Extent,
    /// The client's error message.
    reason: String,
    /// Number of retries so far.
    tries: u32,
    /// Time of the next retry.
    due: Option<Instant>,
    /// The own names of resources that were sent again since, and names that were answered again: the verdict on that
    /// response counts. A resource is looked up by its own name alone: an alias may have stood for another one, or for
    /// nothing.
    again: BTreeSet<ResourceName>,
    /// Names of this response that older rejected responses had.
    resent: BTreeSet<ResourceName>,
}

impl Rejection {
    /// Joins an older rejection; the newer message stays. Resources that this response sent again are rejected still.
    fn join(&mut self, older: Self) {
        self.again.extend(older.again.into_iter().filter(|name| !self.resent.contains(name)));
        self.extent.join(older.extent);
        self.tries = self.tries.max(older.tries);
        self.due = self.due.into_iter().chain(older.due).min();
    }

    /// Returns whether every rejected name was sent again.
    fn is_over(&self) -> bool {
        self.extent.names_at_most().is_some_and(|mut names| names.all(|name| self.again.contains(name)))
    }
}

/// A rejected response that is resent, all of it or as much as there is room for.
#[derive(Clone, Debug)]
pub(super) struct Retrying {
    rejection: Rejection,
    /// The names to resend; none for a full-state type.
    pub(super) names: BTreeSet<ResourceName>,
}

impl Retrying {
    pub(super) fn extent(&self) -> &Extent {
        &self.rejection.extent
    }

    /// Returns whether a resource was sent again since the rejection.
    pub(super) fn is_again(&self, name: &ResourceName) -> bool {
        self.rejection.again.contains(name)
    }

    /// Marks the names of a response that are retries. Returns the rest, which stays rejected, and due: it is resent
    /// with a later response, when the order of the types allows it.
    pub(super) fn split(mut self, extent: &mut Extent, now: Instant) -> Option<Self> {
        let more = extent.more.get_or_insert_default();
        more.tries = self.rejection.tries + 1;
        let (retried, rest) = core::mem::take(&mut self.names).into_iter().partition(|name| more.names.remove(name));
        more.retried = retried;
        let names: BTreeSet<ResourceName> = rest;
        let extent = named(self.rejection.extent.sent_at(), names.clone());
        let (again, resent) = (BTreeSet::new(), BTreeSet::new());
        let rejection = Rejection { extent, due: Some(now), again, resent, ..self.rejection };
        (!names.is_empty()).then_some(Self { rejection, names })
    }
}

/// Returns the extent of a response with certain names.
fn named(to: Revision, names: BTreeSet<ResourceName>) -> Extent {
    Extent { after: Some(to), to, more: Some(More { names, ..More::default() }.into()), ..Extent::NOTHING }
}

impl Rejections {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a rejected response. Resent resources keep their number of retries; new ones start at zero.
    pub(super) fn add(&mut self, mut extent: Extent, reason: &str, now: Instant, retry: Option<Retry>) {
        let resent = core::mem::take(&mut self.resent);
        let (mut retried, sent_at) = (None, extent.sent_at());
        if let Some(more) = &mut extent.more {
            let names = core::mem::take(&mut more.retried);
            retried = (!names.is_empty()).then(|| (named(sent_at, names), core::mem::take(&mut more.tries)));
        }
        // A retry of a full-state type counts as one.
        let tries = extent.more.as_mut().map_or(0, |more| core::mem::take(&mut more.tries));
        for (extent, tries) in [(extent, tries)].into_iter().chain(retried) {
            let due = retry.filter(|retry| tries < retry.times).map(|retry| now + retry.after);
            if extent.whole {
                self.clear();
            }
            if !extent.is_nothing() {
                let (reason, again, resent) = (reason.into(), BTreeSet::new(), resent.clone());
                self.list.push(Rejection { extent, reason, tries, due, again, resent });
            }
        }
        while self.list.len() > APART {
            let older = self.list.remove(0);
            self.list[0].join(older);
        }
    }

    /// Notes that the response in flight was accepted.
    pub(super) fn accept(&mut self) {
        self.resent.clear();
    }

    /// Notes the names of a response, with the revision since which each has its state: rejected names are sent again,
    /// and the new verdict counts. What is newer than a rejected response was not in it.
    pub(super) fn note_sent<'a>(&mut self, names: impl Iterator<Item = (&'a ResourceName, Revision)>, limit: usize) {
        self.resent.clear();
        for (name, since) in names {
            for rejection in self.list.iter_mut().filter(|rejection| since <= rejection.extent.sent_at()) {
                rejection.again.insert(name.clone());
            }
            if self.list.iter().any(|rejection| rejection.again.contains(name)) {
                self.resent.insert(name.clone());
            }
            // Drops a rejection beyond the limit, rather than resending accepted resources.
            self.list.retain(|rejection| rejection.again.len() <= limit && !rejection.is_over());
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the time of the next retry.
    pub(super) fn next(&self) -> Option<Instant> {
        self.list.iter().filter_map(|rejection| rejection.due).min()
    }

    /// Postpones due retries, because something else has to be sent first.
    pub(super) fn put_off(&mut self, now: Instant, until: Instant) {
        let due = self.list.iter_mut().filter_map(|rejection| rejection.due.as_mut());
        due.filter(|due| **due <= now).for_each(|due| *due = until);
    }

    /// Takes the oldest rejection whose retry is due. Only one is resent at a time: a rejected response fits in a
    /// portion, and several may not.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Retrying> {
        let at = self.list.iter().position(|rejection| rejection.due.is_some_and(|due| due <= now))?;
        Some(Retrying { rejection: self.list.remove(at), names: BTreeSet::new() })
    }

    /// Puts back what is left of a retry, before younger rejections.
    pub(super) fn put_back(&mut self, rest: Retrying) {
        self.list.insert(0, rest.rejection);
    }

    /// Returns the client's error message for the last rejected response that had a resource, unless the resource was
    /// sent again since. `had` says whether a response had it.
    pub(super) fn reason(&self, name: &ResourceName, had: impl Fn(&Extent) -> bool) -> Option<&str> {
        let found = self.list.iter().rev().find(|one| had(&one.extent) && !one.again.contains(name));
        found.map(|one| one.reason.as_str())
    }

    /// Returns the rejected responses.
    pub(super) fn extents(&self) -> impl Iterator<Item = &Extent> {
        self.list.iter().map(|one| &one.extent)
    }

    /// Checks the invariants.
    pub(super) fn check(&self) -> Result<(), String> {
        ensure!(!self.list.is_empty(), "room for rejections, and there are none");
        ensure!(self.list.len() <= APART, "{} rejections, limit {APART}", self.list.len());
        ensure!(self.list.iter().all(|one| !one.extent.is_nothing()), "nothing was rejected, and is remembered");
        ensure!(!self.list.iter().any(Rejection::is_over), "all that was rejected was sent again, and is remembered");
        Ok(())
    }
}

impl Relabel for Rejections {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        for Rejection { extent, due, .. } in &mut self.list {
            extent.relabel(by);
            due.relabel(by);
        }
    }
}
