//! Names that stand for others: aliases, of which the client learns from what comes (delta; xds_protocol.rst, "Resource
//! names"), and collections.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound;

use super::failure::News;
use super::incoming::{Heartbeat, Incoming};
use super::resources::Resource;
use super::subscription::{Out, Subscription, Wish};
use super::variant::Protocol;
use crate::ensure::ensure;
use crate::globs::Globs;
use crate::name::{ResourceName, Version, WILDCARD};
use crate::xdstp::Parts;

/// What wanted aliases stand for.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Links {
    /// What is held, by alias.
    to: BTreeMap<ResourceName, Link>,
    /// The same from the other end.
    from: BTreeMap<ResourceName, BTreeSet<ResourceName>>,
    /// Wanted names that do not exist, with the version that the server gave to that (C-NAME-10): it is claimed on a new
    /// stream like any other.
    nowhere: BTreeMap<ResourceName, Version>,
}

/// What an alias stands for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Link {
    name: ResourceName,
    /// It is said not to any more, and the removal of what it stood for is out, or was rejected. That keeps nothing, though
    /// the alias be asked for again.
    lost: bool,
}

impl Links {
    fn link(&mut self, alias: &ResourceName, name: &ResourceName) {
        self.unlink(alias.as_str());
        self.to.insert(alias.clone(), Link { name: name.clone(), lost: false });
        self.from.entry(name.clone()).or_default().insert(alias.clone());
    }

    /// What an alias stands for came from elsewhere.
    pub(super) fn stand_for(&mut self, alias: &ResourceName, name: &ResourceName) {
        self.nowhere.remove(alias);
        self.nowhere.remove(name);
        self.link(alias, name);
    }

    /// Forgets an alias. Returns what it stood for.
    fn unlink(&mut self, alias: &str) -> Option<ResourceName> {
        let Link { name, .. } = self.to.remove(alias)?;
        if let Some(aliases) = self.from.get_mut(&name) {
            aliases.remove(alias);
            if aliases.is_empty() {
                self.from.remove(&name);
            }
        }
        Some(name)
    }

    pub(super) fn target(&self, alias: &str) -> Option<&ResourceName> {
        self.to.get(alias).map(|link| &link.name)
    }

    /// The wanted aliases of a resource.
    pub(super) fn aliases(&self, name: &str) -> impl Iterator<Item = &ResourceName> {
        self.from.get(name).into_iter().flatten()
    }

    /// Whether an alias stands for a resource, and is not known to stand for nothing since.
    fn keep(&self, name: &str, wishes: &BTreeMap<ResourceName, Wish>) -> bool {
        let lost = |alias: &ResourceName| self.to.get(alias).is_some_and(|link| link.lost);
        self.aliases(name).any(|alias| !lost(alias) && wishes.get(alias).is_some_and(|wish| !wish.missing))
    }

    /// A name exists after all, or what is held of it stays.
    pub(super) fn found(&mut self, name: &ResourceName) {
        self.nowhere.remove(name);
    }

    pub(super) fn nowhere(&self) -> impl Iterator<Item = (&ResourceName, &Version)> {
        self.nowhere.iter()
    }
}

impl<V: Protocol> Subscription<V> {
    /// Whether a resource of this name is wanted: by the name, with others, or as what an alias stands for.
    pub(super) fn covers(&self, name: &str) -> bool {
        self.covers_named(name) || self.links.from.contains_key(name)
    }

    /// By the name or with others.
    fn covers_named(&self, name: &str) -> bool {
        self.wants(name) || self.wants(WILDCARD) || self.globs.cover(name)
    }

    /// Whether it is wanted, but not only by aliases that are known to stand for nothing: the removal of what they stood for
    /// is out.
    fn keeps(&self, name: &str) -> bool {
        self.covers_named(name) || self.links.keep(name, &self.wishes)
    }

