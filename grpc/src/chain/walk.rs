//! The walk from the roots over the held clusters: the clusters that are reached, and the leaves of an aggregate.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use xds_machine::ResourceName;

use super::failure::Failure;
use super::held::Store;
use crate::links::ClusterLinks;

/// The depth at which a cluster is not looked up any more; a root is at depth 0 (R-CHAIN-38).
pub const MAX_DEPTH: usize = 16;

/// The clusters that a walk reached.
pub(super) struct Reached<'a> {
    /// In the order in which the walk found them: parents before children, siblings in order (R-CHAIN-09).
    pub(super) clusters: Vec<&'a ResourceName>,
    set: BTreeSet<&'a ResourceName>,
}

impl<'a> Reached<'a> {
    pub(super) fn contains(&self, cluster: &ResourceName) -> bool {
        self.set.contains(cluster)
    }

    pub(super) fn sorted(&self) -> impl Iterator<Item = &'a ResourceName> {
        self.set.iter().copied()
    }
}

/// Walks from the roots, level by level, so that a cluster is looked up if any path to the cluster is short enough.
///
/// R-CHAIN-10: the walk continues beside a missing cluster. R-CHAIN-45: no references are counted, so that a cycle that
/// no root reaches is not reached. The cost is linear in the links of the clusters that are reached.
pub(super) fn walk<'a, T>(store: &'a Store<T>, roots: impl IntoIterator<Item = &'a ResourceName>) -> Reached<'a> {
    let mut reached = Reached { clusters: Vec::new(), set: BTreeSet::new() };
    let mut add = |level: &mut Vec<&'a ResourceName>, cluster: &'a ResourceName| {
        if reached.set.insert(cluster) {
            level.push(cluster);
        }
    };
    let mut level = Vec::new();
    roots.into_iter().for_each(|root| add(&mut level, root));
    for depth in 1..=MAX_DEPTH {
        let mut next = Vec::new();
        if depth < MAX_DEPTH {
            level.iter().flat_map(|cluster| store.children(cluster)).for_each(|child| add(&mut next, child));
        }
        reached.clusters.append(&mut level);
        level = next;
    }
    reached
}

/// Returns the leaves of an aggregate that is the root of its own tree.
///
/// R-CHAIN-36: depth first, in order, each leaf at its earliest place. R-CHAIN-37: other roots have no effect.
/// R-CHAIN-39: a child without a value is skipped. R-CHAIN-41: a cycle is cut.
pub(super) fn leaves<T>(
    store: &Store<T>,
    reached: &Reached<'_>,
    aggregate: &ResourceName,
) -> Result<Arc<[ResourceName]>, Failure> {
    let mut descent = Descent { store, reached, seen: BTreeSet::from([aggregate]), leaves: Vec::new() };
    let too_deep = |TooDeep| Failure::TooDeep { cluster: aggregate.clone() };
    descent.children(aggregate, 1).map_err(too_deep)?;
    if descent.leaves.is_empty() {
        return Err(Failure::NoLeaves { cluster: aggregate.clone() }); // R-CHAIN-40
    }
    Ok(descent.leaves.into())
}

struct TooDeep;

struct Descent<'a, 'r, T> {
    store: &'a Store<T>,
    reached: &'r Reached<'a>,
    seen: BTreeSet<&'a ResourceName>,
    leaves: Vec<ResourceName>,
}

impl<'a, T> Descent<'a, '_, T> {
    /// Descends into the children of an aggregate; the recursion ends at [`MAX_DEPTH`].
    fn children(&mut self, aggregate: &ResourceName, depth: usize) -> Result<(), TooDeep> {
        let store = self.store;
        for child in store.children(aggregate) {
            // R-CHAIN-38: the error is that of every ancestor. A child that was not looked up is too deep for the root
            // of the configuration, if not for this aggregate.
            if depth == MAX_DEPTH || !self.reached.contains(child) {
                return Err(TooDeep);
            }
            if !self.seen.insert(child) {
                continue;
            }
            match store.cluster_links(child) {
                Some(ClusterLinks::Aggregate(_)) => self.children(child, depth + 1)?,
                Some(_) => self.leaves.push(child.clone()),
                None => {}
            }
        }
        Ok(())
    }
}
