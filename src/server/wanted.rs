//! What a client wants of one type, and what that makes of the store.

use alloc::collections::BTreeSet;
use alloc::string::String;

use super::of_type::OfType;
use super::resource::Resource;
use super::size::Size;
use super::source::{Entry, Source};
use crate::ensure::ensure;
use crate::globs::Globs;
use crate::interest::Interest;
use crate::name::ResourceName;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Wanted {
    interest: Interest,
    /// The bytes of the names.
    bytes: usize,
    /// Names may be aliases (delta).
    aliases: bool,
    /// The client has named something: an empty list no longer means everything (SotW).
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

    /// Whether there is the wildcard or a collection.
    pub(super) fn stands_for_many(&self) -> bool {
        self.interest.stands_for_many()
    }

    /// Whether names may be aliases.
    pub(super) fn aliases(&self) -> bool {
        self.aliases
    }

    pub(super) fn size(&self) -> Size {
        Size { names: self.interest.names.len(), bytes: self.bytes }
    }

    // Changes.

    /// `true` if the name was not wanted before.
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

    /// Notes whether a list names something. Whether one did, by now.
    pub(super) fn note_named(&mut self, named: bool) -> bool {
        self.named |= named;
        self.named
    }

    /// Takes the store's own string for a name, so that it is kept once.
    pub(super) fn share_name(&mut self, name: &ResourceName) {
        if self.interest.names.get(name).is_some_and(|own| !own.shares_with(name)) {
            self.interest.names.replace(name.clone());
        }
    }

    /// Packs the names after many came: a tree that grew one by one is half empty.
    pub(super) fn pack_names(&mut self) {
        self.interest.names = core::mem::take(&mut self.interest.names).into_iter().collect();
    }

    // Questions.

    /// Whether a name is wanted, by itself or as one of many.
    pub(super) fn covers(&self, name: &str) -> bool {
        self.interest.covers_normal(name)
    }

    /// What is to be said of a name that is wanted.
    pub(super) fn get<'s, S: Source>(&self, of: OfType<'s, S>, name: &ResourceName) -> Entry<'s> {
        let entry = of.get(name);
        if self.aliases { entry } else { entry.named(name.as_str()) }
    }

    /// Whether a resource is wanted, by whatever name.
    #[inline]
    pub(super) fn wants<S: Source>(&self, of: OfType<'_, S>, resource: &Resource) -> bool {
        self.covers(resource.name().as_str()) || self.alias_of(of, resource).is_some()
    }

    /// The aliases by which a resource is wanted.
    pub(super) fn aliases_of<'a, S: Source>(
        &self,
        of: OfType<'_, S>,
        resource: &'a Resource,
    ) -> impl Iterator<Item = &'a ResourceName> {
        let aliases = resource.aliases().iter().filter(|_| self.aliases);
        let wanted = aliases.filter(|alias| self.interest.names.contains(*alias));
        wanted.filter(move |alias| of.stands_for(alias, resource.name()))
    }

    /// The first of them.
    fn alias_of<'a, S: Source>(&self, of: OfType<'_, S>, resource: &'a Resource) -> Option<&'a ResourceName> {
        self.aliases_of(of, resource).min()
    }

    /// Whether a resource is wanted by more than one name, and this is not the first of them: it comes by the first.
    pub(super) fn comes_by_another<S: Source>(
        &self,
        of: OfType<'_, S>,
        resource: &Resource,
        name: &ResourceName,
    ) -> bool {
        let own = || self.interest.names.contains(resource.name());
        resource.name() != name && (own() || self.alias_of(of, resource) != Some(name))
    }

    /// Whether one of these names asks for a resource: its own, an alias, or that of its collection.
    pub(super) fn is_among(&self, names: &BTreeSet<ResourceName>, resource: &Resource) -> bool {
        !names.is_empty() && (is_named_by(names, resource) || self.is_member_by(names, resource))
    }

    /// Whether one of these names asks for what there is of a name.
    pub(super) fn is_asked(&self, names: &BTreeSet<ResourceName>, name: &ResourceName, entry: &Entry<'_>) -> bool {
        match entry.resource() {
            Some(resource) => self.is_among(names, resource),
            None => names.contains(name),
        }
    }

    /// Whether one of these names is that of the collection of a resource.
    fn is_member_by(&self, names: &BTreeSet<ResourceName>, resource: &Resource) -> bool {
        self.globs().of(resource.name().as_str()).is_some_and(|glob| names.contains(glob))
    }

    /// Whether changes are fewer than what is wanted, which with a collection is any number.
    pub(super) fn is_few<T>(&self, changes: impl Iterator<Item = T>) -> bool {
        if !self.interest.globs.is_empty() {
            return true;
        }
        let names = self.interest.names.len();
        changes.take(names + 1).count() <= names
    }

    /// What must hold.
    pub(super) fn check(&self) -> Result<(), String> {
        let names = &self.interest.names;
        let bytes: usize = names.iter().map(|name| name.as_str().len()).sum();
        ensure!(bytes == self.bytes, "{bytes} bytes of names, counted as {}", self.bytes);
        ensure!(names.iter().all(|name| !name.is_wildcard() && !name.as_str().is_empty()), "a name that is none");
        Ok(())
    }
}

/// Whether one of these names is a resource's own, or an alias of it.
fn is_named_by(names: &BTreeSet<ResourceName>, resource: &Resource) -> bool {
    names.contains(resource.name()) || resource.aliases().iter().any(|alias| names.contains(alias))
}
