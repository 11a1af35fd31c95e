//! The second stage of a response: classifies its content by the subscribed names and the held resources. No state
//! changes here.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::config::Settings;
use super::incoming::{Heartbeat, Incoming};
use super::subscription::Subscription;
use super::variant::Protocol;
use crate::name::{ResourceName, Version, WILDCARD};

/// A response and its meaning for this client.
pub(super) struct Classified {
    pub(super) incoming: Incoming,
    /// Whether the response is the first answer to the wildcard.
    pub(super) answers_all: bool,
    /// Whether a response without an update means that there is nothing to apply.
    pub(super) synced: bool,
    pub(super) gone: Gone,
}

/// The names that a response removes.
#[derive(Default)]
pub(super) struct Gone {
    /// Held resources, in order.
    pub(super) removed: Vec<ResourceName>,
    /// Announced names that are not held, in order, each with the version of the server's report, if it has one.
    pub(super) missing: Vec<(ResourceName, Option<Version>)>,
    /// Aliases that stand for nothing any more, of resources that are wanted by other names.
    pub(super) unbound: Vec<ResourceName>,
}

impl<T> Subscription<T> {
    /// Classifies a response that was read.
    pub(super) fn classify<V: Protocol<StreamState = T>>(
        &self,
        mut incoming: Incoming,
        settings: &Settings,
    ) -> Classified {
        if let Some(reason) = self.too_many_with(&incoming, settings.limits.resources_per_type) {
            incoming.refuse(reason);
        }
        self.split_not_found::<V>(&mut incoming);
        let is_answered = self.holdings.is_answered(WILDCARD);
        let answers_all = self.wants(WILDCARD) && !is_answered && V::answers_all(self, &incoming);
        // Heartbeats may be the complete answer to the wildcard, as long as it is unanswered.
        let awaits_all = self.is_announced(WILDCARD) && !is_answered;
        let answers = answers_all || awaits_all || incoming.heartbeats.is_empty();
        let synced = answers && incoming.has_no_content();
        let gone = match (incoming.refused, incoming.has_all) {
            (true, _) => Gone::default(),
            (false, true) => {
                // Of a name that is not held, an earlier response that waited had a resource.
                let news = |name: &&ResourceName| !self.holdings.has(name.as_str()) && !self.is_excused(name);
                let missing = incoming.removed.iter().filter(news).filter(|name| self.is_announced(name.as_str()));
                let missing = missing.map(|name| (name.clone(), None)).collect();
                Gone { removed: self.absent(&incoming), missing, ..Gone::default() }
            }
            (false, false) => self.named_gone::<V>(&incoming),
        };
        Classified { incoming, answers_all, synced, gone }
    }

    /// Returns the reason to refuse a response with which a type with a wildcard or a collection exceeds its limit.
    fn too_many_with(&self, incoming: &Incoming, limit: usize) -> Option<String> {
        let held = self.holdings.held();
        let stands_for_many = self.wants(WILDCARD) || !self.holdings.globs().is_empty();
        if held.len() + incoming.resources.len() <= limit || !stands_for_many {
            return None;
        }
        let is_held = |name: &&ResourceName| held.contains_key(*name);
        let gone = if incoming.has_all {
            held.len() - incoming.resources.names().filter(is_held).count()
        } else {
            incoming.removed.iter().filter(is_held).count()
        };
        let count = held.len() - gone + incoming.resources.names().filter(|name| !is_held(name)).count();
        (count > limit).then(|| alloc::format!("{count} resources with the response, limit {limit}"))
    }

    /// Moves heartbeats that report nonexistent names (C-NAME-10) to `not_found`: they have aliases and no TTL, and do
    /// not renew a held resource.
    fn split_not_found<V: Protocol<StreamState = T>>(&self, incoming: &mut Incoming) {
        if !V::ALIASES || incoming.heartbeats.is_empty() {
            return;
        }
        let is_not_found = |heartbeat: &Heartbeat| {
            let renews = self.resource_type.has_heartbeats() && self.holdings.has(heartbeat.name.as_str());
            !heartbeat.renewed && !renews && heartbeat.ttl.is_none() && !heartbeat.aliases.is_empty()
        };
        let (not_found, heartbeats) = core::mem::take(&mut incoming.heartbeats).into_iter().partition(is_not_found);
        incoming.heartbeats = heartbeats;
        let not_found: Vec<Heartbeat> = not_found;
        for Heartbeat { name, version, aliases, .. } in not_found {
            let names = aliases.into_iter().filter(|alias| *alias != name);
            incoming.not_found.extend(names.map(|alias| (alias, version.clone())));
            incoming.not_found.push((name, version));
        }
        // A resource in the response exists, whatever else the response reports of its name.
        let Incoming { not_found, resources, .. } = incoming;
        not_found.retain(|(name, _)| resources.find(name.as_str()).is_none());
    }

    /// Returns the held resources that are absent from a response that has everything.
    fn absent(&self, incoming: &Incoming) -> Vec<ResourceName> {
        let held = self.holdings.held();
        if incoming.compared && incoming.held == held.len() {
            return Vec::new(); // every held resource is present
        }
        let mut present: BTreeSet<&ResourceName> = incoming.others().collect();
        let mut resources = incoming.resources.names().peekable();
        let absent = held.keys().filter(|&name| {
            while resources.next_if(|&other| other < name).is_some() {}
            let absent = resources.next_if(|&other| other == name).is_none() && !present.remove(name);
            absent && !self.is_excused(name)
        });
        absent.cloned().collect()
    }

