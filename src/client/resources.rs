//! The resources of a response: common fields in one list and rare fields in another, so that a hundred thousand
//! resources are read, handed on and dropped in as few steps as possible.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use crate::name::{ResourceName, Version};
use crate::xdstp::{Parts, is_glob};

/// Resources in the order of their names, each once, after [`sort`](Resources::sort).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Resources {
    /// The version of resources that have none of their own.
    version: Version,
    entries: Vec<Entry>,
    /// The resources' own versions; empty if none has one (SotW).
    versions: Vec<Version>,
    /// Rare fields by the position of the entry, in order.
    extras: Vec<(usize, Extra)>,
    ordered: bool,
}

/// Has the size of a resource in a SotW message, so that the list of entries reuses the memory of the message.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Entry {
    name: ResourceName,
    body: Bytes,
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Extra {
    /// The version in the wrapper of a SotW resource.
    pub(super) version: Option<Version>,
    pub(super) ttl: Option<Duration>,
    pub(super) aliases: Vec<ResourceName>,
}

/// A resource to be applied.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Resource<'a> {
    name: &'a ResourceName,
    version: &'a Version,
    body: &'a Bytes,
    extra: Option<&'a Extra>,
}

impl<'a> Resource<'a> {
    /// Returns the name of the resource.
    pub fn name(&self) -> &'a ResourceName {
        self.name
    }

    /// Returns the version; in SotW the version of the response, unless the wrapper has one.
    pub fn version(&self) -> &'a Version {
        self.version
    }

    /// Returns the encoded resource (`Any.value`) of the update's type, a slice of the buffer that was received.
    pub fn body(&self) -> &'a Bytes {
        self.body
    }

    /// Returns the TTL, after which the resource expires unless it is renewed; the machine keeps the time and emits
    /// [`Action::Expired`](super::Action::Expired).
    pub fn ttl(&self) -> Option<Duration> {
        self.extra?.ttl
    }

    /// Returns the aliases of the resource (delta).
    pub fn aliases(&self) -> &'a [ResourceName] {
        self.extra.map_or(&[], |extra| &extra.aliases)
    }
}

impl Resources {
    /// Creates an empty list; `version` is for resources that have none of their own.
    pub(super) fn new(version: Version) -> Self {
        Self { version, entries: Vec::new(), versions: Vec::new(), extras: Vec::new(), ordered: true }
    }

    /// Collects resources without versions of their own from the items of a message. `read` returns the name and body
    /// of an item, and whether the name is known to come after the last.
    pub(super) fn collect<T>(
        version: Version,
        items: Vec<T>,
        mut read: impl FnMut(usize, T, &mut Vec<Extra>) -> Option<(ResourceName, Bytes, bool)>,
    ) -> Self {
        let (mut at, mut in_a_row, mut extras, mut all) = (0, true, Vec::new(), Vec::new());
        let mut number = 0;
        // Collects in place: most entries need no new memory.
        let entries: Vec<Entry> = items
            .into_iter()
            .filter_map(|item| {
                number += 1;
                let (name, body, follows) = read(number - 1, item, &mut extras)?;
                in_a_row &= follows || at == 0;
                all.extend(extras.pop().map(|extra| (at, extra)));
                at += 1;
                Some(Entry { name, body })
            })
            .collect();
        let ordered = in_a_row || entries.is_sorted_by(|a, b| a.name < b.name);
        Self { version, entries, versions: Vec::new(), extras: all, ordered }
    }

