//! What the application has of one type, and wants: the names, the resources that are held, the aliases among them, what is
//! known not to exist, and what of all that may be claimed.
//!
//! One question and one answer: [`wanted_by`](Holdings::wanted_by) says whether a resource is still wanted. One place lets
//! go of a resource: `drop_held`, and with it of all that stands on it (its TTL, its aliases). So nothing is held that is not
//! wanted, no alias stands for what is not held, and what is held is not missing.

mod claims;
mod take;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound;

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
    /// What the application wants; the wildcard is a name among the others.
    subscribed: BTreeMap<ResourceName, SubscribedName>,
    /// Those of the names that stand for collections.
    globs: Globs,
    /// What the application was given and accepted, and still wants.
    held: BTreeMap<ResourceName, Held>,
    /// When what has a TTL is over.
    expiry: Deadlines,
    bindings: AliasBindings,
    /// Of what is missing: the version that the server gave to that (C-NAME-10). It is claimed on a new stream.
    not_found: BTreeMap<ResourceName, Version>,
    /// How often something left `held` but by an update: what a response was compared with may be gone.
    losses: u64,
    /// The version of the last response that was accepted whole.
    version: Version,
    /// Of a response after that a part was accepted: what is held may be newer.
    partly_newer: bool,
    /// Something held is not as an update that is accepted whole leaves it: has a version of its own, though that is
    /// implied, or is not claimed.
    mixed: bool,
    /// What expired, though the server may believe that it lives on: a heartbeat was late. As many as may be held.
    lapsed: BTreeSet<ResourceName>,
}

/// A name that is wanted.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(in crate::client) struct SubscribedName {
    existence: Existence,
    /// The version of the last response that was accepted whole says all of this name, though it is not held: of the
    /// wildcard, all was delivered; of a name, it is not there.
    complete: bool,
    /// Of a collection: something came of it. Of the wildcard: a response answered it, and nothing that came was lost since.
    answered: bool,
}

/// What is known of a name that is wanted, besides whether it is held.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
enum Existence {
    #[default]
    Unknown,
    /// It is known, or taken, not to exist, and the application knows.
    DoesNotExist,
    /// The last content of this name was rejected. `missing`: as far as the application knows, it did not exist before.
    Rejected { missing: bool },
}

impl Existence {
    /// The application knows that it does not exist.
    fn does_not_exist(self) -> bool {
        matches!(self, Self::DoesNotExist | Self::Rejected { missing: true })
    }

    /// The content that came is rejected.
    fn rejected(self) -> Self {
        Self::Rejected { missing: self.does_not_exist() }
    }

    /// There is nothing left that was rejected.
    fn without_rejected(self) -> Self {
        if self.does_not_exist() { Self::DoesNotExist } else { Self::Unknown }
    }
}

/// A resource that the application has.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Held {
    /// Empty where it is implied: of a full-state type in SotW what is claimed has that of the last response that was
    /// accepted whole.
    version: Version,
    /// Whether the server may be told so. It may not for what was unwanted for a while when its update was accepted:
    /// the application has it, so its removal counts, but it must be asked for
    /// ([design rule 14](crate::manual::rules#rule-14)).
    claimed: bool,
}

/// By what a resource is wanted, the best of it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::client) enum WantedBy {
    Nothing,
    /// Only by aliases that are known to stand for nothing: the removal of what they stood for is out, or was rejected.
    UnboundAlias,
    Alias,
    /// By its name, or with others.
    Name,
}

/// What became of a name that is wanted no longer.
pub(in crate::client) struct Unsubscribed {
    pub(in crate::client) name: ResourceName,
    /// What it stood for, as an alias.
    pub(in crate::client) stood_for: Option<ResourceName>,
    /// It and what only it stood for, as far as that is known: held or not.
    pub(in crate::client) gone: Vec<ResourceName>,
}

/// What is accepted, and how.
pub(in crate::client) struct Taken<'a> {
    pub(in crate::client) out: &'a Out,
    pub(in crate::client) rejected: &'a BTreeSet<&'a ResourceName>,
    /// What is accepted has the version of the response.
    pub(in crate::client) implied: bool,
    /// Resources have aliases.
    pub(in crate::client) aliases: bool,
}

impl Held {
    pub(in crate::client) fn version(&self) -> &Version {
        &self.version
    }

    pub(in crate::client) fn is_claimed(&self) -> bool {
        self.claimed
    }

    /// The version to claim: empty if it is not to be.
    pub(in crate::client) fn claim(&self) -> Version {
        if self.claimed { self.version.clone() } else { Version::default() }
    }
}

impl Holdings {
    // What is wanted.