    /// Whether a resource is wanted that comes with these aliases.
    pub(super) fn covers_resource(&self, resource: Resource<'_>) -> bool {
        let by_alias = || resource.aliases().iter().any(|alias| self.wants(alias.as_str()));
        self.covers(resource.name().as_str()) || (V::ALIASES && by_alias())
    }

    /// Takes out of the heartbeats what says of names that they do not exist (C-NAME-10): what has no content and other
    /// names, and is no news of what is held.
    pub(super) fn split_nowhere(&mut self, incoming: &mut Incoming) {
        if !V::ALIASES || incoming.heartbeats.is_empty() {
            return;
        }
        let says_so = |heartbeat: &Heartbeat| {
            let beats = self.kind.has_heartbeats() && self.held.contains_key(&heartbeat.name);
            !beats && heartbeat.ttl.is_none() && !heartbeat.aliases.is_empty()
        };
        let (nowhere, beats) = core::mem::take(&mut incoming.heartbeats).into_iter().partition(says_so);
        incoming.heartbeats = beats;
        let nowhere: Vec<Heartbeat> = nowhere;
        for Heartbeat { name, version, aliases, .. } in nowhere {
            let names = aliases.into_iter().filter(|alias| *alias != name);
            incoming.nowhere.extend(names.map(|alias| (alias, version.clone())));
            incoming.nowhere.push((name, version));
        }
        // What is sent is there, whatever else the response says of its name.
        let Incoming { nowhere, resources, .. } = incoming;
        nowhere.retain(|(name, _)| resources.find(name.as_str()).is_none());
    }

    /// A name is wanted no longer: so is what only it stood for.
    pub(super) fn let_go(&mut self, name: &ResourceName) {
        let glob = self.globs.remove(name.as_str());
        self.links.nowhere.remove(name.as_str());
        let stood_for = self.links.unlink(name.as_str());
        let gone: Vec<ResourceName> = if name.is_wildcard() {
            let Self { held, wishes, globs, links, timers, .. } = self;
            let wanted = |name: &ResourceName| {
                wishes.contains_key(name) || globs.cover(name.as_str()) || links.keep(name.as_str(), wishes)
            };
            held.retain(|name, _| wanted(name));
            timers.retain_expiries(|name| held.contains_key(name));
            links.from.keys().filter(|name| !held.contains_key(*name)).cloned().collect()
        } else if glob {
            self.members(name).filter(|held| !self.keeps(held.as_str())).cloned().collect()
        } else {
            let one = [Some(name.clone()), stood_for].into_iter().flatten();
            one.filter(|name| !self.keeps(name.as_str())).collect()
        };
        for name in &gone {
            self.held.remove(name);
            self.unlink(name);
            self.timers.set_expiry(name, None);
        }
        if let Some(out) = self.out.take() {
            let offer = out.offer.clone();
            let unwanted = |name: &ResourceName| !self.covers(name.as_str());
            let mut left: Vec<ResourceName> = Vec::new();
            if name.is_wildcard() || glob {
                let resources = offer.resources.iter().filter(|&resource| !self.covers_resource(resource));
                left.extend(resources.map(|resource| resource.name().clone()));
                left.extend(offer.removed.iter().filter(|name| unwanted(name)).cloned());
            } else {
                let by_alias = offer.resources.with_alias(name.as_str());
                let by_name = offer.resources.find(name.as_str()).map(|at| offer.resources.at(at));
                let resources = by_alias.chain(by_name).filter(|&resource| !self.covers_resource(resource));
                left.extend(resources.map(|resource| resource.name().clone()));
                left.extend(
                    gone.into_iter()
                        .chain([name.clone()])
                        .filter(|name| offer.removed.binary_search(name).is_ok() && unwanted(name)),
                );
            }
            let out = self.out.insert(out);
            out.left.extend(left);
        }
    }

