//! A response, read: the one shape in which both variants wait for their turn.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Range;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::iter::Peekable;
use core::ops::Bound;
use core::time::Duration;

use super::update::{Rejection, Resource};
use crate::message::ResourceError;
use crate::name::{Nonce, ResourceName, Version};

/// A response that is not processed yet.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Incoming {
    pub(super) nonce: Nonce,
    /// Which response of the type on its stream this is, counted from 1.
    pub(super) serial: u64,
    pub(super) version: Version,
    /// In the order of the names, each once; wanted or not.
    pub(super) resources: Vec<Resource>,
    pub(super) heartbeats: Vec<Heartbeat>,
    /// In order, each once.
    pub(super) removed: Vec<ResourceName>,
    pub(super) errors: Vec<ResourceError>,
    /// What the machine itself finds wrong.
    pub(super) faults: Vec<Rejection>,
    /// Nothing of the response may be used.
    pub(super) refused: bool,
}

/// A resource without content: it lives on as it is.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Heartbeat {
    pub(super) name: ResourceName,
    pub(super) version: Version,
    pub(super) ttl: Option<Duration>,
}

impl Incoming {
    pub(super) fn new(nonce: Nonce, serial: u64, version: Version) -> Self {
        Self {
            nonce,
            serial,
            version,
            resources: Vec::new(),
            heartbeats: Vec::new(),
            removed: Vec::new(),
            errors: Vec::new(),
            faults: Vec::new(),
            refused: false,
        }
    }

    /// Something about one resource is wrong; the others count.
    pub(super) fn fault(&mut self, name: Option<ResourceName>, reason: impl Into<String>) {
        self.faults.push(Rejection { name, reason: reason.into() });
    }

    /// The whole response is wrong.
    pub(super) fn refuse(&mut self, reason: impl Into<String>) {
        self.refused = true;
        self.faults = Vec::from([Rejection::nameless(reason)]);
        self.resources = Vec::new();
        self.heartbeats = Vec::new();
        self.removed = Vec::new();
        self.errors = Vec::new();
    }

    /// Puts everything in order, and refuses the response if a name is in it twice, in whatever roles
    /// (C-RES-11, C-DELTA-15; xds_protocol.rst, "Duplicate Resource Names").
    pub(super) fn finish(&mut self) {
        sort(&mut self.resources, |resource| &resource.name);
        sort(&mut self.heartbeats, |heartbeat| &heartbeat.name);
        sort(&mut self.removed, |name| name);
        let mut rest: Vec<&ResourceName> = self.heartbeats.iter().map(|heartbeat| &heartbeat.name).collect();
        rest.extend(&self.removed);
        rest.extend(self.faults.iter().filter_map(|fault| fault.name.as_ref()));
        sort(&mut rest, |name| name);
        let twice = duplicate(self.resources.iter().map(|resource| &resource.name))
            .or_else(|| duplicate(rest.iter().copied()))
            .or_else(|| rest.iter().copied().find(|name| self.find(name.as_str()).is_some()));
        if let Some(name) = twice {
            let reason = format!("resource {name} is in the response twice");
            self.refuse(reason);
        }
    }

    /// The resource of this name.
    pub(super) fn find(&self, name: &str) -> Option<&Resource> {
        find(&self.resources, name)
    }

    /// Whether the response says anything of this name.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.find(name).is_some() || self.others().any(|other| other == name)
    }

    /// The names that the response has besides its resources and removals.
    pub(super) fn others(&self) -> impl Iterator<Item = &ResourceName> {
        self.heartbeats
            .iter()
            .map(|heartbeat| &heartbeat.name)
            .chain(self.errors.iter().map(|error| &error.name))
            .chain(self.faults.iter().filter_map(|fault| fault.name.as_ref()))
    }

    /// Whether the response holds nothing at all.
    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.removed.is_empty() && self.faults.is_empty() && self.others().next().is_none()
    }

    /// Whether something in the response is so broken that its name can't be told.
    pub(super) fn has_nameless_fault(&self) -> bool {
        self.faults.iter().any(|fault| fault.name.is_none())
    }
}

