//! A response that was read, in the shape in which both variants queue it.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Range;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound;
use core::time::Duration;

use super::config::Settings;
use super::resources::Resources;
use super::update::Rejection;
use crate::error::Code;
use crate::message::ResourceError;
use crate::name::{Nonce, ResourceName, Version};

/// A response that is not processed yet.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Incoming {
    pub(super) nonce: Nonce,
    /// The number of the response among those of its type on the stream, from 1.
    pub(super) serial: u64,
    /// All resources, wanted or not.
    pub(super) resources: Resources,
    /// Whether the comparison with held resources is valid when the response is processed: `held` counts the resources
    /// that were held, and `new` has the positions of the others.
    pub(super) compared: bool,
    pub(super) held: usize,
    pub(super) new: Vec<usize>,
    pub(super) heartbeats: Vec<Heartbeat>,
    /// Removed names, in order, each once.
    pub(super) removed: Vec<ResourceName>,
    /// Names that the server reports not to exist, each with the version of that report (delta).
    pub(super) not_found: Vec<(ResourceName, Version)>,
    pub(super) errors: Vec<ResourceError>,
    /// Errors of later responses that were merged with this one, about content that it has: they count after the verdict.
    pub(super) late_errors: Vec<ResourceError>,
    /// Faults that the machine itself found.
    pub(super) faults: Vec<Rejection>,
    /// Whether the complete response is refused.
    pub(super) refused: bool,
    /// Whether held resources that are absent from the response are removed.
    pub(super) has_all: bool,
    /// Earlier responses that were merged into this one and are answered before it, in order (delta).
    pub(super) merged: Vec<Merged>,
    /// The code of the NACK, if there is one.
    pub(super) code: Code,
    /// The bytes that count while the response waits.
    pub(super) bytes: usize,
}

/// A response that was merged into a later one. Its ACK or NACK is its own.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Merged {
    pub(super) nonce: Nonce,
    pub(super) serial: u64,
    /// The names, in order, whose last content or removal came with this response.
    pub(super) names: Vec<ResourceName>,
    /// Faults that the machine itself found in this response.
    pub(super) faults: Vec<Rejection>,
    /// The code of the NACK, if there is one.
    pub(super) code: Code,
}

/// A resource without content, which renews the TTL of the held one.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Heartbeat {
    pub(super) name: ResourceName,
    pub(super) version: Version,
    pub(super) ttl: Option<Duration>,
    pub(super) aliases: Vec<ResourceName>,
    /// The number of the response that had the heartbeat.
    pub(super) serial: u64,
    /// Whether the heartbeat renewed the held resource when it was read.
    pub(super) renewed: bool,
}

impl Merged {
    pub(super) fn has(&self, name: &ResourceName) -> bool {
        self.names.binary_search(name).is_ok()
    }
}

impl Incoming {
    pub(super) fn new(nonce: Nonce, serial: u64, version: Version) -> Self {
        Self {
            nonce,
            serial,
            resources: Resources::new(version),
            held: 0,
            new: Vec::new(),
            compared: false,
            heartbeats: Vec::new(),
            removed: Vec::new(),
            not_found: Vec::new(),
            errors: Vec::new(),
            late_errors: Vec::new(),
            faults: Vec::new(),
            refused: false,
            has_all: false,
            merged: Vec::new(),
            code: Code::InvalidArgument,
            bytes: 0,
        }
    }

    /// Records a fault of one resource; the other resources stay valid.
    pub(super) fn fault(&mut self, name: Option<ResourceName>, reason: impl Into<String>) {
        self.faults.push(Rejection { name, reason: reason.into() });
    }

    /// Records a fault in the response of this number, which may be one that was merged.
    pub(super) fn fault_in(&mut self, serial: u64, name: ResourceName, reason: &str) {
        let merged = self.merged.iter_mut().find(|merged| merged.serial == serial);
        let faults = merged.map_or(&mut self.faults, |merged| &mut merged.faults);
        faults.push(Rejection { name: Some(name), reason: reason.into() });
    }

