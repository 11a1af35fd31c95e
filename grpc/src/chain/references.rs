//! Dynamic references to clusters: by RPCs under way, and by route lookup (gRFC A31, A74).

use alloc::collections::{BTreeMap, BTreeSet};

use xds_machine::ResourceName;

/// A dynamic reference to a cluster: see [`Chain::subscribe`](super::Chain::subscribe).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[must_use = "the cluster stays watched until the reference is released"]
pub struct ClusterRef {
    cluster: ResourceName,
    /// Never used twice, so that a second release of one reference releases no other; `None` after a shutdown.
    id: Option<u64>,
}

impl ClusterRef {
    /// Returns the cluster.
    pub fn cluster(&self) -> &ResourceName {
        &self.cluster
    }
}

/// The references that were taken and not released.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct References {
    taken: u64,
    clusters: BTreeMap<ResourceName, BTreeSet<u64>>,
}

impl References {
    /// Adds a reference; returns whether it is the cluster's first.
    pub(super) fn take(&mut self, cluster: ResourceName) -> (ClusterRef, bool) {
        let id = self.taken;
        self.taken += 1;
        let ids = self.clusters.entry(cluster.clone()).or_default();
        ids.insert(id);
        (ClusterRef { cluster, id: Some(id) }, ids.len() == 1)
    }

    /// Makes the reference of a chain that is shut down (R-CHAIN-49).
    pub(super) fn none(cluster: ResourceName) -> ClusterRef {
        ClusterRef { cluster, id: None }
    }

    /// Removes a reference, unless that was done before; returns whether it was the cluster's last.
    pub(super) fn release(&mut self, reference: &ClusterRef) -> bool {
        let Some(ids) = self.clusters.get_mut(&reference.cluster) else { return false };
        if !reference.id.is_some_and(|id| ids.remove(&id)) || !ids.is_empty() {
            return false;
        }
        self.clusters.remove(&reference.cluster);
        true
    }

    pub(super) fn clusters(&self) -> impl Iterator<Item = &ResourceName> {
        self.clusters.keys()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.clusters.is_empty()
    }
}