    /// Gives each resource a version of its own.
    pub(super) fn with_versions(self, versions: Vec<Version>) -> Self {
        debug_assert_eq!(versions.len(), self.entries.len());
        Self { versions, ..self }
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Sorts the resources. Returns a name that occurs twice.
    pub(super) fn sort(&mut self) -> Option<ResourceName> {
        if self.ordered {
            return None;
        }
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by(|&a, &b| self.entries[a].name.cmp(&self.entries[b].name));
        let twice = order.windows(2).find(|pair| self.entries[pair[0]].name == self.entries[pair[1]].name);
        let twice = twice.map(|pair| self.entries[pair[0]].name.clone());
        self.pick(&order);
        self.ordered = true;
        twice
    }

    /// Keeps only the last resource of each name, in sorted resources.
    pub(super) fn keep_last(&mut self) {
        let last = |at: usize| self.entries.get(at + 1).is_none_or(|next| next.name != self.entries[at].name);
        let kept: Vec<usize> = (0..self.len()).filter(|&at| last(at)).collect();
        self.pick(&kept);
    }

    /// Keeps the resources that `keep` picks.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(Resource<'_>) -> bool) {
        let kept: Vec<usize> = (0..self.len()).filter(|&at| keep(self.at(at))).collect();
        if kept.len() < self.len() {
            self.pick(&kept);
        }
    }

    /// Adds the resources of an earlier response, of which this one has none. Contents that are a small part of what was
    /// received are copied, or they would keep the complete buffer in memory.
    pub(super) fn add_earlier(&mut self, mut earlier: Self, received: usize) {
        if earlier.is_empty() {
            return;
        }
        if earlier.bytes() < received / 2 {
            earlier.entries.iter_mut().for_each(|entry| entry.body = Bytes::copy_from_slice(&entry.body));
        }
        if !self.versions.is_empty() || !earlier.versions.is_empty() {
            self.versions.resize(self.len(), Version::default()); // a response without resources has no versions
            self.versions.append(&mut earlier.versions);
        }
        let before = self.len();
        self.extras.extend(earlier.extras.into_iter().map(|(at, extra)| (at + before, extra)));
        self.entries.append(&mut earlier.entries);
        self.ordered = false;
        self.sort();
    }

    /// Removes the aliases that `drop` picks.
    pub(super) fn drop_aliases(&mut self, drop: impl Fn(&str) -> bool) {
        self.extras.iter_mut().for_each(|(_, extra)| extra.aliases.retain(|alias| !drop(alias.as_str())));
        self.extras.retain(|(_, extra)| *extra != Extra::default());
    }

    /// Sets the TTL of the resource at a position.
    pub(super) fn set_ttl(&mut self, at: usize, ttl: Option<Duration>) {
        match self.extras.binary_search_by_key(&at, |(number, _)| *number) {
            Ok(found) => self.extras[found].1.ttl = ttl,
            Err(place) if ttl.is_some() => self.extras.insert(place, (at, Extra { ttl, ..Extra::default() })),
            Err(_) => {}
        }
        self.extras.retain(|(_, extra)| *extra != Extra::default());
    }

