//! The subscriptions of a client to one type.

use alloc::collections::BTreeSet;

use crate::globs::Globs;
use crate::name::ResourceName;

/// The resources of one type that a client is subscribed to: names (including names of collections), the wildcard, both
/// or neither.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Interest {
    pub(crate) wildcard: bool,
    pub(crate) names: BTreeSet<ResourceName>,
    /// The subscribed names that are names of collections.
    pub(crate) globs: Globs,
}

impl Interest {
    /// Returns whether the client is subscribed to the wildcard, by `*` or by the legacy empty list.
    pub fn wildcard(&self) -> bool {
        self.wildcard
    }

    /// Returns the subscribed names in order, without the wildcard.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &ResourceName> {
        self.names.iter()
    }

    /// Returns whether a resource of this name is subscribed to: by name, by its collection or by the wildcard.
    pub fn covers(&self, name: impl Into<ResourceName>) -> bool {
        self.covers_normal(name.into().as_str())
    }

    /// Like `covers`, for a name in its normal form.
    pub(crate) fn covers_normal(&self, name: &str) -> bool {
        self.wildcard || self.names.contains(name) || self.globs.cover(name)
    }

    /// Returns whether this name itself is subscribed to.
    pub(crate) fn has_name(&self, name: &ResourceName) -> bool {
        self.names.contains(name)
    }

    /// Returns whether the client is subscribed to the wildcard or to a collection.
    pub(crate) fn stands_for_many(&self) -> bool {
        self.wildcard || !self.globs.is_empty()
    }

    /// Adds a name. Returns `true` if the name is new.
    pub(crate) fn insert(&mut self, name: ResourceName) -> bool {
        let new = !self.names.contains(&name);
        if new {
            self.globs.insert(&name);
            self.names.insert(name);
        }
        new
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<ResourceName> {
        let name = self.names.take(name)?;
        self.globs.remove(name.as_str());
        Some(name)
    }

    /// Returns whether the client is subscribed to nothing.
    pub fn is_empty(&self) -> bool {
        !self.wildcard && self.names.is_empty()
    }
}
