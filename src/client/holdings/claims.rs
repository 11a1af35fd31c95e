//! What of all that may be claimed on a new stream.

use super::Holdings;
use crate::name::{ResourceName, Version, WILDCARD};

impl Holdings {
    /// The version of the last response that was accepted whole.
    pub(in crate::client) fn version(&self) -> &Version {
        &self.version
    }

    /// A response of this version was accepted whole.
    pub(in crate::client) fn set_version(&mut self, version: Version) {
        self.version = version;
        self.partly_newer = false;
    }

    /// A part of a response was accepted, and its version was not.
    pub(in crate::client) fn note_part_accepted(&mut self) {
        self.partly_newer = true;
    }

    /// A response of this stream was accepted whole that has all that the wildcard stands for.
    pub(in crate::client) fn complete_all(&mut self) {
        if self.lapsed.is_empty() {
            // What expired on this stream may be there in any version.
            self.change(WILDCARD, |entry| entry.complete = true);
        }
    }

    /// A response of this stream was accepted whole that has all that is there of the names that `is_complete` picks: they
    /// were asked for before it was made.
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

    /// A response that has everything was accepted: what expired would have been there.
    pub(in crate::client) fn forget_lapsed(&mut self) {
        self.lapsed.clear();
    }

    /// The wildcard is asked for anew: until it is answered no version has all.
    pub(in crate::client) fn set_incomplete(&mut self, name: &str) {
        self.change(name, |entry| entry.complete = false);
    }

    /// Whether nothing of what is wanted is lacking in the last version that was accepted whole, or is newer.
    pub(in crate::client) fn is_complete(&self) -> bool {
        let is_held = |name| self.held.get(name).is_some_and(|held| held.claimed);
        !self.partly_newer && self.subscribed.iter().all(|(name, entry)| entry.complete || is_held(name))
    }

    /// Names that the server says do not exist, with the version of that.
    pub(in crate::client) fn not_found(&self) -> impl Iterator<Item = (&ResourceName, &Version)> {
        self.not_found.iter()
    }
}
