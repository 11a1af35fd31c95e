//! The resources of one type: subscribed names, held resources, their aliases, names known not to exist, and the
//! versions that may be claimed.
//!
//! Only [`wanted_by`](Holdings::wanted_by) decides whether a resource is still wanted, and only `drop_held` removes a
//! resource, together with its TTL and its aliases. So every held resource is wanted, every alias stands for a held
//! resource, and no held resource counts as nonexistent.

mod claims;
mod expiry;
mod held;
mod take;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound;

pub use self::held::Absence;
pub(in crate::client) use self::held::Held;
use super::bindings::AliasBindings;
use super::deadlines::Deadlines;
use super::in_flight::Out;
use super::incoming::Walk;
use super::resources::Resource;
use crate::ensure::ensure;
use crate::globs::Globs;
use crate::model::{Label, Relabel};
use crate::name::{ResourceName, TypeUrl, Version, WILDCARD};
use crate::time::Instant;
use crate::xdstp::Parts;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Holdings {
    /// The subscribed names; the wildcard is one of them.
    subscribed: BTreeMap<ResourceName, SubscribedName>,
    /// Subscribed names of collections.
    globs: Globs,
    /// Resources that the application accepted, or has from elsewhere, and that a subscription still covers.
    held: BTreeMap<ResourceName, Held>,
    /// The expiry of resources with a TTL.
    expiry: Deadlines,
    /// Held resources of which newer content waits for its verdict and keeps them alive, each with the expiry that it
    /// has if that content is rejected.
    extended: BTreeMap<ResourceName, Option<Instant>>,
    bindings: AliasBindings,
    /// Names that a response reported not to exist.
    not_found: BTreeMap<ResourceName, Absence>,
    /// Counts the removals from `held` other than by an update, which make a comparison with a response invalid.
    losses: u64,
    /// The version of the last response that was accepted completely.
    version: Version,
    /// The time at which that response was accepted.
    version_at: Option<Instant>,
    /// Whether a part of a later response was accepted, so that held resources may be newer.
    partly_newer: bool,
    /// Whether a held resource may carry its own version or be unclaimed, so that the type-wide version does not
    /// describe all of them.
    mixed: bool,
    /// Expired resources that the server may believe to be alive, because a heartbeat was late. At most as many as may
    /// be held.
    lapsed: BTreeSet<ResourceName>,
}

/// The state of a subscribed name.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(in crate::client) struct SubscribedName {
    existence: Existence,
    /// Whether the last completely accepted version covers this name although it is not held: all resources of the
    /// wildcard were delivered, or the named resource does not exist.
    complete: bool,
    /// For a collection: whether a resource of it was received. For the wildcard: whether a response answered it, and
    /// no received resource was lost since.
    answered: bool,
}

/// The existence of a subscribed name, apart from whether it is held.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
enum Existence {
    #[default]
    Unknown,
    /// The resource is known, or assumed, not to exist, and the application knows.
    DoesNotExist,
    /// The last content of this name was rejected. `missing`: as far as the application knows, the resource did not
    /// exist before.
    Rejected { missing: bool },
}

impl Existence {
    /// Returns whether the application knows that the resource does not exist.
    fn does_not_exist(self) -> bool {
        matches!(self, Self::DoesNotExist | Self::Rejected { missing: true })
    }

    /// Returns the state after new content was rejected.
    fn rejected(self) -> Self {
        Self::Rejected { missing: self.does_not_exist() }
    }

    /// Returns the state after the rejected content was dropped.
    fn without_rejected(self) -> Self {
        if self.does_not_exist() { Self::DoesNotExist } else { Self::Unknown }
    }
}

/// The strongest reason why a resource is wanted.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::client) enum WantedBy {
    Nothing,
    /// Only by unbound aliases: the removal of the resource waits for its verdict, or was rejected.
    UnboundAlias,
    Alias,
    /// By its name, a collection or the wildcard.
    Name,
}

/// The result of unsubscribing from a name.
pub(in crate::client) struct Unsubscribed {
    pub(in crate::client) name: ResourceName,
    /// The resource that the name stood for as an alias.
    pub(in crate::client) stood_for: Option<ResourceName>,
    /// The resources that no subscribed name covers any more, as far as they are known, held or not.
    pub(in crate::client) gone: Vec<ResourceName>,
}

/// The accepted part of an update.
pub(in crate::client) struct Taken<'a> {
    pub(in crate::client) out: &'a Out,
    pub(in crate::client) rejected: &'a BTreeSet<&'a ResourceName>,
    /// Whether accepted resources have the version of the response.
    pub(in crate::client) implied: bool,
    /// Whether resources have aliases.
    pub(in crate::client) aliases: bool,
}

impl Holdings {
    // Subscribed names.