    /// Refuses the complete response, with those that were merged into it.
    pub(super) fn refuse(&mut self, reason: impl Into<String>) {
        let reason = reason.into();
        self.refused = true;
        self.has_all = false;
        for merged in &mut self.merged {
            merged.names = Vec::new();
            merged.faults = Vec::from([Rejection::nameless(reason.as_str())]);
        }
        self.faults = Vec::from([Rejection::nameless(reason)]);
        self.resources = Resources::new(self.resources.version().clone());
        self.heartbeats = Vec::new();
        self.removed = Vec::new();
        self.errors = Vec::new();
        self.late_errors = Vec::new();
    }

    /// Sorts the response, and refuses it if a name occurs twice, in whatever roles (C-RES-11, C-DELTA-15;
    /// xds_protocol.rst, "Duplicate Resource Names").
    pub(super) fn finish(&mut self, settings: &Settings) {
        self.compared &= self.resources.is_ordered(); // sorting would change the positions
        let mut twice = self.resources.sort();
        if settings.quirks.duplicates_allowed && twice.take().is_some() {
            self.resources.keep_last();
        }
        self.heartbeats.sort_by(|a, b| a.name.cmp(&b.name));
        self.removed.sort();
        let mut rest: Vec<&ResourceName> = self.heartbeats.iter().map(|heartbeat| &heartbeat.name).collect();
        rest.extend(&self.removed);
        rest.extend(self.faults.iter().filter_map(|fault| fault.name.as_ref()));
        rest.sort();
        let twice = twice.or_else(|| duplicate(rest.iter().copied()).cloned()).or_else(|| {
            rest.iter().find(|name| self.resources.find(name.as_str()).is_some()).map(|&name| name.clone())
        });
        if let Some(name) = twice {
            let reason = format!("resource {name} is in the response twice");
            self.refuse(reason);
        }
    }

    /// Returns whether the response mentions this name.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.resources.have(name) || self.others().any(|other| other == name)
    }

    /// Returns the names in the response apart from its resources and removals.
    pub(super) fn others(&self) -> impl Iterator<Item = &ResourceName> {
        self.heartbeats
            .iter()
            .flat_map(|heartbeat| heartbeat.aliases.iter().chain([&heartbeat.name]))
            .chain(self.errors.iter().map(|error| &error.name))
            .chain(self.faults().filter_map(|fault| fault.name.as_ref()))
    }

    /// Returns the faults, without those of a name that a later response has anew.
    pub(super) fn faults(&self) -> impl Iterator<Item = &Rejection> {
        let superseded = |name: &ResourceName| {
            self.resources.find(name.as_str()).is_some() || self.removed.binary_search(name).is_ok()
        };
        let merged = self.merged.iter().flat_map(|merged| &merged.faults);
        merged.filter(move |fault| !fault.name.as_ref().is_some_and(superseded)).chain(&self.faults)
    }

    /// Returns whether the response has no resources, no faults, and no errors of a collection as a whole. Heartbeats,
    /// and names that do not exist or have an error, do not count.
    pub(super) fn has_no_content(&self) -> bool {
        let of_all =
            |error: &ResourceError| matches!(error.name.as_str(), "" | crate::WILDCARD) || error.name.is_glob();
        self.resources.is_empty() && self.faults().next().is_none() && !self.errors.iter().any(of_all)
    }

    /// Returns whether the response has heartbeats and no resources.
    pub(super) fn has_only_heartbeats(&self) -> bool {
        self.resources.is_empty() && !self.heartbeats.is_empty()
    }

    pub(super) fn has_heartbeat(&self, name: &ResourceName) -> bool {
        self.heartbeats.binary_search_by(|heartbeat| heartbeat.name.cmp(name)).is_ok() // `finish` sorts them
    }

    /// Returns whether a part of the response is so broken that its name is unknown.
    pub(super) fn has_nameless_fault(&self) -> bool {
        self.faults().any(|fault| fault.name.is_none())
    }
}

