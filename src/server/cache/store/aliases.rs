//! Other names of resources. Each has a slot as a name of its own has, so that when it begins and ceases to stand for
//! something is known in the same way. Without aliases nothing is here, and nothing is paid.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::name::ResourceName;

/// What an alias stood for is remembered, so that who has it by that can be told: this many at most.
const FORMER: usize = 4;

/// A name, and the resource that it stands for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Alias {
    pub(super) name: ResourceName,
    pub(super) of: Option<ResourceName>,
    /// What it stood for before, the latest last.
    pub(super) former: Vec<ResourceName>,
}

impl Alias {
    /// What it will be once it stands for something else.
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
    /// By resource.
    pub(super) of: BTreeMap<ResourceName, Vec<ResourceName>>,
    /// The resources that have an alias, in the order in which they got it: it stands for the last.
    pub(super) claims: BTreeMap<ResourceName, Vec<ResourceName>>,
    /// There was one at some time.
    pub(super) ever: bool,
}