    /// Adds names that were not subscribed to before.
    pub(in crate::client) fn want(&mut self, names: Vec<ResourceName>) {
        names.iter().for_each(|name| _ = self.globs.insert(name));
        let names = names.into_iter().map(|name| (name, SubscribedName::default()));
        if self.subscribed.is_empty() {
            self.subscribed = names.collect(); // building the tree at once is faster, and its nodes are fuller
        } else {
            self.subscribed.extend(names);
        }
    }

    /// Removes a subscribed name, and drops the resources that only this name covered. `coming`: the resources of the
    /// pending update that carry the name as an alias, which is bound to them with the verdict.
    pub(in crate::client) fn unsubscribe(&mut self, name: &str, coming: &[ResourceName]) -> Option<Unsubscribed> {
        let (name, _) = self.subscribed.remove_entry(name)?;
        let glob = self.globs.remove(name.as_str());
        self.not_found.remove(&name);
        let stood_for = self.bindings.remove(name.as_str());
        self.losses += 1;
        let is_wanted = |name: &ResourceName| self.wanted_by(name.as_str()) >= WantedBy::Alias;
        let gone: Vec<ResourceName> = if name.is_wildcard() {
            self.held.keys().filter(|name| !is_wanted(name)).cloned().collect()
        } else if glob {
            self.members(&name).filter(|name| !is_wanted(name)).cloned().collect()
        } else {
            let stood_for = stood_for.iter().filter(|name| !coming.contains(name));
            [&name].into_iter().chain(stood_for).chain(coming).filter(|name| !is_wanted(name)).cloned().collect()
        };
        gone.iter().for_each(|name| self.drop_held(name));
        Some(Unsubscribed { name, stood_for, gone })
    }

    #[inline]
    pub(in crate::client) fn wants(&self, name: &str) -> bool {
        self.subscribed.contains_key(name)
    }

    pub(in crate::client) fn names(&self) -> impl ExactSizeIterator<Item = &ResourceName> {
        self.subscribed.keys()
    }

    pub(in crate::client) fn find_name(&self, name: &str) -> Option<&ResourceName> {
        self.subscribed.get_key_value(name).map(|(name, _)| name)
    }

    pub(in crate::client) fn globs(&self) -> &Globs {
        &self.globs
    }

    /// Returns why a resource of this name is wanted.
    pub(in crate::client) fn wanted_by(&self, name: &str) -> WantedBy {
        if self.wants(name) || self.wants(WILDCARD) || self.globs.cover(name) {
            return WantedBy::Name;
        }
        if self.bindings.is_empty() || !self.bindings.has_aliases(name) {
            return WantedBy::Nothing;
        }
        let stands = self.bindings.aliases(name).any(|alias| !self.bindings.is_unbound(alias));
        if stands { WantedBy::Alias } else { WantedBy::UnboundAlias }
    }

    /// Returns whether a resource of this name is wanted, if only by an unbound alias.
    pub(in crate::client) fn covers(&self, name: &str) -> bool {
        self.wanted_by(name) > WantedBy::Nothing
    }

    /// Returns whether a received resource is wanted by its name, by a bound alias, or by an alias that it carries.
    pub(in crate::client) fn wants_resource(&self, resource: Resource<'_>, aliases: bool) -> bool {
        let by_alias = || resource.aliases().iter().any(|alias| self.wants(alias.as_str()));
        self.wanted_by(resource.name().as_str()) >= WantedBy::Alias || (aliases && by_alias())
    }

    // Existence.

    pub(in crate::client) fn does_not_exist(&self, name: &str) -> bool {
        self.subscribed.get(name).is_some_and(|entry| entry.existence.does_not_exist())
    }

    /// Returns whether anything is known of a subscribed name: it is held, stands for a held resource, does not exist,
    /// or was rejected.
    pub(in crate::client) fn knows(&self, name: &ResourceName) -> bool {
        self.subscribed.get(name).is_some_and(|entry| entry.existence != Existence::Unknown)
            || self.held.contains_key(name)
            || self.bindings.target(name.as_str()).is_some()
            || self.has_member(name)
    }

    /// Returns whether no content of a subscribed name was received: it is neither held nor rejected, and did not
    /// expire. An expired resource counts as received, because an expiry causes no request (C-TTL-08).
    pub(in crate::client) fn lacks(&self, name: &ResourceName) -> bool {
        let rejected = |entry: &SubscribedName| matches!(entry.existence, Existence::Rejected { .. });
        let entry = self.subscribed.get(name);
        entry.is_some_and(|entry| !rejected(entry)) && !self.has(name.as_str()) && !self.lapsed.contains(name)
    }

    pub(in crate::client) fn is_answered(&self, name: &str) -> bool {
        self.subscribed.get(name).is_some_and(|entry| entry.answered)
    }

