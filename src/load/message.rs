//! The messages of the protocol as plain values.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::sum::Sum;
use crate::message::{Locality, Node};
use crate::name::ResourceName;

/// A message of a client (`LoadStatsRequest`): its node, or a report, or both.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Request {
    /// The client's node. Set in the first message of a stream.
    pub node: Option<Arc<Node>>,
    /// The loads of clusters.
    pub clusters: Vec<ClusterStats>,
}

/// A message of a server (`LoadStatsResponse`): the loads that it asks for.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Response {
    /// The clusters to report.
    pub clusters: Vec<ResourceName>,
    /// All clusters are to be reported, whatever the list says.
    pub send_all_clusters: bool,
    /// The least time between two reports, as received: any value, or none.
    pub interval: Option<Interval>,
    /// The loads of endpoints are to be reported beside those of their localities.
    pub endpoint_granularity: bool,
}

/// A duration of a peer (`google.protobuf.Duration`), which may be negative or out of range.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Interval {
    /// Whole seconds.
    pub seconds: i64,
    /// Nanoseconds, valid if less than 10^9 and of the sign of the seconds.
    pub nanos: i32,
}

impl Interval {
    /// Returns the duration, or zero if the interval is negative. No value of the fields makes this overflow.
    pub fn to_duration(self) -> Duration {
        let nanos = i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos);
        let nanos = u128::try_from(nanos).unwrap_or(0);
        let seconds = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
        Duration::new(seconds, u32::try_from(nanos % 1_000_000_000).unwrap_or(0))
    }
}

impl From<Duration> for Interval {
    fn from(duration: Duration) -> Self {
        Self {
            seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
        }
    }
}

/// The loads of one cluster (`ClusterStats`).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ClusterStats {
    /// The name of the cluster.
    pub cluster: ResourceName,
    /// The name by which the client subscribes to the endpoints of the cluster; empty if it is that of the cluster.
    pub service: ResourceName,
    /// The measured time in which the loads accumulated. `None` if the peer sent none, or one that is not positive.
    pub window: Option<Duration>,
    /// The loads of localities.
    pub localities: Vec<LocalityStats>,
    /// All dropped calls, also those without a category.
    pub dropped: u64,
    /// The dropped calls by category.
    pub drops: Vec<Dropped>,
}

impl ClusterStats {
    /// Makes the stats of a cluster in which nothing happened.
    pub fn new(cluster: impl Into<ResourceName>, service: impl Into<ResourceName>) -> Self {
        Self {
            cluster: cluster.into(),
            service: service.into(),
            window: None,
            localities: Vec::new(),
            dropped: 0,
            drops: Vec::new(),
        }
    }

    /// Returns the sums over all localities, without metrics.
    pub fn sum(&self) -> Load {
        self.localities.iter().fold(Load::default(), |mut sum, locality| {
            sum.add_counts_and_gauge(&locality.load);
            sum
        })
    }

    /// Returns the sum of the dropped calls that have a category.
    pub(super) fn categorized(&self) -> u64 {
        self.drops.iter().fold(0, |sum, drops| sum.saturating_add(drops.count))
    }

    /// Returns whether nothing happened and nothing is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.dropped == 0 && self.drops.is_empty() && self.localities.iter().all(|locality| locality.load.is_idle())
    }
}

/// The loads of one locality of a cluster (`UpstreamLocalityStats`).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct LocalityStats {
    /// The locality; all empty if the client does not know it.
    pub locality: Arc<Locality>,
    /// The priority of the locality in the cluster.
    pub priority: u32,
    /// The loads.
    pub load: Load,
    /// `cpu_utilization` of the calls that reported it.
    pub cpu: Option<Metric>,
    /// `mem_utilization` of the calls that reported it.
    pub mem: Option<Metric>,
    /// `application_utilization` of the calls that reported it.
    pub application: Option<Metric>,
    /// The loads of endpoints, if they were asked for.
    pub endpoints: Vec<EndpointStats>,
}

/// The loads of one endpoint of a locality (`UpstreamEndpointStats`).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct EndpointStats {
    /// The address: an encoded `envoy.config.core.v3.Address`.
    pub address: Bytes,
    /// The loads.
    pub load: Load,
}

