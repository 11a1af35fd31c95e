//! Other names of resources. An alias has a slot like any name, which tracks the revisions at which it begins and
//! ceases to stand for a resource. A store without aliases keeps nothing here, at no cost.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::name::ResourceName;
use crate::server::resource::Resource;

/// Maximum number of former targets of an alias, kept so that clients that have them can be sent their removal.
const FORMER: usize = 4;

/// An alias, and the resource that it stands for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Alias {
    pub(super) name: ResourceName,
    pub(super) of: Option<ResourceName>,
    /// Former targets, the latest last.
    pub(super) former: Vec<ResourceName>,
}

impl Alias {
    /// Returns the alias with a new target.
    pub(super) fn pointed(&self, of: Option<&ResourceName>) -> Self {
        let mut former = self.former.clone();
        former.extend(self.of.clone());
        former.retain(|name| Some(name) != of);
        former.drain(..former.len().saturating_sub(FORMER));
        Self { name: self.name.clone(), of: of.cloned(), former }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Aliases {
    /// The aliases of each resource.
    pub(super) of: BTreeMap<ResourceName, Vec<ResourceName>>,
    /// The resources with an alias, in the order in which they got it: the alias stands for the last.
    pub(super) claims: BTreeMap<ResourceName, Vec<ResourceName>>,
    /// The resources some of whose aliases stand for something else, as they were put. The store serves them without
    /// these aliases: to a client, an alias stands for the last resource that it received with it.
    pub(super) whole: BTreeMap<ResourceName, Resource>,
    /// Whether any alias ever existed.
    pub(super) ever: bool,
}