    /// Returns the bytes of the names and contents.
    pub(super) fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.name.as_str().len() + entry.body.len()).sum()
    }

    fn pick(&mut self, which: &[usize]) {
        let extra = |(to, &from): (usize, &usize)| Some((to, self.extra(from)?.clone()));
        self.extras = which.iter().enumerate().filter_map(extra).collect();
        self.entries = which.iter().map(|&at| self.entries[at].clone()).collect();
        if !self.versions.is_empty() {
            self.versions = which.iter().map(|&at| self.versions[at].clone()).collect();
        }
    }

    /// Removes the TTLs.
    pub(super) fn drop_ttls(&mut self) {
        self.extras.iter_mut().for_each(|(_, extra)| extra.ttl = None);
        self.extras.retain(|(_, extra)| *extra != Extra::default());
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether no resource has a TTL, aliases, or a version in its wrapper.
    pub(super) fn is_plain(&self) -> bool {
        self.extras.is_empty()
    }

    pub(super) fn version(&self) -> &Version {
        &self.version
    }

    pub(super) fn names(&self) -> impl ExactSizeIterator<Item = &ResourceName> {
        self.entries.iter().map(|entry| &entry.name)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Resource<'_>> {
        (0..self.len()).map(|at| self.at(at))
    }

    /// Returns the resources with aliases.
    pub(super) fn with_aliases(&self) -> impl Iterator<Item = Resource<'_>> {
        self.extras.iter().filter(|(_, extra)| !extra.aliases.is_empty()).map(|(at, _)| self.at(*at))
    }

    /// Returns the resources with this alias.
    pub(super) fn with_alias<'a>(&'a self, alias: &'a str) -> impl Iterator<Item = Resource<'a>> {
        self.with_aliases().filter(move |resource| resource.aliases().iter().any(|other| other == alias))
    }

    /// Returns whether a resource has this name or alias, or belongs to this collection.
    pub(super) fn have(&self, name: &str) -> bool {
        self.find(name).is_some() || self.with_alias(name).next().is_some() || (is_glob(name) && self.has_member(name))
    }

    fn has_member(&self, glob: &str) -> bool {
        let Some(parts) = Parts::of(glob) else { return false };
        let first = self.entries.partition_point(|entry| entry.name.as_str() < parts.directory);
        let near = self.entries[first..].iter().map(|entry| entry.name.as_str());
        near.take_while(|name| name.starts_with(parts.directory)).any(|name| parts.has(name))
    }

    /// Returns the position of the resource with this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.entries.binary_search_by(|entry| entry.name.as_str().cmp(name)).ok()
    }

    pub(super) fn at(&self, at: usize) -> Resource<'_> {
        let (Entry { name, body }, extra) = (&self.entries[at], self.extra(at));
        let own = self.versions.get(at).or_else(|| extra?.version.as_ref());
        Resource { name, version: own.unwrap_or(&self.version), body, extra }
    }

    fn extra(&self, at: usize) -> Option<&Extra> {
        let found = self.extras.binary_search_by_key(&at, |(number, _)| *number).ok()?;
        Some(&self.extras[found].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(names: &[&str]) -> Resources {
        let versions = names.iter().enumerate().map(|(at, name)| alloc::format!("{name}{at}").into()).collect();
        let read = |at, name: &str, extras: &mut Vec<Extra>| {
            let ttl = (name == "b").then(|| Duration::from_secs(at as u64 + 1));
            extras.extend(ttl.map(|ttl| Extra { ttl: Some(ttl), ..Extra::default() }));
            Some((name.into(), Bytes::new(), false))
        };
        Resources::collect("type".into(), names.to_vec(), read).with_versions(versions)
    }

    fn shown(resources: &Resources) -> Vec<(&str, &str, bool)> {
        resources.iter().map(|r| (r.name().as_str(), r.version().as_str(), r.ttl().is_some())).collect()
    }

    #[test]
    fn sorting_and_retaining_keep_the_fields_of_each_resource_together() {
        let mut all = resources(&["c", "b", "a"]);
        assert_eq!(all.sort(), None);
        assert_eq!(shown(&all), [("a", "a2", false), ("b", "b1", true), ("c", "c0", false)]);
        assert_eq!((all.find("b"), all.find("d")), (Some(1), None));
        all.retain(|resource| resource.name() != "a");
        assert_eq!(shown(&all), [("b", "b1", true), ("c", "c0", false)]);
        all.drop_ttls();
        assert!(all.is_plain());
    }

    #[test]
    fn sorting_finds_a_duplicate_name() {
        assert_eq!(resources(&["b", "a", "b"]).sort(), Some("b".into()));
        assert_eq!(resources(&["a", "a"]).sort(), Some("a".into()));
        assert_eq!(resources(&["a", "b"]).sort(), None);
    }

    #[test]
    fn the_last_resource_of_a_duplicate_name_is_kept() {
        let mut all = resources(&["b", "a", "b", "c", "b", "a"]);
        all.sort();
        all.keep_last();
        assert_eq!(shown(&all), [("a", "a5", false), ("b", "b4", true), ("c", "c3", false)]);
    }
}
