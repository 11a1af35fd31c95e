//! A source that counts what is read of another.

use std::cell::Cell;

use xds_machine::server::{Entry, Page, Resource, Revision, Source};
use xds_machine::{ResourceName, Status, TypeUrl, Version};

/// A [`Source`] that forwards to another, and counts the entries that are read: one for each lookup, for each item of an
/// iterator, and for each resource of a page.
#[derive(Debug)]
pub struct Counted<'a, S> {
    source: &'a S,
    reads: Cell<usize>,
}

impl<'a, S: Source> Counted<'a, S> {
    /// Makes a counter of a source.
    pub fn new(source: &'a S) -> Self {
        Self { source, reads: Cell::new(0) }
    }

    /// Returns the number of entries that were read.
    pub fn reads(&self) -> usize {
        self.reads.get()
    }

    fn add(&self, count: usize) {
        self.reads.set(self.reads.get() + count);
    }

    fn each<T>(&self, items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        items.inspect(|_| self.add(1))
    }
}

impl<S: Source> Source for Counted<'_, S> {
    fn epoch(&self) -> u64 {
        self.source.epoch()
    }

    fn revision(&self) -> Revision {
        self.source.revision()
    }

    fn type_revision(&self, type_url: &TypeUrl) -> Revision {
        self.source.type_revision(type_url)
    }

    fn version(&self, type_url: &TypeUrl) -> Version {
        self.source.version(type_url)
    }

    fn get(&self, type_url: &TypeUrl, name: &ResourceName) -> Entry<'_> {
        self.add(1);
        self.source.get(type_url, name)
    }

    fn get_str(&self, type_url: &TypeUrl, name: &str) -> Entry<'_> {
        self.add(1);
        self.source.get_str(type_url, name)
    }

    fn get_block<const N: usize>(&self, type_url: &TypeUrl, names: [&str; N]) -> [Entry<'_>; N] {
        self.add(N);
        self.source.get_block(type_url, names)
    }

    fn changes(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = Entry<'_>> {
        self.each(self.source.changes(type_url, since))
    }

    fn removals(
        &self,
        type_url: &TypeUrl,
        since: Revision,
    ) -> Option<impl Iterator<Item = (&ResourceName, Entry<'_>)>> {
        Some(self.each(self.source.removals(type_url, since)?))
    }

    fn pages(&self, type_url: &TypeUrl) -> impl Iterator<Item = Page> {
        self.source.pages(type_url).inspect(|page| self.add(page.resources().len()))
    }

    fn expiring(&self, type_url: &TypeUrl) -> impl Iterator<Item = Entry<'_>> {
        self.each(self.source.expiring(type_url))
    }

    fn error(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<&Status> {
        self.add(1);
        self.source.error(type_url, name)
    }

    fn errors(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = (&ResourceName, Entry<'_>)> {
        self.each(self.source.errors(type_url, since))
    }

    fn previous(&self, type_url: &TypeUrl, name: &ResourceName, at: Revision) -> Option<&Resource> {
        self.add(1);
        self.source.previous(type_url, name, at)
    }

    fn present_since(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<Revision> {
        self.add(1);
        self.source.present_since(type_url, name)
    }

    fn former_targets(&self, type_url: &TypeUrl, alias: &ResourceName) -> Option<(Revision, &[ResourceName])> {
        self.add(1);
        self.source.former_targets(type_url, alias)
    }

    fn members(&self, type_url: &TypeUrl, glob: &ResourceName) -> impl Iterator<Item = Entry<'_>> {
        self.each(self.source.members(type_url, glob))
    }

    fn is_known(&self, type_url: &TypeUrl) -> bool {
        self.source.is_known(type_url)
    }

    fn dependent_type(&self, type_url: &TypeUrl) -> Option<&str> {
        self.source.dependent_type(type_url)
    }

    fn dependent(&self, type_url: &TypeUrl, resource: &Resource) -> Option<ResourceName> {
        self.source.dependent(type_url, resource)
    }
}