    /// Of two resources of an update that have one alias the last has it. The other was wanted by its own name when it came,
    /// and may not be any more.
    pub(super) fn drop_namesakes(&mut self, out: &Out) {
        for resource in out.offer.resources.with_aliases().filter(|_| V::ALIASES) {
            if !self.covers(resource.name().as_str()) && self.held.remove(resource.name()).is_some() {
                self.timers.set_expiry(resource.name(), None);
            }
        }
    }

    /// What is held of a collection.
    pub(super) fn members(&self, glob: &ResourceName) -> impl Iterator<Item = &ResourceName> {
        let parts = Parts::of(glob.as_str());
        parts.into_iter().flat_map(|parts| {
            let first = (Bound::Included(parts.directory), Bound::Unbounded);
            let from = self.held.range::<str, _>(first).map(|(name, _)| name);
            from.take_while(move |name| name.as_str().starts_with(parts.directory))
                .filter(move |name| parts.has(name.as_str()))
        })
    }

    /// A resource is no longer held: nothing stands for it.
    pub(super) fn unlink(&mut self, name: &ResourceName) {
        let aliases: Vec<ResourceName> = self.links.aliases(name.as_str()).cloned().collect();
        for alias in aliases {
            self.links.unlink(alias.as_str());
            if let Some(wish) = self.wishes.get_mut(&alias) {
                wish.rejected = false; // there is nothing left that was
            }
        }
    }

    /// What the response says is gone: of what is held, and of what is wanted and not held.
    pub(super) fn named_gone(&mut self, incoming: &Incoming) -> News {
        let (mut removed, mut missing) = (Vec::new(), Vec::new());
        for name in incoming.removed.iter().chain(incoming.nowhere.iter().map(|(name, _)| name)) {
            if self.globs.contains(name.as_str()) {
                // The collection is empty (TP1, "Glob").
                let before = removed.len();
                removed.extend(self.members(name).filter(|member| !incoming.mentions(member.as_str())).cloned());
                if removed.len() == before && !incoming.mentions(name.as_str()) {
                    missing.push(name.clone());
                }
            } else if self.held.contains_key(name) {
                removed.push(name.clone());
            } else {
                missing.push(name.clone());
            }
        }
        sort(&mut removed);
        if !self.links.to.is_empty() {
            self.add_strays(incoming, &mut removed, &mut missing);
        }
        sort(&mut missing);
        let told = |name: &ResourceName| self.wishes.get(name).is_some_and(|wish| wish.told && !wish.missing);
        missing.retain(told);
        for name in &missing {
            self.timers.stop(name);
            if let Some(wish) = self.wishes.get_mut(name) {
                wish.missing = true;
            }
            if let Some(link) = self.links.to.get_mut(name) {
                link.lost = true;
            }
        }
        for (name, version) in &incoming.nowhere {
            if self.wants(name.as_str()) {
                self.links.nowhere.insert(name.clone(), version.clone());
            }
        }
        incoming.removed.iter().for_each(|name| _ = self.links.nowhere.remove(name.as_str()));
        News { removed, missing, ..News::default() }
    }

    /// The wanted aliases of what comes, and what each is to stand for: of more resources the last.
    pub(super) fn alias_owners(&self, incoming: &Incoming) -> BTreeMap<ResourceName, ResourceName> {
        let mut owners = BTreeMap::new();
        for resource in incoming.resources.with_aliases().filter(|_| V::ALIASES) {
            let aliases = resource.aliases().iter().filter(|alias| *alias != resource.name());
            for alias in aliases.filter(|alias| self.wants(alias.as_str())) {
                owners.insert(alias.clone(), resource.name().clone());
            }
        }
        owners
    }

