//! The store with a page for each name, so that an answer in portions goes from page to page.

use std::borrow::Cow;

use xds_machine::server::{Cache, Entry, Page, Resource, Revision, Source};
use xds_machine::{ResourceName, Status, TypeUrl, Version};

pub struct SmallPages<'a>(pub &'a Cache, pub &'a [ResourceName]);

impl Source for SmallPages<'_> {
    fn epoch(&self) -> u64 {
        self.0.epoch()
    }

    fn revision(&self) -> Revision {
        self.0.revision()
    }

    fn type_revision(&self, type_url: &TypeUrl) -> Revision {
        self.0.type_revision(type_url)
    }

    fn version(&self, type_url: &TypeUrl) -> Version {
        self.0.version(type_url)
    }

    fn get(&self, type_url: &TypeUrl, name: &str) -> Entry<'_> {
        self.0.get(type_url, name)
    }

    fn changes(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = Entry<'_>> {
        self.0.changes(type_url, since)
    }

    fn removals(
        &self,
        type_url: &TypeUrl,
        since: Revision,
    ) -> Option<impl Iterator<Item = (&ResourceName, Entry<'_>)>> {
        self.0.removals(type_url, since)
    }

    fn pages(&self, type_url: &TypeUrl) -> impl Iterator<Item = Page> {
        self.1.iter().map(move |name| {
            let of_this_name = self.0.resources(type_url).filter(|resource| resource.name() == name);
            Page::new(of_this_name.cloned().collect())
        })
    }

    fn with_ttl(&self, type_url: &TypeUrl) -> impl Iterator<Item = Entry<'_>> {
        self.0.with_ttl(type_url)
    }

    fn error(&self, type_url: &TypeUrl, name: &str) -> Option<&Status> {
        self.0.error(type_url, name)
    }

    fn errors(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = (&ResourceName, Entry<'_>)> {
        self.0.errors(type_url, since)
    }

    fn was(&self, type_url: &TypeUrl, name: &str, at: Revision) -> Option<&Resource> {
        self.0.was(type_url, name, at)
    }

    fn former(&self, type_url: &TypeUrl, alias: &str) -> Option<(Revision, &[ResourceName])> {
        self.0.former(type_url, alias)
    }

    fn members(&self, type_url: &TypeUrl, glob: &str) -> impl Iterator<Item = Entry<'_>> {
        self.0.members(type_url, glob)
    }

    fn is_known(&self, type_url: &TypeUrl) -> bool {
        self.0.is_known(type_url)
    }

    fn dependent_type(&self, type_url: &TypeUrl) -> Option<&str> {
        self.0.dependent_type(type_url)
    }

    fn dependent<'a>(&self, type_url: &TypeUrl, resource: &'a Resource) -> Option<Cow<'a, str>> {
        self.0.dependent(type_url, resource)
    }
}
