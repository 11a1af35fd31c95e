//! Aliases and the resources that they stand for, indexed in both directions.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use crate::ensure::ensure;
use crate::name::ResourceName;

/// The resources that subscribed aliases stand for.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct AliasBindings {
    /// The bindings by alias.
    to: BTreeMap<ResourceName, Binding>,
    /// The aliases by resource.
    from: BTreeMap<ResourceName, BTreeSet<ResourceName>>,
}

/// The resource that an alias stands for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Binding {
    name: ResourceName,
    /// Whether the server has ended the binding, while the removal of the resource waits for its verdict or was
    /// rejected. An unbound alias keeps no resource, even if the alias is subscribed to again.
    unbound: bool,
}

impl AliasBindings {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.to.is_empty()
    }

    /// Binds an alias. Returns the resource that the alias stood for before, if it is a different one. The unbound
    /// aliases of the resource are removed: they only waited for its removal, and the resource stays.
    pub(super) fn insert(&mut self, alias: &ResourceName, name: &ResourceName) -> Option<ResourceName> {
        let before = self.remove(alias.as_str()).filter(|before| before != name);
        let unbound: Vec<ResourceName> =
            self.aliases(name.as_str()).filter(|alias| self.is_unbound(alias)).cloned().collect();
        unbound.iter().for_each(|alias| _ = self.remove(alias.as_str()));
        self.to.insert(alias.clone(), Binding { name: name.clone(), unbound: false });
        self.from.entry(name.clone()).or_default().insert(alias.clone());
        before
    }

    /// Removes an alias. Returns the resource that the alias stood for.
    pub(super) fn remove(&mut self, alias: &str) -> Option<ResourceName> {
        let Binding { name, .. } = self.to.remove(alias)?;
        if let Some(aliases) = self.from.get_mut(&name) {
            aliases.remove(alias);
            if aliases.is_empty() {
                self.from.remove(&name);
            }
        }
        Some(name)
    }

    /// Removes the aliases of a resource, and returns them.
    pub(super) fn remove_all(&mut self, name: &str) -> Vec<ResourceName> {
        let aliases: Vec<ResourceName> = self.aliases(name).cloned().collect();
        aliases.iter().for_each(|alias| _ = self.remove(alias.as_str()));
        aliases
    }

    /// Marks an alias as standing for nothing any more.
    pub(super) fn unbind(&mut self, alias: &ResourceName) {
        if let Some(binding) = self.to.get_mut(alias) {
            binding.unbound = true;
        }
    }

    pub(super) fn target(&self, alias: &str) -> Option<&ResourceName> {
        self.to.get(alias).map(|binding| &binding.name)
    }

    pub(super) fn is_unbound(&self, alias: &ResourceName) -> bool {
        self.to.get(alias).is_some_and(|binding| binding.unbound)
    }

    /// Returns the aliases of a resource.
    pub(super) fn aliases<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a ResourceName> + use<'a> {
        self.from.get(name).into_iter().flatten()
    }

    /// Returns whether a resource has aliases.
    #[inline]
    pub(super) fn has_aliases(&self, name: &str) -> bool {
        self.from.contains_key(name)
    }

    /// Checks the invariants, given the subscribed names and the held resources.
    pub(super) fn check(
        &self,
        is_wanted: impl Fn(&ResourceName) -> bool,
        is_held: impl Fn(&ResourceName) -> bool,
    ) -> Result<(), String> {
        let count: usize = self.from.values().map(BTreeSet::len).sum();
        ensure!(self.to.len() == count, "{} aliases, {count} seen from the other end", self.to.len());
        for (alias, Binding { name, .. }) in &self.to {
            ensure!(is_wanted(alias), "{alias} stands for {name} and is not wanted");
            ensure!(is_held(name), "{alias} stands for {name}, which is not held");
            let back = self.from.get(name).is_some_and(|aliases| aliases.contains(alias));
            ensure!(back, "{alias} stands for {name} from one end only");
        }
        Ok(())
    }
}
