//! The names of the children of priorities, so that connections outlive a change of the order (gRFC A56).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use xds_machine::message;

use super::assignment::Priority;

/// The names of the children of a cluster's priorities: numbers, which are never used again.
///
/// ```
/// use xds_machine_grpc::endpoints::{Assignment, ChildNames};
///
/// let mut names = ChildNames::default();
/// names.update(&Assignment::default().priorities);
/// assert_eq!(names.names(), []);
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

    /// Names the children anew. R-EDS-22: A priority keeps the name of the priority at its index, or else takes the
    /// first old name that is free, of those that had one of its localities; otherwise it gets a new name.
    pub fn update(&mut self, priorities: &[Priority]) {
        let localities: Vec<Vec<_>> = priorities.iter().map(localities).collect();
        let shares = |old: usize, new: &[message::Locality]| {
            self.localities.get(old).is_some_and(|old| new.iter().any(|locality| old.contains(locality)))
        };
        let mut names: Vec<Option<u64>> =
            localities.iter().enumerate().map(|(at, new)| shares(at, new).then(|| self.names[at])).collect();
        let mut used: BTreeSet<u64> = names.iter().flatten().copied().collect();
        for (name, new) in names.iter_mut().zip(&localities).filter(|(name, _)| name.is_none()) {
            let old = (0..self.names.len()).find(|&old| shares(old, new) && !used.contains(&self.names[old]));
            let chosen = old.map_or(self.next, |old| self.names[old]);
            if old.is_none() {
                self.next += 1;
            }
            used.insert(chosen);
            *name = Some(chosen);
        }
        self.names = names.into_iter().flatten().collect();
        self.localities = localities;
    }
}

fn localities(priority: &Priority) -> Vec<message::Locality> {
    priority.localities.iter().map(|locality| locality.name.clone()).collect()
}
