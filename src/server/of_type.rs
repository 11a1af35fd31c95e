//! A source restricted to one type.

use core::array;

use super::page::Page;
use super::resource::Resource;
use super::source::{Entry, Source, State};
use crate::error::Status;
use crate::name::{ResourceName, TypeUrl};
use crate::revision::Revision;

/// The number of names that are looked up together.
const BLOCK: usize = 16;

/// A source and one of its types.
pub(super) struct OfType<'s, S> {
    source: &'s S,
    type_url: &'s TypeUrl,
}

impl<S> Clone for OfType<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for OfType<'_, S> {}

impl<'s, S: Source> OfType<'s, S> {
    #[inline]
    pub(super) fn new(source: &'s S, type_url: &'s TypeUrl) -> Self {
        Self { source, type_url }
    }

    pub(super) fn type_url(self) -> &'s TypeUrl {
        self.type_url
    }

    /// Returns the revision of the source.
    #[inline]
    pub(super) fn now(self) -> Revision {
        self.source.revision()
    }

    /// Returns the revision of the last change of this type.
    #[inline]
    pub(super) fn revision(self) -> Revision {
        self.source.type_revision(self.type_url)
    }

    /// Returns whether it is known of a name whether it stands for a resource.
    pub(super) fn is_known(self, name: &ResourceName) -> bool {
        self.get(name).state != State::Unknown
    }

    #[inline]
    pub(super) fn get(self, name: &ResourceName) -> Entry<'s> {
        self.source.get(self.type_url, name)
    }

    /// Looks up names in blocks, and calls `found` for each name with the value beside it and its entry.
    #[inline]
    pub(super) fn get_each<'n, T: Copy>(
        self,
        mut names: impl Iterator<Item = (&'n str, T)>,
        mut found: impl FnMut(&'n str, T, Entry<'s>),
    ) {
        let Self { source, type_url } = self;
        loop {
            let block: [Option<(&str, T)>; BLOCK] = array::from_fn(|_| names.next());
            let named = block.into_iter().flatten();
            if block[BLOCK - 1].is_none() {
                return named.for_each(|(name, with)| found(name, with, source.get_str(type_url, name)));
            }
            let entries = source.get_block(type_url, block.map(|named| named.map_or("", |(name, _)| name)));
            named.zip(entries).for_each(|((name, with), entry)| found(name, with, entry));
        }
    }

    /// Returns whether an alias stands for the resource of this name.
    pub(super) fn stands_for(self, alias: &ResourceName, name: &ResourceName) -> bool {
        self.get(alias).resource().is_some_and(|resource| resource.name() == name)
    }

    pub(super) fn changes(self, since: Revision) -> impl Iterator<Item = Entry<'s>> {
        self.source.changes(self.type_url, since)
    }

    pub(super) fn removals(self, since: Revision) -> Option<impl Iterator<Item = (&'s ResourceName, Entry<'s>)>> {
        self.source.removals(self.type_url, since)
    }

    pub(super) fn pages(self) -> impl Iterator<Item = Page> {
        self.source.pages(self.type_url)
    }

    pub(super) fn expiring(self) -> impl Iterator<Item = Entry<'s>> {
        self.source.expiring(self.type_url)
    }

    pub(super) fn error(self, name: &ResourceName) -> Option<&'s Status> {
        self.source.error(self.type_url, name)
    }

    pub(super) fn errors(self, since: Revision) -> impl Iterator<Item = (&'s ResourceName, Entry<'s>)> {
        self.source.errors(self.type_url, since)
    }

    /// Returns whether any name has an error.
    pub(super) fn has_errors(self) -> bool {
        self.errors(Revision::default()).next().is_some()
    }

    pub(super) fn present_since(self, name: &ResourceName) -> Option<Revision> {
        self.source.present_since(self.type_url, name)
    }

    pub(super) fn previous(self, name: &ResourceName, at: Revision) -> Option<&'s Resource> {
        self.source.previous(self.type_url, name, at)
    }

    /// Returns whether a name is an alias, or was one.
    pub(super) fn was_alias(self, name: &ResourceName) -> bool {
        self.source.former_targets(self.type_url, name).is_some()
    }

    /// Returns the resources that an alias recently stood for and no longer does.
    pub(super) fn former_targets(self, alias: &ResourceName) -> &'s [ResourceName] {
        self.source.former_targets(self.type_url, alias).map_or(&[], |(_, names)| names)
    }

    pub(super) fn members(self, glob: &ResourceName) -> impl Iterator<Item = Entry<'s>> {
        self.source.members(self.type_url, glob)
    }
}
