//! The versions that may be claimed on a new stream.

use super::Holdings;
use crate::name::{ResourceName, Version, WILDCARD};
use crate::time::Instant;

impl Holdings {
    /// Returns the version of the last response that was accepted completely.
    pub(in crate::client) fn version(&self) -> &Version {
        &self.version
    }

    /// Returns the time at which that response was accepted.
    pub(in crate::client) fn version_at(&self) -> Option<Instant> {
        self.version_at
    }

    /// Notes that a response of this version was accepted completely.
    pub(in crate::client) fn set_version(&mut self, now: Instant, version: Version) {
        (self.version, self.version_at) = (version, Some(now));
        self.partly_newer = false;
    }

    /// Notes that a part of a response was accepted, but not its version.
    pub(in crate::client) fn note_part_accepted(&mut self) {
        self.partly_newer = true;
    }

    /// Returns whether a part of a later response than that of the version was accepted.
    pub(in crate::client) fn is_partly_newer(&self) -> bool {
        self.partly_newer
    }

    /// Notes that a response of this stream with all resources of the wildcard was accepted completely.
    pub(in crate::client) fn complete_all(&mut self) {
        if self.lapsed.is_empty() {
            // A resource that expired on this stream may exist in any version.
            self.change(WILDCARD, |entry| entry.complete = true);
        }
    }

    /// Notes that a response of this stream was accepted completely that has all existing resources of the names that
    /// `is_complete` picks, which were requested before the server made the response.
    pub(in crate::client) fn complete_names(&mut self, is_complete: impl Fn(&ResourceName) -> bool) {
        let named = self.subscribed.len() - usize::from(self.wants(WILDCARD));
        if named == 0 || (self.subscribed.len() == named && named <= self.held.len() && self.globs.is_empty()) {
            return; // all names are held
        }
        for (name, entry) in self.subscribed.iter_mut().filter(|(name, _)| !name.is_wildcard()) {
            if !self.held.contains_key(name) {
                entry.complete = is_complete(name);
            }
        }
    }

    /// Forgets expired resources: a response that has everything was accepted, and would have had them.
    pub(in crate::client) fn forget_lapsed(&mut self) {
        self.lapsed.clear();
    }

    /// Marks a name as incomplete: no version covers it until the next complete answer.
    pub(in crate::client) fn set_incomplete(&mut self, name: &str) {
        self.change(name, |entry| entry.complete = false);
    }

    /// Returns whether the client has all wanted resources of the last version that was accepted completely, and none
    /// that is newer.
    pub(in crate::client) fn is_complete(&self) -> bool {
        let is_held = |name| self.held.get(name).is_some_and(|held| held.claimed);
        // A resource that only a wildcard or collection covers may be unclaimed, after an error for example.
        let all_claimed = || self.held.values().all(|held| held.claimed);
        !self.partly_newer
            && self.subscribed.iter().all(|(name, entry)| entry.complete || is_held(name))
            && (!self.mixed || all_claimed())
    }

    /// Returns the names whose absence has a version of its own, each with that version.
    pub(in crate::client) fn not_found(&self) -> impl Iterator<Item = (&ResourceName, &Version)> {
        self.not_found.iter().filter_map(|(name, absence)| Some((name, absence.claim.as_ref()?)))
    }
}
