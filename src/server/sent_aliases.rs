//! The resource that each subscribed alias stood for when it was last sent.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use crate::ensure::ensure;
use crate::name::ResourceName;

/// Aliases, and the resources that the client has by them. A resource that no alias stands for any more, and that no
/// other name subscribes to, has to be removed by name, because a client need not infer that.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct SentAliases {
    resources: BTreeMap<ResourceName, ResourceName>,
    /// The inverse map: pairs of a resource and an alias of it.
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

    /// Returns the resource that an alias stood for.
    pub(super) fn resource(&self, alias: &ResourceName) -> Option<&ResourceName> {
        self.resources.get(alias)
    }

    /// Returns the aliases by which the client has a resource.
    pub(super) fn of(&self, resource: &ResourceName) -> impl Iterator<Item = &ResourceName> {
        let first = (resource.clone(), ResourceName::from(""));
        let from = self.aliases.range(first..);
        from.take_while(move |(of, _)| *of == *resource.as_str()).map(|(_, alias)| alias)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ResourceName, &ResourceName)> {
        self.resources.iter()
    }

    /// Binds an alias to a resource.
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

    /// Keeps only the aliases that `keep` selects.
    pub(super) fn retain(&mut self, keep: impl Fn(&ResourceName) -> bool) {
        let gone: Vec<ResourceName> = self.resources.keys().filter(|alias| !keep(alias)).cloned().collect();
        gone.iter().for_each(|alias| self.remove(alias));
    }

    /// Checks the invariants.
    pub(super) fn check(&self) -> Result<(), String> {
        let both = |(resource, alias): &(ResourceName, ResourceName)| self.resources.get(alias) == Some(resource);
        let same = self.resources.len() == self.aliases.len() && self.aliases.iter().all(both);
        ensure!(same, "aliases differ from their two ends");
        Ok(())
    }
}
