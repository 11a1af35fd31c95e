//! What a client wants of one type.

use alloc::collections::BTreeSet;

use crate::name::ResourceName;

/// The resources of one type that a client is subscribed to: names, the wildcard, both or neither.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Interest {
    pub(crate) wildcard: bool,
    pub(crate) names: BTreeSet<ResourceName>,
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

    /// Whether a resource of this name is wanted.
    pub fn covers(&self, name: &str) -> bool {
        self.wildcard || self.names.contains(name)
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        !self.wildcard && self.names.is_empty()
    }
}
