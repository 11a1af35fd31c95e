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
    /// Sets the aliases of a resource. One that is put is set itself afterwards, so that its slot shows whether it was
    /// unknown. Returns the other resources that have one of the aliases, the old or the new ones, or the name as an
    /// alias: [`put_again`](Self::put_again) is due for these.
    pub(super) fn claim(
        &mut self,
        name: &ResourceName,
        mut aliases: Vec<ResourceName>,
        now: Revision,
    ) -> BTreeSet<ResourceName> {
        if aliases.is_empty() && self.aliases.claims.is_empty() {
            return BTreeSet::new(); // nearly always
        }
        aliases.retain(|alias| alias != name);
        self.aliases.ever |= !aliases.is_empty();
        let is_back = self.find(name.as_str()).is_some_and(|at| matches!(self.slots[at].what, What::Unknown(_)));
        let before = self.aliases.of.remove(name).unwrap_or_default();
        for alias in before.iter().filter(|alias| !aliases.contains(alias)) {
            self.unclaim(alias, name, now);
        }
        for alias in &aliases {
            let claims = self.aliases.claims.entry(alias.clone()).or_default();
            // A resource that was unknown gets an alias anew, which another one may have got meanwhile.
            let known = if is_back { claims.last() == Some(name) } else { claims.contains(name) };
            if !known {
                claims.retain(|other| other != name);
                claims.push(name.clone());
            }
            // The alias may have been the name of a resource meanwhile.
            let stands = |at: usize| matches!(self.slots[at].what, What::Alias(_));
            if !known || !self.find(alias.as_str()).is_some_and(stands) {
                self.point(alias, name, now);
            }
        }
        let touched = before.iter().chain(&aliases).chain([name]);
        let others = touched.filter_map(|alias| self.aliases.claims.get(alias)).flatten();
        let others = others.filter(|other| *other != name).cloned().collect();
        if !aliases.is_empty() {
            self.aliases.of.insert(name.clone(), aliases);
        }
        others
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
            Some(next) => self.point(alias, &next, now),
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

    /// Serves resources with their aliases of now, if these are others than before: each is new to those who subscribe
    /// by the aliases, at a revision of its own.
    pub(super) fn put_again(&mut self, names: BTreeSet<ResourceName>) {
        for name in names {
            let Some(at) = self.find(name.as_str()) else { continue };
            let Some(resource) = self.as_put(at).cloned() else { continue };
            if self.slots[at].resource() != Some(&self.served(&resource)) {
                self.set_present(Some(at), resource, Revision(self.revision.0 + 1));
                self.slots[at].history = None;
            }
        }
    }

    /// Returns the entry of the name in a slot; for an alias, the entry of its resource.
    pub(super) fn entry(&self, at: usize) -> Entry<'_> {
        let slot = &self.slots[at];
        let own = slot.entry();
        let What::Alias(alias) = &slot.what else { return own };
        let Some(of) = &alias.of else { return own };
        let Some(target) = self.find(of.as_str()) else { return own };
        let Entry { state, since } = self.slots[target].entry();
        Entry { state, since: since.max(own.since) }
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
