//! What each alias that a client asked for stood for when it was last told.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use crate::ensure::ensure;
use crate::name::ResourceName;

/// Aliases and the resources that the client has by them. A resource that no alias stands for any more, and that nothing
/// else asks for, has to be removed by name, for a client need not conclude that.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct SentAliases {
    resources: BTreeMap<ResourceName, ResourceName>,
    /// The same from the other end: a resource, and an alias of it.
    aliases: BTreeSet<(ResourceName, ResourceName)>,
}

impl SentAliases {
    pub(super) const NONE: Self = Self { resources: BTreeMap::new(), aliases: BTreeSet::new() };

    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.resources.len()
    }

    /// What an alias stood for.
    pub(super) fn resource(&self, alias: &ResourceName) -> Option<&ResourceName> {
        self.resources.get(alias)
    }

    /// The aliases by which the client has a resource.
    pub(super) fn of(&self, resource: &ResourceName) -> impl Iterator<Item = &ResourceName> {
        let first = (resource.clone(), ResourceName::from(""));
        let from = self.aliases.range(first..);
        from.take_while(move |(of, _)| *of == *resource.as_str()).map(|(_, alias)| alias)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ResourceName, &ResourceName)> {
        self.resources.iter()
    }

    /// The alias stands for this resource from now on.
    pub(super) fn insert(&mut self, alias: &ResourceName, resource: &ResourceName) {
        self.remove(alias);
        self.resources.insert(alias.clone(), resource.clone());
        self.aliases.insert((resource.clone(), alias.clone()));
    }

    pub(super) fn remove(&mut self, alias: &ResourceName) {
        if let Some(resource) = self.resources.remove(alias) {
            self.aliases.remove(&(resource, alias.clone()));
        }
    }

    /// Forgets the aliases that `keep` does not pick.
    pub(super) fn retain(&mut self, keep: impl Fn(&ResourceName) -> bool) {
        let gone: Vec<ResourceName> = self.resources.keys().filter(|alias| !keep(alias)).cloned().collect();
        gone.iter().for_each(|alias| self.remove(alias));
    }

    /// What must hold.
    pub(super) fn check(&self) -> Result<(), String> {
        let both = |(resource, alias): &(ResourceName, ResourceName)| self.resources.get(alias) == Some(resource);
        let same = self.resources.len() == self.aliases.len() && self.aliases.iter().all(both);
        ensure!(same, "aliases differ from their two ends");
        Ok(())
    }
}