/// The counts of a window, and the calls in progress at its end.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Load {
    /// The calls that were started in the window.
    pub issued: u64,
    /// The calls that ended well in the window.
    pub ok: u64,
    /// The calls that failed in the window.
    pub error: u64,
    /// The calls that are in progress: a gauge.
    pub in_progress: u64,
    /// The metrics of calls that ended in the window, by name.
    pub metrics: Vec<NamedMetric>,
}

impl Load {
    /// Returns whether nothing happened and nothing is in progress: then there is nothing to report.
    pub fn is_idle(&self) -> bool {
        self.in_progress == 0 && self.has_no_counts()
    }

    /// Returns whether nothing happened.
    pub(super) fn has_no_counts(&self) -> bool {
        self.issued == 0 && self.ok == 0 && self.error == 0 && self.metrics.is_empty()
    }

    /// Adds the counts of another load. Metrics and the gauge stay.
    pub(super) fn add_counts(&mut self, other: &Self) {
        self.issued = self.issued.saturating_add(other.issued);
        self.ok = self.ok.saturating_add(other.ok);
        self.error = self.error.saturating_add(other.error);
    }

    /// Adds the counts and the calls in progress of another load; metrics stay.
    pub(super) fn add_counts_and_gauge(&mut self, other: &Self) {
        self.add_counts(other);
        self.in_progress = self.in_progress.saturating_add(other.in_progress);
    }

    /// Adds a metric to those of its name.
    pub(super) fn add_metric(&mut self, name: &str, metric: Metric) {
        match self.metrics.binary_search_by(|known| (*known.name).cmp(name)) {
            Ok(at) => {
                let known = &mut self.metrics[at].metric;
                *known = known.plus(metric);
            }
            Err(at) => self.metrics.insert(at, NamedMetric { name: name.into(), metric }),
        }
    }
}

/// A metric with its name.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct NamedMetric {
    /// The name.
    pub name: String,
    /// The metric.
    pub metric: Metric,
}

/// The sum of a metric over the calls that reported it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Metric {
    /// The number of ended calls that reported the metric.
    pub calls: u64,
    /// The sum of their values.
    pub total: Sum,
}

impl Metric {
    pub(super) fn plus(self, other: Self) -> Self {
        Self { calls: self.calls.saturating_add(other.calls), total: self.total.plus(other.total) }
    }
}

/// The dropped calls of one category.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Dropped {
    /// The category, as in the drop policy of the endpoints.
    pub category: String,
    /// The number of calls.
    pub count: u64,
}

/// Finds a category among dropped calls, which are in the order of their categories.
pub(super) fn find_drops(drops: &[Dropped], category: &str) -> Result<usize, usize> {
    drops.binary_search_by(|known| (*known.category).cmp(category))
}

/// Adds dropped calls to those of their category; the categories stay in order.
pub(super) fn add_drops(drops: &mut Vec<Dropped>, category: &str, count: u64) {
    match find_drops(drops, category) {
        Ok(at) => drops[at].count = drops[at].count.saturating_add(count),
        Err(at) => drops.insert(at, Dropped { category: category.into(), count }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_interval_of_a_peer_is_a_duration() {
        let of = |seconds, nanos| Interval { seconds, nanos }.to_duration();
        assert_eq!(of(1, 500_000_000), Duration::from_millis(1500));
        assert_eq!(of(0, 7), Duration::from_nanos(7));
        assert_eq!(of(2, -1_000_000_000), Duration::from_secs(1));
        for (seconds, nanos) in [(-1, 0), (0, -1), (i64::MIN, i32::MIN), (-1, i32::MAX - 2_147_483_646)] {
            assert_eq!(of(seconds, nanos), Duration::ZERO, "{seconds} {nanos}");
        }
        assert_eq!(of(i64::MAX, i32::MAX).as_secs(), i64::MAX as u64 + 2);
        assert_eq!(Interval::from(Duration::MAX).seconds, i64::MAX);
        assert_eq!(Interval::from(Duration::new(3, 4)), Interval { seconds: 3, nanos: 4 });
    }
}