    /// Names that were not wanted before.
    pub(in crate::client) fn want(&mut self, names: Vec<ResourceName>) {
        names.iter().for_each(|name| _ = self.globs.insert(name));
        let names = names.into_iter().map(|name| (name, SubscribedName::default()));
        if self.subscribed.is_empty() {
            self.subscribed = names.collect(); // a tree that is made at once is made faster, and of fuller nodes
        } else {
            self.subscribed.extend(names);
        }
    }

    /// A name is wanted no longer: so is what only it stood for.
    pub(in crate::client) fn unsubscribe(&mut self, name: &str) -> Option<Unsubscribed> {
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
            [Some(&name), stood_for.as_ref()].into_iter().flatten().filter(|name| !is_wanted(name)).cloned().collect()
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

    /// By what a resource of this name is wanted.
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

    /// Whether a resource of this name is wanted, be it by what stands for nothing any more.
    pub(in crate::client) fn covers(&self, name: &str) -> bool {
        self.wanted_by(name) > WantedBy::Nothing
    }

    /// The same of a resource that comes, by the aliases that it comes with.
    pub(in crate::client) fn wants_resource(&self, resource: Resource<'_>, aliases: bool) -> bool {
        let by_alias = || resource.aliases().iter().any(|alias| self.wants(alias.as_str()));
        self.wanted_by(resource.name().as_str()) >= WantedBy::Alias || (aliases && by_alias())
    }

    // What is known of it.

    pub(in crate::client) fn does_not_exist(&self, name: &str) -> bool {
        self.subscribed.get(name).is_some_and(|entry| entry.existence.does_not_exist())
    }

    /// Whether something is known of a name that is wanted: it is held, or stands for what is; or it is missing, or rejected.
    pub(in crate::client) fn knows(&self, name: &ResourceName) -> bool {
        self.subscribed.get(name).is_some_and(|entry| entry.existence != Existence::Unknown)
            || self.held.contains_key(name)
            || self.bindings.target(name.as_str()).is_some()
            || self.has_member(name)
    }

    pub(in crate::client) fn is_answered(&self, name: &str) -> bool {
        self.subscribed.get(name).is_some_and(|entry| entry.answered)
    }

    /// All that the wildcard stands for was told.
    pub(in crate::client) fn note_all_answered(&mut self) {
        self.change(WILDCARD, |entry| entry.answered = true);
    }

    /// What is held does not miss. `version`: that of the absence, if the server gave one. Whether that is news.
    pub(in crate::client) fn set_does_not_exist(&mut self, name: &ResourceName, version: Option<Version>) -> bool {
        let may_be = !name.is_wildcard() && !self.held.contains_key(name);
        let Some(entry) = self.subscribed.get_mut(name).filter(|_| may_be) else { return false };
        let news = !core::mem::replace(&mut entry.existence, Existence::DoesNotExist).does_not_exist();
        self.bindings.unbind(name);
        match version {
            Some(version) => _ = self.not_found.insert(name.clone(), version),
            None => _ = self.not_found.remove(name),
        }
        news
    }

    /// A name that is missing is asked for again.
    pub(in crate::client) fn unset_does_not_exist(&mut self, name: &str) {
        if self.does_not_exist(name) {
            self.change(name, |entry| {
                let rejected = entry.existence != Existence::DoesNotExist; // that it was is known still
                entry.existence = if rejected { Existence::Rejected { missing: false } } else { Existence::Unknown };
                entry.complete = false;
            });
        }
    }

    pub(in crate::client) fn note_rejected(&mut self, name: &ResourceName) {
        self.not_found.remove(name);
        self.change(name.as_str(), |entry| entry.existence = entry.existence.rejected());
    }

    // What is held.

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

    /// To look up what is held, and what is wanted.
    pub(in crate::client) fn walks(&self) -> (Walk<'_, Held>, Walk<'_, SubscribedName>) {
        (Walk::new(&self.held), Walk::new(&self.subscribed))
    }

    /// What is held of a collection.
    pub(in crate::client) fn members(&self, glob: &ResourceName) -> impl Iterator<Item = &ResourceName> {
        let parts = Parts::of(glob.as_str());
        parts.into_iter().flat_map(|parts| {
            let first = (Bound::Included(parts.directory), Bound::Unbounded);
            let from = self.held.range::<str, _>(first).map(|(name, _)| name);
            from.take_while(move |name| name.as_str().starts_with(parts.directory))
                .filter(move |name| parts.has(name.as_str()))
        })
    }

    /// Whether the name is that of a collection of which something is held.
    pub(in crate::client) fn has_member(&self, name: &ResourceName) -> bool {
        name.is_glob() && self.members(name).next().is_some()
    }

    /// A heartbeat came: the TTL starts anew.
    pub(in crate::client) fn renew(&mut self, name: &ResourceName, until: Option<Instant>) {
        self.expiry.set(name, until);
    }

    /// What is held is not as the server has it: it may not be told so, or it would not say when that ends.
    pub(in crate::client) fn unclaim(&mut self, name: &ResourceName) {
        if let Some(held) = self.held.get_mut(name) {
            self.mixed = true;
            held.claimed = false;
            if held.version.is_empty() {
                held.version = self.version.clone(); // it was implied
            }
        }
    }

    /// Aliases that stand for nothing now, of what stays by other names.
    pub(in crate::client) fn unbind(&mut self, aliases: &[ResourceName]) {
        aliases.iter().for_each(|alias| _ = self.bindings.remove(alias.as_str()));
    }

    // What goes.

    /// The application accepted that a resource is gone. `anew`: it was asked for again since, and has its own answer to come.
    pub(in crate::client) fn remove(&mut self, name: &ResourceName, anew: bool) {
        self.drop_held(name);
        if !anew {
            // There is nothing left that was rejected.
            self.change(name.as_str(), |entry| entry.existence = Existence::Unknown);
        }
    }

    /// The application lost it: it is asked for again. Whether it was held.
    pub(in crate::client) fn lose(&mut self, name: &ResourceName) -> bool {
        let was = self.has(name.as_str());
        if was {
            self.drop_held(name);
            self.note_lost(name);
        }
        was
    }

    /// What is held of this name goes with its new content, which was rejected. Whether something was held.
    pub(in crate::client) fn drop_rejected(&mut self, name: &ResourceName) -> bool {
        let was = self.has(name.as_str());
        if was {
            self.drop_held(name);
            self.losses += 1;
            // No version may be claimed that would have it left out.
            self.change(name.as_str(), |entry| entry.existence = Existence::Unknown);
            self.note_incomplete(name);
        }
        was
    }

    /// Of what has a TTL, what is over. `limit`: how many are remembered that the server may believe to live on.
    pub(in crate::client) fn expire(&mut self, now: Instant, limit: usize) -> Vec<ResourceName> {
        let mut expired = Vec::new();
        while let Some(name) = self.expiry.take(now) {
            self.losses += 1;
            self.drop_held(&name);
            // No version of it may be claimed any more.
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

    /// What the application has of this name is not what the server sent: no version may be claimed that says so.
    fn note_lost(&mut self, name: &ResourceName) {
        self.losses += 1;
        self.note_incomplete(name);
        let by = if self.wants(name.as_str()) { name.as_str() } else { WILDCARD };
        self.change(by, |entry| *entry = SubscribedName::default());
    }

    /// No version has all of what stands for this name, which is lacking.
    fn note_incomplete(&mut self, name: &ResourceName) {
        let glob = self.globs.of(name.as_str()).cloned();
        for name in [name.as_str(), WILDCARD].into_iter().chain(glob.as_ref().map(ResourceName::as_str)) {
            self.change(name, |entry| entry.complete = false);
        }
    }

    /// The one place where something stops being held.
    fn drop_held(&mut self, name: &ResourceName) {
        self.held.remove(name);
        self.expiry.set(name, None);
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

    /// What must hold.
    pub(in crate::client) fn check(&self) -> Result<(), String> {
        let globs = self.subscribed.keys().filter(|name| name.is_glob());
        ensure!(globs.eq(self.globs.iter().collect::<BTreeSet<_>>()), "the collections are not those that are wanted");
        for (name, held) in &self.held {
            ensure!(!name.is_wildcard() && self.covers(name.as_str()), "{name} is held and not wanted");
            ensure!(!self.does_not_exist(name.as_str()), "{name} is missing and held");
            let plain = held.claimed && held.version.is_empty();
            ensure!(self.mixed || plain, "{name} is held, and not as the last update leaves it");
        }
        self.bindings.check(|alias| self.wants(alias.as_str()), |name| self.has(name.as_str()))?;
        let astray = self.not_found.keys().find(|name| !self.does_not_exist(name.as_str()));
        ensure!(astray.is_none(), "{astray:?} is nowhere, and not missing");
        self.expiry.check()?;
        let astray = self.expiry.names().find(|name| !self.has(name.as_str()));
        ensure!(astray.is_none(), "{astray:?} is to expire and is not held");
        Ok(())
    }

    pub(in crate::client) fn relabel(&mut self, type_url: &TypeUrl, by: &mut dyn FnMut(Label<'_>)) {
        by(Label::Loss(type_url, &mut self.losses));
        self.expiry.relabel(by);
    }
}
