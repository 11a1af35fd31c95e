//! The store with a page for each name, so that an answer in portions goes from page to page.

use xds_machine::server::{Cache, Entry, Page, Revision, Source};
use xds_machine::{ResourceName, TypeUrl, Version};

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
}