    /// Notes that the wildcard was answered.
    pub(in crate::client) fn note_all_answered(&mut self) {
        self.change(WILDCARD, |entry| entry.answered = true);
    }

    /// Marks a name as nonexistent unless it is held. `absence`: the server's report; `None` if there is none, or if a
    /// failure records it. Returns whether this is news to the application.
    pub(in crate::client) fn set_does_not_exist(&mut self, name: &ResourceName, absence: Option<Absence>) -> bool {
        let may_be = !name.is_wildcard() && !self.held.contains_key(name);
        let Some(entry) = self.subscribed.get_mut(name).filter(|_| may_be) else { return false };
        let news = !core::mem::replace(&mut entry.existence, Existence::DoesNotExist).does_not_exist();
        self.bindings.unbind(name);
        match absence {
            Some(absence) => _ = self.not_found.insert(name.clone(), absence),
            None => _ = self.not_found.remove(name),
        }
        news
    }

    /// Returns the server's report that a name does not exist.
    pub(in crate::client) fn absence(&self, name: &str) -> Option<&Absence> {
        self.not_found.get(name)
    }

    /// Unmarks a nonexistent name, which is requested again.
    pub(in crate::client) fn unset_does_not_exist(&mut self, name: &str) {
        if self.does_not_exist(name) {
            self.not_found.remove(name);
            self.change(name, |entry| {
                let rejected = entry.existence != Existence::DoesNotExist; // the rejection is still known
                entry.existence = if rejected { Existence::Rejected { missing: false } } else { Existence::Unknown };
                entry.complete = false;
            });
        }
    }

    pub(in crate::client) fn note_rejected(&mut self, name: &ResourceName) {
        self.not_found.remove(name);
        self.change(name.as_str(), |entry| entry.existence = entry.existence.rejected());
    }

    // Held resources.

    pub(in crate::client) fn held(&self) -> &BTreeMap<ResourceName, Held> {
        &self.held
    }

    #[inline]
    pub(in crate::client) fn has(&self, name: &str) -> bool {
        self.held.contains_key(name)
    }

    pub(in crate::client) fn expiry(&self, name: &ResourceName) -> Option<Instant> {
        self.expiry.get(name)
    }

    pub(in crate::client) fn next_expiry(&self) -> Option<Instant> {
        self.expiry.next()
    }

    pub(in crate::client) fn bindings(&self) -> &AliasBindings {
        &self.bindings
    }

    pub(in crate::client) fn losses(&self) -> u64 {
        self.losses
    }

    /// Returns walks along the held resources and the subscribed names.
    pub(in crate::client) fn walks(&self) -> (Walk<'_, Held>, Walk<'_, SubscribedName>) {
        (Walk::new(&self.held), Walk::new(&self.subscribed))
    }

    /// Returns the held resources of a collection.
    pub(in crate::client) fn members(&self, glob: &ResourceName) -> impl Iterator<Item = &ResourceName> {
        let parts = Parts::of(glob.as_str());
        parts.into_iter().flat_map(|parts| {
            let first = (Bound::Included(parts.directory), Bound::Unbounded);
            let from = self.held.range::<str, _>(first).map(|(name, _)| name);
            from.take_while(move |name| name.as_str().starts_with(parts.directory))
                .filter(move |name| parts.has(name.as_str()))
        })
    }

    /// Returns whether the name is that of a collection with held resources.
    pub(in crate::client) fn has_member(&self, name: &ResourceName) -> bool {
        name.is_glob() && self.members(name).next().is_some()
    }

    /// Marks a held resource as unclaimed, because the server's state of it differs: a claim would keep the server from
    /// reporting the end of the difference.
    pub(in crate::client) fn unclaim(&mut self, name: &ResourceName) {
        if let Some(held) = self.held.get_mut(name) {
            self.mixed = true;
            if core::mem::take(&mut held.claimed) {
                held.accepted_at = held.accepted_at.or(self.version_at);
            }
            if held.version.is_empty() {
                held.version = self.version.clone(); // the version was implied
            }
        }
    }

    /// Removes aliases that stand for nothing any more, of resources that other names still cover.
    pub(in crate::client) fn unbind(&mut self, aliases: &[ResourceName]) {
        aliases.iter().for_each(|alias| _ = self.bindings.remove(alias.as_str()));
    }

    // Removal.

    /// Removes a resource whose removal the application accepted. `anew`: the name was subscribed to again since, and
    /// its answer is pending.
    pub(in crate::client) fn remove(&mut self, name: &ResourceName, anew: bool) {
        self.drop_held(name);
        if !anew {
            // The rejected content is dropped as well.
            self.change(name.as_str(), |entry| entry.existence = Existence::Unknown);
        }
    }