/// Returns a name that occurs twice in an ordered list.
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

/// Looks up many names that are mostly in order, with a step along the map for each instead of a search.
pub(super) struct Walk<'a, V> {
    map: &'a BTreeMap<ResourceName, V>,
    ahead: Range<'a, ResourceName, V>,
    next: Option<&'a ResourceName>,
    /// Whether the last name was found.
    on_it: bool,
}

impl<'a, V> Walk<'a, V> {
    pub(super) fn new(map: &'a BTreeMap<ResourceName, V>) -> Self {
        let mut ahead = map.range::<ResourceName, _>(..);
        Self { map, next: ahead.next().map(|(name, _)| name), ahead, on_it: false }
    }

    /// Returns the name as the map has it, and whether it directly follows the name that was found last.
    #[inline]
    pub(super) fn find(&mut self, name: &[u8]) -> Option<(&'a ResourceName, bool)> {
        match self.next {
            Some(next) if next.as_str().as_bytes() == name => {
                self.next = self.ahead.next().map(|(name, _)| name);
                Some((next, core::mem::replace(&mut self.on_it, true)))
            }
            _ => self.search(name),
        }
    }

    fn search(&mut self, name: &[u8]) -> Option<(&'a ResourceName, bool)> {
        self.on_it = false;
        let name = core::str::from_utf8(name).ok()?;
        let (found, _) = self.map.get_key_value(name)?;
        self.ahead = self.map.range::<str, _>((Bound::Excluded(name), Bound::Unbounded));
        self.next = self.ahead.next().map(|(name, _)| name);
        self.on_it = true;
        Some((found, false))
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;
    use crate::message::Node;

    fn incoming(names: &[&str]) -> Incoming {
        let mut incoming = Incoming::new("n".into(), 1, "v".into());
        let read = |_, name: &str, _: &mut Vec<_>| Some((name.into(), bytes::Bytes::new(), false));
        let resources = Resources::collect("v".into(), names.to_vec(), read);
        incoming.resources = resources.with_versions(alloc::vec![Version::default(); names.len()]);
        incoming
    }

    #[test]
    fn a_response_that_has_a_name_twice_is_refused() {
        let mut cases =
            [incoming(&["b", "a", "b"]), incoming(&["a"]), incoming(&["a"]), incoming(&["a"]), incoming(&[])];
        cases[1].removed.push("a".into());
        cases[2].fault(Some("a".into()), "broken");
        cases[3].heartbeats.push(Heartbeat {
            name: "a".into(),
            version: Version::default(),
            ttl: None,
            aliases: Vec::new(),
            serial: 1,
            renewed: false,
        });
        cases[4].removed = ["a".into(), "a".into()].into();
        for (read, name) in cases.iter_mut().zip(["b", "a", "a", "a", "a"]) {
            read.finish(Config::new(Node::new("n")).settings());
            assert!(read.refused);
            assert_eq!(read.faults, [Rejection::nameless(format!("resource {name} is in the response twice"))]);
            assert!(read.resources.is_empty() && read.removed.is_empty());
        }
    }

    #[test]
    fn a_walk_finds_keys_in_order_and_out_of_order() {
        let map: BTreeMap<ResourceName, u8> = ["a", "b", "d", "e"].into_iter().map(Into::into).zip(0..).collect();
        let mut walk = Walk::new(&map);
        let found = ["a", "b", "c", "d", "e", "b", "d", "z", "a"]
            .map(|name| walk.find(name.as_bytes()).map(|(_, follows)| follows));
        let (new, follows) = (Some(false), Some(true));
        assert_eq!(found, [new, follows, None, new, follows, new, follows, None, new]);
    }
}
