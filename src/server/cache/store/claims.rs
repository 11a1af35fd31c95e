//! The assignment of aliases to resources.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Store;
use super::aliases::Alias;
use super::slot::What;
use crate::ensure::ensure;
use crate::name::ResourceName;
use crate::revision::Revision;
use crate::server::hash;
use crate::server::resource::Resource;
use crate::server::source::Entry;

impl Store {
    /// Sets the aliases of a resource, which is then set itself.
    pub(super) fn claim(&mut self, name: &ResourceName, mut aliases: Vec<ResourceName>, now: Revision) {
        let before = self.aliases.of.get(name).cloned().unwrap_or_default(); // an empty list allocates nothing
        if before.is_empty() && aliases.is_empty() {
            return;
        }
        self.aliases.ever = true;
        aliases.retain(|alias| alias != name);
        for alias in before.iter().filter(|alias| !aliases.contains(alias)) {
            self.unclaim(alias, name, now);
        }
        for alias in &aliases {
            let claims = self.aliases.claims.entry(alias.clone()).or_default();
            let known = claims.contains(name);
            if !known {
                claims.push(name.clone());
            }
            // The alias may have been the name of a resource meanwhile.
            let stands = |at: usize| matches!(self.slots[at].what, What::Alias(_));
            if !known || !self.find(alias.as_str()).is_some_and(stands) {
                self.point(alias, name, now);
            }
        }
        if aliases.is_empty() {
            self.aliases.of.remove(name);
        } else {
            self.aliases.of.insert(name.clone(), aliases);
        }
    }

    fn unclaim(&mut self, alias: &ResourceName, name: &ResourceName, now: Revision) {
        let Some(claims) = self.aliases.claims.get_mut(alias) else { return };
        claims.retain(|other| other != name);
        let next = claims.last().cloned();
        if next.is_none() {
            self.aliases.claims.remove(alias);
        }
        let Some(at) = self.find(alias.as_str()) else { return };
        let what = match &self.slots[at].what {
            What::Alias(alias) if alias.of.as_ref() == Some(name) => alias.pointed(None),
            _ => return,
        };
        match next {
            None => self.set(Some(at), What::Unaliased(what.into()), now),
            Some(next) => {
                self.point(alias, &next, now);
                self.put_again(&next, now);
            }
        }
    }

    /// Makes an alias stand for a resource, unless it is the name of a present resource.
    fn point(&mut self, alias: &ResourceName, to: &ResourceName, now: Revision) {
        let at = self.find(alias.as_str());
        let pointed = match at.map(|at| &self.slots[at].what) {
            Some(What::Present(_)) => return,
            Some(What::Alias(alias) | What::Unaliased(alias)) => alias.pointed(Some(to)),
            _ => Alias { name: alias.clone(), of: Some(to.clone()), former: Vec::new() },
        };
        self.set(at, What::Alias(pointed.into()), now);
    }

    /// Takes the aliases of a resource that was put, and the alias of its name, from other resources that have them.
    pub(super) fn take_aliases(&mut self, name: &ResourceName, now: Revision) {
        if self.aliases.claims.is_empty() {
            return;
        }
        let aliases = self.aliases.of.get(name).into_iter().flatten().chain([name]);
        let others = aliases.filter_map(|alias| self.aliases.claims.get(alias)).flatten();
        let others: BTreeSet<ResourceName> = others.filter(|other| *other != name).cloned().collect();
        others.iter().for_each(|other| self.put_again(other, now));
    }

    /// Makes a resource present, with those of its aliases that stand for it.
    pub(super) fn set_present(&mut self, at: Option<usize>, resource: Resource, now: Revision) {
        let served = self.served(&resource);
        self.sum = self.sum.wrapping_add(hash::pair(served.name(), served.version()));
        let differs = served != resource;
        self.set(at, What::Present(served), now);
        if differs {
            self.aliases.whole.insert(resource.name().clone(), resource);
        }
    }