    /// Aliases that stand for something else or for nothing now, and resources that are not wanted by any name any more.
    fn add_strays(&mut self, incoming: &Incoming, removed: &mut Vec<ResourceName>, missing: &mut Vec<ResourceName>) {
        // The aliases of what is gone are gone, unless one has become the name of something that is held beside it.
        let orphans = removed.iter().flat_map(|name| self.links.aliases(name.as_str()));
        let lost = |alias: &&ResourceName| !incoming.mentions(alias.as_str()) && !self.held.contains_key(*alias);
        missing.extend(orphans.filter(lost).cloned());
        // What is said of an alias that left and came back is no answer to that yet.
        let moves = |alias: &&ResourceName| self.is_told(alias.as_str()) && self.links.target(alias.as_str()).is_some();
        let mut moved: BTreeSet<&ResourceName> = missing.iter().filter(moves).collect();
        // A name may have been an alias before.
        moved.extend(incoming.resources.names().filter(|name| self.links.target(name.as_str()).is_some()));
        let owners = self.alias_owners(incoming);
        let elsewhere = |(alias, owner): &(&ResourceName, &ResourceName)| {
            self.links.target(alias.as_str()).is_some_and(|target| target != *owner)
        };
        moved.extend(owners.iter().filter(elsewhere).map(|(alias, _)| alias));
        let mut unlinked = Vec::new();
        for &alias in &moved {
            let Some(name) = self.links.target(alias.as_str()) else { continue };
            if removed.binary_search(name).is_ok() {
                continue; // the link goes with the resource, once that is accepted
            }
            if self.covers_named(name.as_str()) || self.links.aliases(name.as_str()).any(|alias| !moved.contains(alias))
            {
                unlinked.push(alias.clone());
            } else {
                removed.push(name.clone());
                sort(removed);
            }
        }
        unlinked.iter().for_each(|alias| _ = self.links.unlink(alias.as_str()));
    }

    pub(super) fn check_names(&self) -> Result<(), String> {
        let globs = self.wishes.keys().filter(|name| name.is_glob());
        ensure!(globs.eq(self.globs.iter().collect::<BTreeSet<_>>()), "the collections are not those that are wanted");
        let Links { to, from, nowhere } = &self.links;
        let count: usize = from.values().map(BTreeSet::len).sum();
        ensure!(to.len() == count, "{} aliases, {count} seen from the other end", to.len());
        for (alias, Link { name, .. }) in to {
            ensure!(self.wants(alias.as_str()), "{alias} stands for {name} and is not wanted");
            ensure!(self.held.contains_key(name), "{alias} stands for {name}, which is not held");
            let back = from.get(name).is_some_and(|aliases| aliases.contains(alias));
            ensure!(back, "{alias} stands for {name} from one end only");
        }
        let going =
            |name: &ResourceName| self.out.as_ref().is_some_and(|out| out.offer.removed.binary_search(name).is_ok());
        for name in nowhere.keys() {
            ensure!(self.wants(name.as_str()), "{name} is nowhere, and not wanted");
            ensure!(!self.held.contains_key(name) || going(name), "{name} is nowhere, and there");
        }
        Ok(())
    }
}

/// What becomes of the other names that a resource is wanted by, now that it is judged. Whether there are any.
pub(super) fn judge_other_names<V: Protocol>(
    wishes: &mut BTreeMap<ResourceName, Wish>,
    globs: &Globs,
    links: &mut Links,
    resource: Resource<'_>,
    accepted: bool,
) -> bool {
    let glob = globs.of(resource.name().as_str());
    if let Some(wish) = glob.and_then(|glob| wishes.get_mut(glob)) {
        wish.missing &= !accepted;
        wish.answered = true;
    }
    let mut wanted = glob.is_some();
    for alias in resource.aliases().iter().filter(|alias| V::ALIASES && *alias != resource.name()) {
        let Some(wish) = wishes.get_mut(alias) else { continue };
        wanted = true;
        wish.rejected = !accepted;
        wish.missing &= !accepted;
        if accepted {
            links.nowhere.remove(alias);
            links.link(alias, resource.name());
        }
    }
    if accepted {
        links.nowhere.remove(resource.name());
    }
    wanted
}

fn sort(names: &mut Vec<ResourceName>) {
    names.sort();
    names.dedup();
}
