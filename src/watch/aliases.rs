//! The targets of watched aliases, as reported by updates.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::name::ResourceName;

/// For each watched alias, the resource that its content comes from.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Aliases {
    to: BTreeMap<ResourceName, Target>,
    /// The inverse of `to`.
    from: BTreeMap<ResourceName, BTreeSet<ResourceName>>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Target {
    name: ResourceName,
    stands: Stands,
}

/// The relation of an alias to its last known target.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Stands {
    Yes,
    /// No, and the update with its new target was not accepted: the content still comes from the old target.
    Left,
    /// No, the alias was reported not to exist. An update will remove the target if nothing else subscribes to it.
    Lost,
}

impl Aliases {
    pub(super) fn is_empty(&self) -> bool {
        self.to.is_empty()
    }

    pub(super) fn bind(&mut self, alias: &ResourceName, name: &ResourceName) {
        self.unbind(alias);
        self.to.insert(alias.clone(), Target { name: name.clone(), stands: Stands::Yes });
        self.from.entry(name.clone()).or_default().insert(alias.clone());
    }

    /// Records that an alias stands, or will stand, for something other than `unless`.
    pub(super) fn leave(&mut self, alias: &ResourceName, unless: Option<&ResourceName>) {
        let target = self.to.get_mut(alias).filter(|target| Some(&target.name) != unless);
        if let Some(target) = target.filter(|target| target.stands == Stands::Yes) {
            target.stands = Stands::Left;
        }
    }

    /// Records that an alias stands for nothing any more. The removal of its target may follow.
    pub(super) fn lose(&mut self, alias: &ResourceName) {
        self.to.get_mut(alias).into_iter().for_each(|target| target.stands = Stands::Lost);
    }

    /// Forgets the lost aliases of a removed resource.
    pub(super) fn forget_lost(&mut self, name: &ResourceName) {
        let lost = self.had(name).into_iter().filter(|alias| self.stands(alias) == Some(Stands::Lost));
        lost.collect::<Vec<_>>().iter().for_each(|alias| self.unbind(alias));
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

    fn stands(&self, alias: &ResourceName) -> Option<Stands> {
        self.to.get(alias).map(|target| target.stands)
    }

    /// Returns whether the name stands for a resource of another name.
    pub(super) fn is_alias(&self, name: &ResourceName) -> bool {
        self.stands(name) == Some(Stands::Yes)
    }

    /// Returns whether the name has the content of a resource that it no longer stands for.
    pub(super) fn has_left(&self, name: &ResourceName) -> bool {
        self.stands(name) == Some(Stands::Left)
    }

    /// Returns the aliases that have the content of a resource: those that still stand for the resource, or all.
    pub(super) fn of(&self, name: &ResourceName, all: bool) -> Vec<ResourceName> {
        let aliases = self.from.get(name).into_iter().flatten();
        aliases.filter(|alias| self.is_alias(alias) || (all && self.has_left(alias))).cloned().collect()
    }

    /// Returns all aliases of a resource, including lost ones: the machine may know the resource by any of them until
    /// the removal is accepted.
    pub(super) fn had(&self, name: &ResourceName) -> BTreeSet<ResourceName> {
        self.from.get(name).cloned().unwrap_or_default()
    }

    /// Returns the resources that aliases stand for, with one alias each.
    pub(super) fn targets(&self) -> impl Iterator<Item = (&ResourceName, &ResourceName)> {
        self.from.iter().filter_map(|(name, aliases)| Some((name, aliases.iter().find(|alias| self.is_alias(alias))?)))
    }
}
