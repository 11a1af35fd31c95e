//! The names of the children of priorities, so that connections outlive a change of the order (gRFC A56).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use xds_machine::message;

use super::assignment::Priority;

/// The names of the children of a cluster's priorities: numbers, which are never used again.
///
/// ```
/// use std::num::NonZeroU32;
///
/// use xds_machine::message;
/// use xds_machine_grpc::endpoints::{ChildNames, Locality, Priority};
///
/// let priority = |region: &str| {
///     let name = message::Locality { region: region.into(), ..message::Locality::default() };
///     Priority { localities: vec![Locality { name, weight: NonZeroU32::MIN, endpoints: vec![] }] }
/// };
/// let mut names = ChildNames::default();
/// names.update(&["a", "b"].map(priority));
/// assert_eq!(names.names(), &[0_u64, 1]);
/// names.update(&["c", "a"].map(priority)); // so the connections to a stay
/// assert_eq!(names.names(), &[2_u64, 0]);
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct ChildNames {
    names: Vec<u64>,
    /// The localities of each name.
    localities: Vec<Vec<message::Locality>>,
    next: u64,
}

impl ChildNames {
    /// Returns the name of each priority's child.
    pub fn names(&self) -> &[u64] {
        &self.names
    }

    /// Names the children anew. R-EDS-22: A priority keeps the name of the priority at its index if both have a
    /// locality in common, or else takes the first old name that is free, of those that had one of its localities;
    /// otherwise it gets a new name.
    pub fn update(&mut self, priorities: &[Priority]) {
        let localities: Vec<Vec<_>> = priorities.iter().map(localities).collect();
        // The old priorities that each locality was in, and that are not used yet.
        let mut old: BTreeMap<Key<'_>, BTreeSet<usize>> = BTreeMap::new();
        for (at, of_priority) in self.localities.iter().enumerate() {
            of_priority.iter().for_each(|locality| _ = old.entry(key(locality)).or_default().insert(at));
        }
        let is_at = |at: usize, new: &[message::Locality]| {
            new.iter().any(|locality| old.get(&key(locality)).is_some_and(|old| old.contains(&at)))
        };
        let mut chosen: Vec<Option<usize>> =
            localities.iter().enumerate().map(|(at, new)| is_at(at, new).then_some(at)).collect();
        let mut used: BTreeSet<usize> = chosen.iter().flatten().copied().collect();
        for (choice, new) in chosen.iter_mut().zip(&localities).filter(|(choice, _)| choice.is_none()) {
            let mut free = None;
            for locality in new {
                let Some(old) = old.get_mut(&key(locality)) else { continue };
                // A used priority stays used, so each is skipped only once.
                while old.first().is_some_and(|first| used.contains(first)) {
                    old.pop_first();
                }
                free = free.into_iter().chain(old.first().copied()).min();
            }
            used.extend(free);
            *choice = free;
        }
        let mut next = self.next;
        let mut new_name = || {
            next += 1;
            next - 1
        };
        let names = chosen.into_iter().map(|old| old.map_or_else(&mut new_name, |old| self.names[old])).collect();
        *self = Self { names, localities, next };
    }
}

/// The names of a locality, which have an order.
type Key<'a> = (&'a str, &'a str, &'a str);

fn key(locality: &message::Locality) -> Key<'_> {
    (&locality.region, &locality.zone, &locality.sub_zone)
}

fn localities(priority: &Priority) -> Vec<message::Locality> {
    priority.localities.iter().map(|locality| locality.name.clone()).collect()
}
