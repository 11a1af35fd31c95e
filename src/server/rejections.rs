//! Rejected resources that did not change since. They are not sent again (S-SOTW-12, S-DELTA-24): a client that rejects
//! content rejects it again.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::extent::Extent;
use crate::ensure::ensure;
use crate::model::{Label, Relabel};
use crate::name::ResourceName;
use crate::revision::Revision;

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
    }

    /// Returns whether every rejected name was sent again.
    fn is_over(&self) -> bool {
        self.extent.names_at_most().is_some_and(|mut names| names.all(|name| self.again.contains(name)))
    }
}

impl Rejections {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a rejected response. `again`: names that a later response answered.
    pub(super) fn add(&mut self, extent: Extent, reason: &str, again: BTreeSet<ResourceName>) {
        let resent = core::mem::take(&mut self.resent);
        if extent.whole {
            self.clear();
        }
        if !extent.is_nothing() {
            let rejection = Rejection { extent, reason: reason.into(), again, resent };
            self.list.extend(Some(rejection).filter(|rejection| !rejection.is_over()));
        }
        while self.list.len() > APART {
            let older = self.list.remove(0);
            self.list[0].join(older);
        }
    }

    /// Notes that the client accepted these names in a response of heartbeats with content, sent before it rejected them.
    pub(super) fn accept_names(&mut self, names: &BTreeSet<ResourceName>) {
        self.list.iter_mut().for_each(|rejection| rejection.again.extend(names.iter().cloned()));
        self.list.retain(|rejection| !rejection.is_over());
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
            // Drops a rejection beyond the limit, rather than counting accepted resources as rejected.
            self.list.retain(|rejection| rejection.again.len() <= limit && !rejection.is_over());
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
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
        self.list.iter_mut().for_each(|rejection| rejection.extent.relabel(by));
    }
}
