//! The loads that a server asks for.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use super::message::{Interval, Response};
use crate::name::ResourceName;

/// The loads that a server asks one client for.
///
/// ```
/// use core::time::Duration;
/// use xds_machine::load::Selection;
///
/// let all = Selection::all(Duration::from_secs(10)).or_clusters(["c1", "c2"]);
/// let some = Selection::clusters(Duration::from_secs(10), ["c1"]).with_endpoints(true);
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Selection {
    is_all: bool,
    /// The clusters; with `is_all`, those for a client that does not support `send_all_clusters`.
    clusters: BTreeSet<ResourceName>,
    interval: Duration,
    endpoints: bool,
}

impl Selection {
    /// Asks for all clusters that the client has. A client without the feature for this is asked for the clusters of
    /// [`or_clusters`](Self::or_clusters), if there are any.
    pub fn all(interval: Duration) -> Self {
        Self { is_all: true, clusters: BTreeSet::new(), interval, endpoints: false }
    }

    /// Asks for these clusters; an empty list asks for none.
    pub fn clusters(interval: Duration, clusters: impl IntoIterator<Item = impl Into<ResourceName>>) -> Self {
        let clusters = clusters.into_iter().map(Into::into).collect();
        Self { is_all: false, clusters, interval, endpoints: false }
    }

    /// Adds the clusters that a client without support for `send_all_clusters` is asked for.
    #[must_use]
    pub fn or_clusters(mut self, clusters: impl IntoIterator<Item = impl Into<ResourceName>>) -> Self {
        self.clusters.extend(clusters.into_iter().map(Into::into));
        self
    }

    /// Sets whether the loads of endpoints are asked for beside those of localities. Default: no.
    #[must_use]
    pub fn with_endpoints(mut self, endpoints: bool) -> Self {
        self.endpoints = endpoints;
        self
    }

    /// Returns the response for a client. `None` if the client is asked for nothing: an empty list is never sent,
    /// because grpc-go takes it for all clusters (R-LRS-55).
    pub(super) fn response(&self, takes_all: bool, floor: Duration, cap: Duration) -> Option<Response> {
        // With `send_all_clusters` the list stays empty (R-LRS-54).
        let is_all = self.is_all && takes_all;
        let clusters: Vec<_> = if is_all { Vec::new() } else { self.clusters.iter().cloned().collect() };
        (is_all || !clusters.is_empty()).then(|| Response {
            clusters,
            send_all_clusters: is_all,
            interval: Some(Interval::from(self.interval.min(cap).max(floor))),
            endpoint_granularity: self.endpoints,
        })
    }
}
