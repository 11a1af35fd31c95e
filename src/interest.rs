//! What a client wants of one type.

use alloc::collections::BTreeSet;

use crate::globs::Globs;
use crate::name::ResourceName;

/// The resources of one type that a client is subscribed to: names, which may be those of collections, the wildcard,
/// both or neither.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Interest {
    pub(crate) wildcard: bool,
    pub(crate) names: BTreeSet<ResourceName>,
    /// Those of the names that stand for collections.
    pub(crate) globs: Globs,
}

impl Interest {
    /// Whether everything is wanted, be it by `*` or by the legacy empty list.
    pub fn wildcard(&self) -> bool {
        self.wildcard
    }

    /// The names that are wanted of themselves, in order; the wildcard is not among them.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &ResourceName> {
        self.names.iter()
    }

    /// Whether a resource of this name is wanted, by itself or as one of many.
    pub fn covers(&self, name: impl Into<ResourceName>) -> bool {
        self.covers_normal(name.into().as_str())
    }

    /// The same of a name in its normal form.
    pub(crate) fn covers_normal(&self, name: &str) -> bool {
        self.wildcard || self.names.contains(name) || self.globs.cover(name)
    }

    /// Whether there is the wildcard or a collection.
    pub(crate) fn stands_for_many(&self) -> bool {
        self.wildcard || !self.globs.is_empty()
    }

    /// `true` if the name was not there.
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
