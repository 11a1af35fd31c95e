//! The resources that a client has by each subscribed alias.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use crate::ensure::ensure;
use crate::name::ResourceName;

/// Aliases, and the resources that the client has by them. A pair stays until the removal of the resource is sent or
/// the alias is unsubscribed, also when the alias stands for another resource: a resource that no name subscribes to
/// any more has to be removed by name, because a client need not infer that.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct SentAliases {
    /// Pairs of an alias and a resource.
    resources: BTreeSet<(ResourceName, ResourceName)>,
    /// The same pairs, the resource first.
    aliases: BTreeSet<(ResourceName, ResourceName)>,
    /// Whether removals of resources that no name subscribes to had no room, or were deferred: any pair may have one of
    /// these.
    unsent: bool,
}

impl SentAliases {
    pub(super) const NONE: Self = Self { resources: BTreeSet::new(), aliases: BTreeSet::new(), unsent: false };

    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// Returns the number of pairs.
    pub(super) fn len(&self) -> usize {
        self.resources.len()
    }

    /// Returns whether removals had no room or were deferred.
    pub(super) fn has_unsent(&self) -> bool {
        self.unsent
    }

    /// Notes whether removals had no room or were deferred.
    pub(super) fn set_unsent(&mut self, unsent: bool) {
        self.unsent = unsent && !self.is_empty();
    }

    /// Returns the resources that the client has by an alias.
    pub(super) fn resources(&self, alias: &ResourceName) -> impl Iterator<Item = &ResourceName> {
        beside(&self.resources, alias)
    }

    /// Returns the aliases by which the client has a resource.
    pub(super) fn of(&self, resource: &ResourceName) -> impl Iterator<Item = &ResourceName> {
        beside(&self.aliases, resource)
    }

    /// Returns the pairs of an alias and a resource.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(ResourceName, ResourceName)> {
        self.resources.iter()
    }

    /// Notes that the client has a resource by an alias.
    pub(super) fn insert(&mut self, alias: &ResourceName, resource: &ResourceName) {
        self.resources.insert((alias.clone(), resource.clone()));
        self.aliases.insert((resource.clone(), alias.clone()));
    }

    /// Drops the pairs of an alias.
    pub(super) fn remove_alias(&mut self, alias: &ResourceName) {
        let resources: Vec<ResourceName> = self.resources(alias).cloned().collect();
        resources.into_iter().for_each(|resource| self.remove((alias.clone(), resource)));
    }

    /// Drops the pairs of a resource.
    pub(super) fn remove_resource(&mut self, resource: &ResourceName) {
        let aliases: Vec<ResourceName> = self.of(resource).cloned().collect();
        aliases.into_iter().for_each(|alias| self.remove((alias, resource.clone())));
    }

    /// Keeps only the pairs that `keep` selects.
    pub(super) fn retain(&mut self, keep: impl Fn(&ResourceName, &ResourceName) -> bool) {
        self.resources.retain(|(alias, resource)| keep(alias, resource));
        self.aliases.retain(|(resource, alias)| keep(alias, resource));
        self.set_unsent(self.unsent);
    }

    fn remove(&mut self, (alias, resource): (ResourceName, ResourceName)) {
        let pair = (alias, resource);
        self.resources.remove(&pair);
        self.aliases.remove(&(pair.1, pair.0));
        self.set_unsent(self.unsent);
    }

    /// Checks the invariants.
    pub(super) fn check(&self) -> Result<(), String> {
        let both = |(alias, resource)| self.aliases.contains(&(resource, alias));
        let same = self.resources.len() == self.aliases.len() && self.resources.iter().cloned().all(both);
        ensure!(same, "aliases differ from their two ends");
        ensure!(!self.unsent || !self.is_empty(), "removals are unsent, and the client has nothing by an alias");
        Ok(())
    }
}

/// Returns the second names of the pairs whose first name this is.
fn beside<'a>(
    pairs: &'a BTreeSet<(ResourceName, ResourceName)>,
    name: &ResourceName,
) -> impl Iterator<Item = &'a ResourceName> {
    let name = name.clone();
    let from = pairs.range((name.clone(), ResourceName::from(""))..);
    from.take_while(move |(first, _)| *first == name).map(|(_, second)| second)
}