    /// Returns a present resource as it was put.
    pub(super) fn as_put(&self, at: usize) -> Option<&Resource> {
        let resource = self.slots[at].resource()?;
        Some(self.aliases.whole.get(resource.name()).unwrap_or(resource))
    }

    /// Returns a resource as it is served: without aliases that stand for another one.
    fn served(&self, resource: &Resource) -> Resource {
        let name = resource.name();
        let stands = |alias: &ResourceName| match self.find(alias.as_str()).map(|at| &self.slots[at].what) {
            Some(What::Alias(alias)) => alias.of.as_ref() == Some(name),
            _ => false,
        };
        let has = |alias: &&ResourceName| *alias == name || stands(alias);
        let aliases: Vec<ResourceName> = resource.aliases().iter().filter(has).cloned().collect();
        if aliases.len() == resource.aliases().len() {
            resource.clone()
        } else {
            resource.clone().with_aliases(aliases)
        }
    }

    /// Serves a resource with its aliases of now, if these are others than before: the resource is new to those who
    /// subscribe by them.
    fn put_again(&mut self, name: &ResourceName, now: Revision) {
        let Some(at) = self.find(name.as_str()) else { return };
        let Some(resource) = self.as_put(at).cloned() else { return };
        if self.slots[at].resource() != Some(&self.served(&resource)) {
            self.set_present(Some(at), resource, now);
            self.slots[at].history = None;
        }
    }

    /// Returns the entry of the name in a slot; for an alias, the entry of its resource.
    pub(super) fn entry(&self, at: usize) -> Entry<'_> {
        let slot = &self.slots[at];
        let own = slot.entry();
        let What::Alias(alias) = &slot.what else { return own };
        let Some(of) = &alias.of else { return own };
        let Some(target) = self.find(of.as_str()) else { return own };
        let Entry { state, since, before } = self.slots[target].entry();
        if own.since <= since {
            Entry { state, since, before }
        } else {
            let nothing = (Revision::default(), Revision::default());
            Entry { state, since: own.since, before: nothing }
        }
    }

    /// Returns the former targets of an alias, and the revision of its last change.
    pub(in crate::server::cache) fn former_targets(&self, alias: &str) -> Option<(Revision, &[ResourceName])> {
        if !self.aliases.ever {
            return None;
        }
        let slot = &self.slots[self.find(alias)?];
        match &slot.what {
            What::Alias(alias) | What::Unaliased(alias) => Some((slot.since, &alias.former)),
            _ => None,
        }
    }

    pub(super) fn check_aliases(&self) -> Result<(), String> {
        for (name, aliases) in &self.aliases.of {
            let slot = self.find(name.as_str()).map(|at| &self.slots[at].what);
            let (Some(What::Present(_)) | Some(What::Unknown(_))) = slot else {
                return Err(format!("{name} is not there, and has aliases"));
            };
            let claimed = |alias: &ResourceName| self.aliases.claims.get(alias).is_some_and(|by| by.contains(name));
            ensure!(aliases.iter().all(claimed), "{name} has an alias that nobody knows");
        }
        for (alias, by) in &self.aliases.claims {
            let slot = self.find(alias.as_str()).map(|at| &self.slots[at].what);
            let owner = by.last();
            let right = match slot {
                Some(What::Alias(alias)) => alias.of.as_ref() == owner,
                _ => true, // a name that is or was that of a resource
            };
            ensure!(right, "{alias} does not stand for {owner:?}");
            ensure!(by.iter().all(|name| self.aliases.of.contains_key(name)), "{alias} is had by nobody");
        }
        for resource in self.resources() {
            let whole = self.aliases.whole.get(resource.name());
            let as_put = whole.unwrap_or(resource);
            ensure!(self.served(as_put) == *resource, "{} has an alias that stands for another", resource.name());
            ensure!(whole != Some(resource), "{} was put as it is served", resource.name());
        }
        let astray =
            self.aliases.whole.keys().find(|name| self.find(name.as_str()).and_then(|at| self.as_put(at)).is_none());
        ensure!(astray.is_none(), "{astray:?} was put, and is not there");
        Ok(())
    }
}
