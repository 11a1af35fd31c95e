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
        self.known(name)?.error.as_ref()
    }

    /// Returns why the servers of a name are unreachable.
    pub(in crate::watch) fn unreachable(&self, name: &str) -> Option<&Status> {
        self.unreachable.error(name)
    }

    /// Returns the watched names, and then the resources that watched wildcards and collections cover.
    pub(in crate::watch) fn iter(&self) -> impl Iterator<Item = Watched<'_, T>> {
        let watched = |(name, known): (_, _)| self.watched(name, known);
        let parts = self.parts.iter().filter(|&(name, known)| known.value.is_some() && !self.is_watched(name));
        self.named.iter().chain(parts).map(watched)
    }

    fn watched<'a>(&'a self, name: &'a ResourceName, known: &'a Known<T>) -> Watched<'a, T> {
        let (value, error, unreachable) = (known.value.as_ref(), known.error.as_ref(), self.unreachable(name.as_str()));
        Watched { name, value, error, unreachable, watchers: known.watchers.len() }
    }
}
