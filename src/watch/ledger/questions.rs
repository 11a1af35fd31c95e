//! The queries of a ledger.

use super::super::event::Watched;
use super::super::known::Known;
use super::Ledger;
use crate::error::Status;
use crate::name::ResourceName;

impl<T: Clone + PartialEq> Ledger<T> {
    pub(in crate::watch) fn get(&self, name: &str) -> Option<&T> {
        self.known(name)?.value.as_ref()
    }

    /// Returns the error of a resource itself.
    pub(in crate::watch) fn error(&self, name: &str) -> Option<&Status> {
        self.known(name)?.error.as_deref()
    }

    /// Returns why the servers of a name are unreachable.
    pub(in crate::watch) fn unreachable(&self, name: &str) -> Option<&Status> {
        self.unreachable.error(name)
    }

    /// Returns the watched names, and then the resources that watched wildcards and collections cover.
    pub(in crate::watch) fn iter(&self) -> impl Iterator<Item = Watched<'_, T>> {
        let named = self.named.iter().map(|(name, named)| self.watched(name, &named.known, named.watchers.len()));
        let parts = self.parts.iter().filter(|&(name, known)| known.value.is_some() && !self.is_watched(name));
        named.chain(parts.map(|(name, known)| self.watched(name, known, 0)))
    }

    fn watched<'a>(&'a self, name: &'a ResourceName, known: &'a Known<T>, watchers: usize) -> Watched<'a, T> {
        let unreachable = self.unreachable(name.as_str());
        Watched { name, value: known.value.as_ref(), error: known.error.as_deref(), unreachable, watchers }
    }
}
