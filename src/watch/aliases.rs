//! What watched aliases stand for, as the updates say.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::name::ResourceName;

/// Of watched names that are aliases, the resources that their content is of.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Aliases {
    to: BTreeMap<ResourceName, Target>,
    /// The same from the other end.
    from: BTreeMap<ResourceName, BTreeSet<ResourceName>>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Target {
    name: ResourceName,
    /// The alias does not stand for it any more, and what it stands for now was not taken: the content is still of it.
    left: bool,
}

impl Aliases {
    pub(super) fn bind(&mut self, alias: &ResourceName, name: &ResourceName) {
        self.unbind(alias);
        self.to.insert(alias.clone(), Target { name: name.clone(), left: false });
        self.from.entry(name.clone()).or_default().insert(alias.clone());
    }

    /// A name stands for something other than this resource, or is to.
    pub(super) fn leave(&mut self, alias: &ResourceName, unless: Option<&ResourceName>) {
        if let Some(target) = self.to.get_mut(alias).filter(|target| Some(&target.name) != unless) {
            target.left = true;
        }
    }

    pub(super) fn unbind(&mut self, alias: &ResourceName) {
        let Some(Target { name, .. }) = self.to.remove(alias) else { return };
        if let Some(aliases) = self.from.get_mut(&name) {
            aliases.remove(alias);
            if aliases.is_empty() {
                self.from.remove(&name);
            }
        }
    }

    /// Whether the name stands for a resource of another name.
    pub(super) fn is_alias(&self, name: &ResourceName) -> bool {
        self.to.get(name).is_some_and(|target| !target.left)
    }

    /// Whether the name has the content of a resource that it does not stand for any more.
    pub(super) fn has_left(&self, name: &ResourceName) -> bool {
        self.to.get(name).is_some_and(|target| target.left)
    }

    /// The aliases that have the content of a resource; those that still stand for it, or all.
    pub(super) fn of(&self, name: &ResourceName, all: bool) -> Vec<ResourceName> {
        let aliases = self.from.get(name).into_iter().flatten();
        aliases.filter(|alias| all || self.is_alias(alias)).cloned().collect()
    }

    /// The resources that aliases stand for, with one alias each.
    pub(super) fn targets(&self) -> impl Iterator<Item = (&ResourceName, &ResourceName)> {
        self.from.iter().filter_map(|(name, aliases)| Some((name, aliases.iter().find(|alias| self.is_alias(alias))?)))
    }
}