/// The resource of this name among some that are in order.
pub(super) fn find<'a>(resources: &'a [Resource], name: &str) -> Option<&'a Resource> {
    let at = resources.binary_search_by(|resource| resource.name.as_str().cmp(name)).ok()?;
    Some(&resources[at])
}

/// Sorts by name; in one pass if the peer sorted already, as ours does.
fn sort<T>(items: &mut [T], name: impl Fn(&T) -> &ResourceName) {
    if !items.is_sorted_by(|a, b| name(a) <= name(b)) {
        items.sort_by(|a, b| name(a).cmp(name(b)));
    }
}

/// A name that comes twice in an ordered list.
fn duplicate<'a>(names: impl Iterator<Item = &'a ResourceName>) -> Option<&'a ResourceName> {
    let mut last = None;
    for name in names {
        if last == Some(name) {
            return last;
        }
        last = Some(name);
    }
    None
}

/// Looks up many names that come mostly in order: a step along the map each, instead of a search each.
pub(super) struct Walk<'a, V> {
    map: &'a BTreeMap<ResourceName, V>,
    ahead: Peekable<Range<'a, ResourceName, V>>,
}

impl<'a, V> Walk<'a, V> {
    pub(super) fn new(map: &'a BTreeMap<ResourceName, V>) -> Self {
        Self { map, ahead: map.range::<ResourceName, _>(..).peekable() }
    }

    pub(super) fn find(&mut self, name: &str) -> Option<(&'a ResourceName, &'a V)> {
        if let Some(next) = self.ahead.next_if(|(key, _)| key.as_str() == name) {
            return Some(next);
        }
        let found = self.map.get_key_value(name)?;
        self.ahead = self.map.range::<str, _>((Bound::Excluded(name), Bound::Unbounded)).peekable();
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incoming(names: &[&str]) -> Incoming {
        let mut incoming = Incoming::new("n".into(), 1, "v".into());
        incoming.resources = names.iter().map(|&name| resource(name)).collect();
        incoming
    }

    fn resource(name: &str) -> Resource {
        Resource {
            name: name.into(),
            version: Version::default(),
            body: bytes::Bytes::new(),
            ttl: None,
            aliases: Vec::new(),
        }
    }

    #[test]
    fn resources_are_put_in_order() {
        let mut read = incoming(&["b", "c", "a"]);
        read.finish();
        let names: Vec<_> = read.resources.iter().map(|resource| resource.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(!read.refused);
        assert_eq!(read.find("b").map(|resource| resource.name.as_str()), Some("b"));
        assert_eq!(read.find("d"), None);
    }

    #[test]
    fn a_name_in_two_roles_refuses_the_response() {
        let mut cases =
            [incoming(&["b", "a", "b"]), incoming(&["a"]), incoming(&["a"]), incoming(&["a"]), incoming(&[])];
        cases[1].removed.push("a".into());
        cases[2].fault(Some("a".into()), "broken");
        cases[3].heartbeats.push(Heartbeat { name: "a".into(), version: Version::default(), ttl: None });
        cases[4].removed = ["a".into(), "a".into()].into();
        for (read, name) in cases.iter_mut().zip(["b", "a", "a", "a", "a"]) {
            read.finish();
            assert!(read.refused);
            assert_eq!(read.faults, [Rejection::nameless(format!("resource {name} is in the response twice"))]);
            assert!(read.resources.is_empty() && read.removed.is_empty());
        }
    }

    #[test]
    fn a_walk_finds_in_order_and_out_of_order() {
        let map: BTreeMap<ResourceName, u8> = ["a", "b", "d", "e"].into_iter().map(Into::into).zip(0..).collect();
        let mut walk = Walk::new(&map);
        let found = ["a", "b", "c", "d", "a", "e", "b", "z", "d"].map(|name| walk.find(name).map(|(_, &value)| value));
        assert_eq!(found, [Some(0), Some(1), None, Some(2), Some(0), Some(3), Some(1), None, Some(2)]);
    }
}
