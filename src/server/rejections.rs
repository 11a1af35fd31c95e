//! What a client rejected and did not change since. It is not sent again (S-SOTW-12, S-DELTA-24), unless the configuration
//! says to try again: some clients reject for reasons that pass. After a time, and never more than so often, so that it is no
//! loop (S-NACK-01).

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::config::Retry;
use super::extent::{Extent, More};
use crate::ensure::ensure;
use crate::model::{Label, Relabel};
use crate::name::ResourceName;
use crate::time::Instant;

/// As many rejections are kept apart; more are joined.
const APART: usize = 8;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Rejections {
    /// The oldest first.
    list: Vec<Rejection>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Rejection {
    extent: Extent,
    /// How often it was sent again.
    tries: u32,
    /// When it is sent again.
    due: Option<Instant>,
    /// Names that were asked for again since: their new answer counts.
    again: BTreeSet<ResourceName>,
}

impl Rejection {
    /// Whether nothing is left of it.
    fn is_over(&self) -> bool {
        self.extent.names_at_most().is_some_and(|mut names| names.all(|name| self.again.contains(name)))
    }
}

/// Rejected responses that are to be sent again.
#[derive(Clone, Debug, Default)]
pub(super) struct DueRetries {
    /// Each with the names that are not to be.
    pub(super) extents: Vec<(Extent, BTreeSet<ResourceName>)>,
    /// How often that was done, with this time.
    pub(super) tries: u32,
}

impl Rejections {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A response was rejected. What of it had been sent again keeps its count, and what was new begins to count.
    pub(super) fn add(&mut self, mut extent: Extent, now: Instant, retry: Option<Retry>) {
        let mut retried = None;
        if let Some(more) = &mut extent.more {
            let names = core::mem::take(&mut more.retried);
            let only = Extent { after: Some(extent.to), to: extent.to, ..Extent::default() };
            let named = |names| Extent { more: Some(More { names, ..More::default() }.into()), ..only };
            retried = (!names.is_empty()).then(|| (named(names), core::mem::take(&mut more.tries)));
        }
        // All of a full-state type that is sent again is one thing.
        let tries = extent.more.as_mut().map_or(0, |more| core::mem::take(&mut more.tries));
        for (extent, tries) in [(extent, tries)].into_iter().chain(retried) {
            let due = retry.filter(|retry| tries < retry.times).map(|retry| now + retry.after);
            if extent.whole {
                self.clear();
            }
            if !extent.is_nothing() {
                self.list.push(Rejection { extent, tries, due, again: BTreeSet::new() });
            }
        }
        while self.list.len() > APART {
            let Rejection { extent, tries, due, again } = self.list.remove(0);
            let next = &mut self.list[0];
            next.extent.join(extent);
            next.tries = next.tries.max(tries);
            next.due = next.due.into_iter().chain(due).min();
            next.again.extend(again);
        }
    }

    /// A name is answered anew: what was rejected of it does not count.
    pub(super) fn forget(&mut self, name: &ResourceName, limit: usize) {
        for rejection in &mut self.list {
            rejection.again.insert(name.clone());
        }
        // Of more names nothing is tried again, rather than what was accepted.
        self.list.retain(|rejection| rejection.again.len() <= limit && !rejection.is_over());
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// When something is to be sent again.
    pub(super) fn next(&self) -> Option<Instant> {
        self.list.iter().filter_map(|rejection| rejection.due).min()
    }

    /// Puts off what is due: there is something else to be sent first.
    pub(super) fn put_off(&mut self, now: Instant, until: Instant) {
        let due = self.list.iter_mut().filter_map(|rejection| rejection.due.as_mut());
        due.filter(|due| **due <= now).for_each(|due| *due = until);
    }

    /// Takes what is to be sent again.
    pub(super) fn take_due(&mut self, now: Instant) -> DueRetries {
        let is_due = |rejection: &Rejection| rejection.due.is_some_and(|due| due <= now);
        let (due, list): (Vec<_>, Vec<_>) = core::mem::take(&mut self.list).into_iter().partition(is_due);
        self.list = list;
        let tries = due.iter().map(|rejection| rejection.tries + 1).max().unwrap_or_default();
        DueRetries { extents: due.into_iter().map(|rejection| (rejection.extent, rejection.again)).collect(), tries }
    }

    /// Whether something was rejected: a response that `had` it. Not if it was asked for again since.
    pub(super) fn has(
        &self,
        had: impl Fn(&Extent) -> bool,
        is_asked: impl Fn(&BTreeSet<ResourceName>) -> bool,
    ) -> bool {
        self.list.iter().any(|one| had(&one.extent) && !is_asked(&one.again))
    }

    /// What must hold.
    pub(super) fn check(&self) -> Result<(), String> {
        ensure!(!self.list.is_empty(), "room for rejections, and there are none");
        ensure!(self.list.len() <= APART, "{} rejections, limit {APART}", self.list.len());
        ensure!(self.list.iter().all(|one| !one.extent.is_nothing()), "nothing was rejected, and is remembered");
        ensure!(!self.list.iter().any(Rejection::is_over), "all that was rejected was asked for again");
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
