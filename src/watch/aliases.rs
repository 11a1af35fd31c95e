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
    stands: Stands,
}

/// Whether an alias stands for the resource that it was last known to stand for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Stands {
    Yes,
    /// No, and what it stands for now was not taken: the content is still of it.
    Left,
    /// No, it was said to stand for nothing. If the resource is wanted by nothing else, an update is to remove that.
    Lost,
}

impl Aliases {
    pub(super) fn bind(&mut self, alias: &ResourceName, name: &ResourceName) {
        self.unbind(alias);
        self.to.insert(alias.clone(), Target { name: name.clone(), stands: Stands::Yes });
        self.from.entry(name.clone()).or_default().insert(alias.clone());
    }

    /// A name stands for something other than this resource, or is to.
    pub(super) fn leave(&mut self, alias: &ResourceName, unless: Option<&ResourceName>) {
        let target = self.to.get_mut(alias).filter(|target| Some(&target.name) != unless);
        if let Some(target) = target.filter(|target| target.stands == Stands::Yes) {
            target.stands = Stands::Left;
        }
    }

    /// A name stands for nothing any more: what it stood for is perhaps still to be removed.
    pub(super) fn lose(&mut self, alias: &ResourceName) {
        self.to.get_mut(alias).into_iter().for_each(|target| target.stands = Stands::Lost);
    }

    /// A resource is removed: nothing is to be known any more of what was lost of it.
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

    /// Whether the name stands for a resource of another name.
    pub(super) fn is_alias(&self, name: &ResourceName) -> bool {
        self.stands(name) == Some(Stands::Yes)
    }

    /// Whether the name has the content of a resource that it does not stand for any more.
    pub(super) fn has_left(&self, name: &ResourceName) -> bool {
        self.stands(name) == Some(Stands::Left)
    }

    /// The aliases that have the content of a resource; those that still stand for it, or all.
    pub(super) fn of(&self, name: &ResourceName, all: bool) -> Vec<ResourceName> {
        let aliases = self.from.get(name).into_iter().flatten();
        aliases.filter(|alias| self.is_alias(alias) || (all && self.has_left(alias))).cloned().collect()
    }

    /// Besides, those that were lost: by each of them the machine may know the resource until its removal is accepted.
    pub(super) fn had(&self, name: &ResourceName) -> BTreeSet<ResourceName> {
        self.from.get(name).cloned().unwrap_or_default()
    }

    /// The resources that aliases stand for, with one alias each.
    pub(super) fn targets(&self) -> impl Iterator<Item = (&ResourceName, &ResourceName)> {
        self.from.iter().filter_map(|(name, aliases)| Some((name, aliases.iter().find(|alias| self.is_alias(alias))?)))
    }
}
