//! The subscribed names of one type, and how they apply to the source.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::of_type::OfType;
use super::resource::Resource;
use super::size::Size;
use super::source::{Entry, Source, State};
use crate::ensure::ensure;
use crate::globs::{self, Globs};
use crate::interest::Interest;
use crate::name::ResourceName;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Wanted {
    interest: Interest,
    /// Total bytes of the names.
    bytes: usize,
    /// Whether names may be aliases (delta).
    aliases: bool,
    /// Whether the client has sent a name: an empty list no longer means the wildcard (SotW).
    named: bool,
}

impl Wanted {
    pub(super) fn new(aliases: bool) -> Self {
        Self { interest: Interest::default(), bytes: 0, aliases, named: false }
    }

    pub(super) fn interest(&self) -> &Interest {
        &self.interest
    }

    pub(super) fn names(&self) -> &BTreeSet<ResourceName> {
        &self.interest.names
    }

    pub(super) fn globs(&self) -> &Globs {
        &self.interest.globs
    }

    #[inline]
    pub(super) fn wildcard(&self) -> bool {
        self.interest.wildcard
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.interest.is_empty()
    }

    /// Returns whether the wildcard or a collection is subscribed.
    pub(super) fn stands_for_many(&self) -> bool {
        self.interest.stands_for_many()
    }

    /// Returns whether names may be aliases.
    pub(super) fn aliases(&self) -> bool {
        self.aliases
    }

    /// Returns the subscribed names that may be aliases, and whose resource is not known.
    pub(super) fn unknown<S: Source>(&self, of: OfType<'_, S>) -> Vec<&ResourceName> {
        let names = self.interest.names.iter().filter(|_| self.aliases);
        names.filter(|name| of.get(name).state == State::Unknown).collect()
    }

    pub(super) fn size(&self) -> Size {
        Size { names: self.interest.names.len(), bytes: self.bytes }
    }

    // Changes.

    /// Adds a name. Returns whether the name is new.
    pub(super) fn add(&mut self, name: ResourceName) -> bool {
        let len = name.as_str().len();
        let new = self.interest.insert(name);
        self.bytes += if new { len } else { 0 };
        new
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<ResourceName> {
        let name = self.interest.take(name)?;
        self.bytes -= name.as_str().len();
        Some(name)
    }

    pub(super) fn set_wildcard(&mut self, wildcard: bool) {
        self.interest.wildcard = wildcard;
    }

    /// Notes whether a list has names. Returns whether any list so far had one.
    pub(super) fn note_named(&mut self, named: bool) -> bool {
        self.named |= named;
        self.named
    }

    /// Replaces a name by the store's own string, so that the text is kept once.
    pub(super) fn share_name(&mut self, name: &ResourceName) {
        if self.interest.names.get(name).is_some_and(|own| !own.shares_with(name)) {
            self.interest.names.replace(name.clone());
        }
    }

    /// Rebuilds the set of names after many insertions: a tree that grew one by one is half empty.
    pub(super) fn pack_names(&mut self) {
        self.interest.names = core::mem::take(&mut self.interest.names).into_iter().collect();
    }

    // Queries.

    /// Returns whether a name is subscribed: by itself, by a collection or by the wildcard.
    pub(super) fn covers(&self, name: &str) -> bool {
        self.interest.covers_normal(name)
    }

    /// Returns the entry of a subscribed name.
    pub(super) fn get<'s, S: Source>(&self, of: OfType<'s, S>, name: &ResourceName) -> Entry<'s> {
        let entry = of.get(name);
        if self.aliases { entry } else { entry.named(name.as_str()) }
    }

    /// Returns whether a resource is subscribed, by whatever name.
    #[inline]
    pub(super) fn wants<S: Source>(&self, of: OfType<'_, S>, resource: &Resource) -> bool {
        self.covers(resource.name().as_str()) || self.alias_of(of, resource).is_some()
    }

    /// Returns the aliases by which a resource is subscribed.
    pub(super) fn aliases_of<'a, S: Source>(
        &self,
        of: OfType<'_, S>,
        resource: &'a Resource,
    ) -> impl Iterator<Item = &'a ResourceName> {
        let aliases = resource.aliases().iter().filter(|_| self.aliases);
        let wanted = aliases.filter(|alias| self.interest.names.contains(*alias));
        wanted.filter(move |alias| of.stands_for(alias, resource.name()))
    }

    /// Returns the first of these aliases.
    fn alias_of<'a, S: Source>(&self, of: OfType<'_, S>, resource: &'a Resource) -> Option<&'a ResourceName> {
        self.aliases_of(of, resource).min()
    }

    /// Returns whether a resource is subscribed by several names of which this is not the first: it is sent by the
    /// first.
    pub(super) fn comes_by_another<S: Source>(
        &self,
        of: OfType<'_, S>,
        resource: &Resource,
        name: &ResourceName,
    ) -> bool {
        let own = || self.interest.names.contains(resource.name());
        resource.name() != name && (own() || self.alias_of(of, resource) != Some(name))
    }

    /// Returns whether one of these names asks for a resource: its own name, an alias, or its collection.
    pub(super) fn is_among(&self, names: &BTreeSet<ResourceName>, resource: &Resource) -> bool {
        !names.is_empty() && (is_named_by(names, resource) || self.is_member_by(names, resource))
    }

    /// Returns whether one of these names is the collection of a resource.
    fn is_member_by(&self, names: &BTreeSet<ResourceName>, resource: &Resource) -> bool {
        self.globs().of(resource.name().as_str()).is_some_and(|glob| names.contains(glob))
    }

    /// Returns whether there are no more changes than subscribed names; a collection counts as any number of names.
    pub(super) fn is_few<T>(&self, changes: impl Iterator<Item = T>) -> bool {
        if !self.interest.globs.is_empty() {
            return true;
        }
        let names = self.interest.names.len();
        changes.take(names + 1).count() <= names
    }

    /// Checks the invariants.
    pub(super) fn check(&self) -> Result<(), String> {
        let names = &self.interest.names;
        let bytes: usize = names.iter().map(|name| name.as_str().len()).sum();
        ensure!(bytes == self.bytes, "{bytes} bytes of names, counted as {}", self.bytes);
        ensure!(names.iter().all(|name| !name.is_wildcard() && !name.as_str().is_empty()), "a name that is none");
        Ok(())
    }
}

/// Returns whether one of these names asked for the current state of a name, even if it is unsubscribed since.
pub(super) fn was_asked(names: &BTreeSet<ResourceName>, name: &ResourceName, entry: &Entry<'_>) -> bool {
    let of_collection = || names.iter().any(|glob| glob.is_glob() && globs::is_member(glob.as_str(), name.as_str()));
    was_named(names, name, entry) || (entry.resource().is_some() && of_collection())
}

/// Returns whether one of these names is that of an entry, its resource's own, or an alias of the resource.
pub(super) fn was_named(names: &BTreeSet<ResourceName>, name: &ResourceName, entry: &Entry<'_>) -> bool {
    entry.resource().map_or_else(|| names.contains(name), |resource| is_named_by(names, resource))
}

/// Returns whether one of these names is a resource's own, or an alias of it.
pub(super) fn is_named_by(names: &BTreeSet<ResourceName>, resource: &Resource) -> bool {
    names.contains(resource.name()) || resource.aliases().iter().any(|alias| names.contains(alias))
}
