//! The second stage of a response: what it says to this client, told from what is wanted and held. Nothing changes here.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::config::Settings;
use super::holdings::WantedBy;
use super::incoming::{Heartbeat, Incoming};
use super::subscription::Subscription;
use super::variant::Protocol;
use crate::name::{ResourceName, Version, WILDCARD};

/// A response, and what it comes to.
pub(super) struct Classified {
    pub(super) incoming: Incoming,
    /// It is the first answer to the wildcard.
    pub(super) answers_all: bool,
    /// If it has nothing for the application, then because there is nothing.
    pub(super) synced: bool,
    /// What is wanted and not in it is not there.
    pub(super) has_all: bool,
    pub(super) gone: Gone,
}

/// What is gone with a response.
#[derive(Default)]
pub(super) struct Gone {
    /// Of what is held, in order.
    pub(super) removed: Vec<ResourceName>,
    /// Of what is wanted, told and not held, in order: with the version of that, if it has one.
    pub(super) missing: Vec<(ResourceName, Option<Version>)>,
    /// Aliases that stand for nothing any more, of what is wanted by other names.
    pub(super) unbound: Vec<ResourceName>,
}

impl<T> Subscription<T> {
    /// What a response that was read says.
    pub(super) fn classify<V: Protocol<StreamState = T>>(
        &self,
        mut incoming: Incoming,
        settings: &Settings,
    ) -> Classified {
        if let Some(reason) = self.too_many_with::<V>(&incoming, settings.limits.resources_per_type) {
            incoming.refuse(reason);
        }
        self.split_not_found::<V>(&mut incoming);
        let is_answered = self.holdings.is_answered(WILDCARD);
        let answers_all = self.wants(WILDCARD) && !is_answered && V::answers_all(self, &incoming);
        // A heartbeat beside it may be all that there is to say of what the wildcard stands for.
        let awaits_all = self.is_announced(WILDCARD) && !is_answered;
        let answers = answers_all || awaits_all || incoming.heartbeats.is_empty();
        let synced = answers && incoming.brings_nothing();
        let has_all = !incoming.refused && V::absence_removes(&self.resource_type, &incoming);
        let gone = match (incoming.refused, has_all) {
            (true, _) => Gone::default(),
            (false, true) => Gone { removed: self.absent(&incoming), ..Gone::default() },
            (false, false) => self.named_gone::<V>(&incoming),
        };
        Classified { incoming, answers_all, synced, has_all, gone }
    }

    /// Whether a server that was asked for everything sends more than this.
    fn too_many_with<V: Protocol<StreamState = T>>(&self, incoming: &Incoming, limit: usize) -> Option<String> {
        let held = self.holdings.held();
        let stands_for_many = self.wants(WILDCARD) || !self.holdings.globs().is_empty();
        if held.len() + incoming.resources.len() <= limit || !stands_for_many {
            return None;
        }
        let is_held = |name: &&ResourceName| held.contains_key(*name);
        let gone = if V::absence_removes(&self.resource_type, incoming) {
            held.len() - incoming.resources.names().filter(is_held).count()
        } else {
            incoming.removed.iter().filter(is_held).count()
        };
        let count = held.len() - gone + incoming.resources.names().filter(|name| !is_held(name)).count();
        (count > limit).then(|| alloc::format!("{count} resources with the response, limit {limit}"))
    }

    /// Takes out of the heartbeats what says of names that they do not exist (C-NAME-10): what has no content and other
    /// names, and is no news of what is held.
    fn split_not_found<V: Protocol<StreamState = T>>(&self, incoming: &mut Incoming) {
        if !V::ALIASES || incoming.heartbeats.is_empty() {
            return;
        }
        let says_so = |heartbeat: &Heartbeat| {
            let beats = self.resource_type.has_heartbeats() && self.holdings.has(heartbeat.name.as_str());
            !beats && heartbeat.ttl.is_none() && !heartbeat.aliases.is_empty()
        };
        let (not_found, beats) = core::mem::take(&mut incoming.heartbeats).into_iter().partition(says_so);
        incoming.heartbeats = beats;
        let not_found: Vec<Heartbeat> = not_found;
        for Heartbeat { name, version, aliases, .. } in not_found {
            let names = aliases.into_iter().filter(|alias| *alias != name);
            incoming.not_found.extend(names.map(|alias| (alias, version.clone())));
            incoming.not_found.push((name, version));
        }
        // What is sent is there, whatever else the response says of its name.
        let Incoming { not_found, resources, .. } = incoming;
        not_found.retain(|(name, _)| resources.find(name.as_str()).is_none());
    }

    /// What is held and not in a response that has everything.
    fn absent(&self, incoming: &Incoming) -> Vec<ResourceName> {
        let held = self.holdings.held();
        if incoming.compared && incoming.held == held.len() {
            return Vec::new(); // all is there
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

    /// What a response says is gone: of what is held, and of what is wanted and not held.
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

    /// The wanted aliases of what comes, and what each is to stand for: of more resources the last.
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

    /// Aliases that stand for something else or for nothing now, and resources that are not wanted by any name any more.
    /// Returns the aliases that stand for nothing, of what stays; one that stands for something else moves when that is accepted.
    fn add_orphaned_targets<V: Protocol<StreamState = T>>(
        &self,
        incoming: &Incoming,
        removed: &mut Vec<ResourceName>,
        missing: &mut Vec<ResourceName>,
    ) -> Vec<ResourceName> {
        let (holdings, bindings) = (&self.holdings, self.holdings.bindings());
        // The aliases of what is gone are gone, unless one has become the name of something that is held beside it.
        let orphans = removed.iter().flat_map(|name| bindings.aliases(name.as_str()));
        let lost = |alias: &&ResourceName| !incoming.mentions(alias.as_str()) && !holdings.has(alias.as_str());
        missing.extend(orphans.filter(lost).cloned());
        // What is said of an alias that left and came back is no answer to that yet.
        let moves =
            |alias: &&ResourceName| self.is_announced(alias.as_str()) && bindings.target(alias.as_str()).is_some();
        let lost: BTreeSet<&ResourceName> = missing.iter().filter(moves).collect();
        let mut moved = lost.clone();
        // A name may have been an alias before.
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
                continue; // the link goes with the resource, once that is accepted
            }
            let stands = |alias: &&ResourceName| !moved.contains(*alias) && !bindings.is_unbound(alias);
            let by_name = holdings.wanted_by(name.as_str()) == WantedBy::Name;
            if by_name || bindings.aliases(name.as_str()).any(|alias| stands(&alias)) {
                unbound.extend(lost.contains(alias).then(|| alias.clone()));
            } else if !owners.values().any(|owner| owner == name) {
                removed.push(name.clone()); // and it does not come by another alias
                sort(removed);
            }
        }
        unbound
    }
}

fn sort(names: &mut Vec<ResourceName>) {
    names.sort();
    names.dedup();
}
