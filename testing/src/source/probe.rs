//! A source that wraps another and checks it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use xds_machine::server::{Entry, Page, Resource, Revision, Source};
use xds_machine::{ResourceName, Status, TypeUrl, Version};

use super::audit::{Broken, OfType};

/// A [`Source`] that forwards to another, and checks the contract of `Source` at each call: order, `since` exceeds the
/// argument, present resources are present, `get` agrees with `changes`, `removals`, `pages`, `members`, `expiring` and
/// `errors`; revisions grow, and a change between two calls has its own revision; pages keep their numbers. Each call
/// costs as much as the type is large, so use this in tests only.
///
/// A call panics with the violated rule; [`check`](Self::check) returns it. To detect a change, a probe must have been
/// called before: the probe knows the names that were looked up, and all resources present at that time.
#[derive(Debug, Default)]
pub struct Probe<S> {
    source: S,
    seen: RefCell<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    epoch: Option<u64>,
    types: BTreeMap<TypeUrl, OfType>,
}

impl<S: Source> Probe<S> {
    /// Makes a probe around a source.
    pub fn new(source: S) -> Self {
        Self { source, seen: RefCell::default() }
    }

    /// Returns the source for changes.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Returns the source.
    pub fn get_ref(&self) -> &S {
        &self.source
    }

    /// Returns the source.
    pub fn into_inner(self) -> S {
        self.source
    }

    /// Examines the source's complete state of a type.
    ///
    /// # Errors
    ///
    /// Returns the violated rule of the contract.
    pub fn check(&self, type_url: &TypeUrl) -> Result<(), Broken> {
        self.with(type_url, |seen| seen.audit(&self.source, type_url))
    }

    fn with<T>(&self, type_url: &TypeUrl, f: impl FnOnce(&mut OfType) -> T) -> T {
        let (mut seen, epoch) = (self.seen.borrow_mut(), self.source.epoch());
        if seen.epoch.replace(epoch).is_some_and(|before| before != epoch) {
            seen.types.clear(); // another epoch
        }
        f(seen.types.entry(type_url.clone()).or_default())
    }

    /// Like `check`, at a call: panics on a violation.
    fn audit(&self, type_url: &TypeUrl, more: impl FnOnce(&OfType) -> Result<(), Broken>) {
        let all = self.check(type_url).and_then(|()| self.with(type_url, |seen| more(seen)));
        all.unwrap_or_else(|broken| panic!("{broken}"));
    }
}

impl<S: Source> Source for Probe<S> {
    fn epoch(&self) -> u64 {
        self.source.epoch()
    }

    fn revision(&self) -> Revision {
        self.source.revision()
    }

    fn type_revision(&self, type_url: &TypeUrl) -> Revision {
        self.audit(type_url, |_| Ok(()));
        self.source.type_revision(type_url)
    }

    fn version(&self, type_url: &TypeUrl) -> Version {
        self.audit(type_url, |_| Ok(()));
        self.source.version(type_url)
    }

    fn get(&self, type_url: &TypeUrl, name: &ResourceName) -> Entry<'_> {
        self.with(type_url, |seen| seen.notice(name));
        self.audit(type_url, |_| Ok(()));
        self.source.get(type_url, name)
    }

    fn changes(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = Entry<'_>> {
        self.audit(type_url, |seen| seen.check_changes(&self.source, type_url, since).map(drop));
        self.source.changes(type_url, since)
    }

    fn removals(
        &self,
        type_url: &TypeUrl,
        since: Revision,
    ) -> Option<impl Iterator<Item = (&ResourceName, Entry<'_>)>> {
        self.audit(type_url, |seen| seen.check_removals(&self.source, type_url, since));
        self.source.removals(type_url, since)
    }

    fn pages(&self, type_url: &TypeUrl) -> impl Iterator<Item = Page> {
        self.audit(type_url, |_| Ok(()));
        self.source.pages(type_url)
    }

    fn expiring(&self, type_url: &TypeUrl) -> impl Iterator<Item = Entry<'_>> {
        self.audit(type_url, |_| Ok(()));
        self.source.expiring(type_url)
    }

    fn error(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<&Status> {
        self.audit(type_url, |_| Ok(()));
        self.source.error(type_url, name)
    }

    fn errors(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = (&ResourceName, Entry<'_>)> {
        self.audit(type_url, |_| Ok(()));
        self.source.errors(type_url, since)
    }

    fn present_since(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<Revision> {
        self.source.present_since(type_url, name)
    }

    fn previous(&self, type_url: &TypeUrl, name: &ResourceName, at: Revision) -> Option<&Resource> {
        self.source.previous(type_url, name, at)
    }

    fn former_targets(&self, type_url: &TypeUrl, alias: &ResourceName) -> Option<(Revision, &[ResourceName])> {
        self.source.former_targets(type_url, alias)
    }

    fn members(&self, type_url: &TypeUrl, glob: &ResourceName) -> impl Iterator<Item = Entry<'_>> {
        self.audit(type_url, |seen| seen.check_members(&self.source, type_url, glob));
        self.source.members(type_url, glob)
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