    /// Drops a resource that the application lost, so that it is requested again. Returns whether the resource was
    /// held.
    pub(in crate::client) fn lose(&mut self, name: &ResourceName) -> bool {
        let was = self.has(name.as_str());
        if was {
            self.drop_held(name);
            self.note_lost(name);
        }
        was
    }

    /// Drops the held content of a name whose new content was rejected. Returns whether there was held content.
    pub(in crate::client) fn drop_rejected(&mut self, name: &ResourceName) -> bool {
        let was = self.has(name.as_str());
        if was {
            self.drop_held(name);
            self.losses += 1;
            // No version may be claimed that makes the server leave this resource out.
            self.change(name.as_str(), |entry| entry.existence = Existence::Unknown);
            self.note_incomplete(name);
        }
        was
    }

    /// Drops and returns expired resources. Remembers at most `limit` that the server may believe to be alive.
    pub(in crate::client) fn expire(&mut self, now: Instant, limit: usize) -> Vec<ResourceName> {
        let mut expired = Vec::new();
        while let Some(name) = self.expiry.take(now) {
            self.losses += 1;
            self.drop_held(&name);
            // No version of the expired resource may be claimed any more.
            self.change(name.as_str(), |entry| entry.existence = Existence::Unknown);
            self.note_incomplete(&name);
            if self.lapsed.len() < limit {
                self.lapsed.insert(name.clone());
            }
            expired.push(name);
        }
        if !expired.is_empty() {
            self.change(WILDCARD, |entry| entry.answered = false);
        }
        expired.sort();
        expired
    }

    /// Notes that the application lacks the resource of this name as the server sent it, so that no version claims it.
    fn note_lost(&mut self, name: &ResourceName) {
        self.losses += 1;
        self.note_incomplete(name);
        let by = if self.wants(name.as_str()) { name.as_str() } else { WILDCARD };
        self.change(by, |entry| *entry = SubscribedName::default());
    }

    /// Marks all names that cover this missing resource as incomplete.
    fn note_incomplete(&mut self, name: &ResourceName) {
        let glob = self.globs.of(name.as_str()).cloned();
        for name in [name.as_str(), WILDCARD].into_iter().chain(glob.as_ref().map(ResourceName::as_str)) {
            self.change(name, |entry| entry.complete = false);
        }
    }

    /// Removes a held resource. No other function does so.
    fn drop_held(&mut self, name: &ResourceName) {
        self.held.remove(name);
        self.expiry.set(name, None);
        self.extended.remove(name);
        for alias in self.bindings.remove_all(name.as_str()) {
            self.change(alias.as_str(), |entry| entry.existence = entry.existence.without_rejected());
        }
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut SubscribedName)) {
        if let Some(entry) = self.subscribed.get_mut(name) {
            change(entry);
        }
    }

    pub(in crate::client) fn leave_stream(&mut self) {
        self.lapsed.clear();
    }

    /// Checks the invariants.
    pub(in crate::client) fn check(&self) -> Result<(), String> {
        let globs = self.subscribed.keys().filter(|name| name.is_glob());
        ensure!(globs.eq(self.globs.iter().collect::<BTreeSet<_>>()), "the collections are not those that are wanted");
        for (name, held) in &self.held {
            ensure!(!name.is_wildcard() && self.covers(name.as_str()), "{name} is held and not wanted");
            ensure!(!self.does_not_exist(name.as_str()), "{name} is missing and held");
            let plain = held.claimed && held.version.is_empty() && held.accepted_at.is_none();
            ensure!(self.mixed || plain, "{name} is held, and not as the last update leaves it");
        }
        self.bindings.check(|alias| self.wants(alias.as_str()), |name| self.has(name.as_str()))?;
        let astray = self.not_found.keys().find(|name| !self.does_not_exist(name.as_str()));
        ensure!(astray.is_none(), "{astray:?} is nowhere, and not missing");
        self.expiry.check()?;
        let astray = self.expiry.names().find(|name| !self.has(name.as_str()));
        ensure!(astray.is_none(), "{astray:?} is to expire and is not held");
        let astray = self.extended.keys().find(|name| !self.has(name.as_str()));
        ensure!(astray.is_none(), "{astray:?} is kept alive and is not held");
        Ok(())
    }

    pub(in crate::client) fn relabel(&mut self, type_url: &TypeUrl, by: &mut dyn FnMut(Label<'_>)) {
        by(Label::Loss(type_url, &mut self.losses));
        self.expiry.relabel(by);
        self.extended.values_mut().for_each(|own| own.relabel(by));
        self.held.values_mut().for_each(|held| held.accepted_at.relabel(by));
        self.not_found.values_mut().for_each(|absence| absence.at.relabel(by));
        self.version_at.relabel(by);
    }
}