    /// Returns the removals that a response names: held resources, and subscribed names that are not held.
    fn named_gone<V: Protocol<StreamState = T>>(&self, incoming: &Incoming) -> Gone {
        let (mut removed, mut missing) = (Vec::new(), Vec::new());
        for name in incoming.removed.iter().chain(incoming.not_found.iter().map(|(name, _)| name)) {
            if self.holdings.globs().contains(name.as_str()) {
                // The collection is empty (TP1, "Glob").
                let before = removed.len();
                let members = self.holdings.members(name);
                removed.extend(members.filter(|member| !incoming.mentions(member.as_str())).cloned());
                if removed.len() == before && !incoming.mentions(name.as_str()) {
                    missing.push(name.clone());
                }
            } else if self.holdings.has(name.as_str()) {
                removed.push(name.clone());
            } else {
                missing.push(name.clone());
            }
        }
        sort(&mut removed);
        let mut unbound = Vec::new();
        if !self.holdings.bindings().is_empty() {
            unbound = self.add_orphaned_targets::<V>(incoming, &mut removed, &mut missing);
        }
        sort(&mut missing);
        missing.retain(|name| self.is_announced(name.as_str()));
        let version = |name: &ResourceName| {
            let not_found = incoming.not_found.iter().find(|(other, _)| other == name);
            not_found.map(|(_, version)| version.clone())
        };
        let missing = missing.into_iter().map(|name| (name.clone(), version(&name))).collect();
        Gone { removed, missing, unbound }
    }

    /// Returns the subscribed aliases in a response, each with the last resource that carries it.
    pub(super) fn alias_owners<V: Protocol<StreamState = T>>(
        &self,
        incoming: &Incoming,
    ) -> BTreeMap<ResourceName, ResourceName> {
        let mut owners = BTreeMap::new();
        for resource in incoming.resources.with_aliases().filter(|_| V::ALIASES) {
            let aliases = resource.aliases().iter().filter(|alias| *alias != resource.name());
            for alias in aliases.filter(|alias| self.wants(alias.as_str())) {
                owners.insert(alias.clone(), resource.name().clone());
            }
        }
        owners
    }

    /// Finds aliases that now stand for another resource or for nothing, and adds resources that no name covers any
    /// more to `removed`. Returns the aliases that stand for nothing, of resources that stay; an alias of another
    /// resource moves with the verdict on that resource.
    fn add_orphaned_targets<V: Protocol<StreamState = T>>(
        &self,
        incoming: &Incoming,
        removed: &mut Vec<ResourceName>,
        missing: &mut Vec<ResourceName>,
    ) -> Vec<ResourceName> {
        let (holdings, bindings) = (&self.holdings, self.holdings.bindings());
        // The aliases of a removed resource are removed with it, unless an alias is also the name of a held resource.
        let orphans = removed.iter().flat_map(|name| bindings.aliases(name.as_str()));
        let lost = |alias: &&ResourceName| !incoming.mentions(alias.as_str()) && !holdings.has(alias.as_str());
        missing.extend(orphans.filter(lost).cloned());
        // A removal does not yet answer an alias that was unsubscribed and subscribed to again.
        let moves =
            |alias: &&ResourceName| self.is_announced(alias.as_str()) && bindings.target(alias.as_str()).is_some();
        let lost: BTreeSet<&ResourceName> = missing.iter().filter(moves).collect();
        let mut moved = lost.clone();
        // The name of a resource may have been an alias before.
        moved.extend(incoming.resources.names().filter(|name| bindings.target(name.as_str()).is_some()));
        let owners = self.alias_owners::<V>(incoming);
        let elsewhere = |(alias, owner): &(&ResourceName, &ResourceName)| {
            bindings.target(alias.as_str()).is_some_and(|target| target != *owner)
        };
        moved.extend(owners.iter().filter(elsewhere).map(|(alias, _)| alias));
        let mut unbound = Vec::new();
        for &alias in &moved {
            let Some(name) = bindings.target(alias.as_str()) else { continue };
            if removed.binary_search(name).is_ok() {
                continue; // the alias is removed with the resource, once that is accepted
            }
            let stands = |alias: &&ResourceName| !moved.contains(*alias) && !bindings.is_unbound(alias);
            if self.is_known_to_cover(name) || bindings.aliases(name.as_str()).any(|alias| stands(&alias)) {
                unbound.extend(lost.contains(alias).then(|| alias.clone()));
            } else if !owners.values().any(|owner| owner == name) {
                removed.push(name.clone()); // and no resource in the response keeps it by another alias
                sort(removed);
            }
        }
        unbound
    }

    /// Returns whether the server may have received a name, other than an alias, that covers a resource. A name that it
    /// did not receive keeps no resource: the server would not report the removal.
    fn is_known_to_cover(&self, resource: &ResourceName) -> bool {
        let names = [resource.as_str(), WILDCARD].into_iter().filter(|name| self.wants(name));
        let glob = self.holdings.globs().of(resource.as_str()).map(ResourceName::as_str);
        names.chain(glob).any(|name| !self.announced.is_new(name))
    }
}

fn sort(names: &mut Vec<ResourceName>) {
    names.sort();
    names.dedup();
}
