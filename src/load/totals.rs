//! Sums of reports.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::excess::Excess;
use super::message::{ClusterStats, Load, LocalityStats, Metric, add_drops};
use crate::error::PeerMisbehaved;
use crate::message::Locality;
use crate::name::ResourceName;

/// The sums of all reports of a stream, or of a node: calls, drops, metrics and windows are added up; calls in progress
/// are those of the last report (R-LRS-59). Endpoints are left out.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Totals {
    clusters: BTreeMap<(ResourceName, ResourceName), ClusterStats>,
}

impl Totals {
    /// Creates empty sums.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a report. An entry of the report has the calls in progress of the complete cluster: localities that the
    /// entry does not list have none.
    ///
    /// # Errors
    ///
    /// [`PeerMisbehaved::TooMuchLoad`] if more than `limit` clusters, localities, metrics or categories would be
    /// remembered, each kind counted over all clusters. Then nothing is added.
    pub fn add(&mut self, report: &[ClusterStats], limit: usize) -> Result<(), PeerMisbehaved> {
        let mut changed = BTreeMap::new();
        for stats in merge(report) {
            let key = (stats.cluster.clone(), stats.service.clone());
            let known = self.clusters.get(&key).cloned();
            let mut sum = known.unwrap_or_else(|| ClusterStats::new(stats.cluster.clone(), stats.service.clone()));
            sum.localities.iter_mut().for_each(|at| at.load.in_progress = 0);
            sum.window = match (sum.window, stats.window) {
                (Some(one), Some(other)) => Some(one.saturating_add(other)),
                (one, other) => one.or(other),
            };
            absorb(&mut sum, &stats);
            changed.insert(key, sum);
        }
        let stays = self.clusters.iter().filter(|(key, _)| !changed.contains_key(*key)).map(|(_, stats)| stats);
        check(stays.chain(changed.values()), limit)?;
        self.clusters.extend(changed);
        Ok(())
    }

    /// Returns the sums of each cluster, by name. The window of a cluster is the sum of its windows.
    pub fn iter(&self) -> impl Iterator<Item = &ClusterStats> {
        self.clusters.values()
    }
}

/// Counts the items of a kind.
type Count = fn(&ClusterStats) -> usize;

/// Checks the number of items of each kind.
fn check<'a>(all: impl Iterator<Item = &'a ClusterStats> + Clone, limit: usize) -> Result<(), PeerMisbehaved> {
    let kinds: [(Excess, Count); 4] = [
        (Excess::Clusters, |_| 1),
        (Excess::Localities, |stats| stats.localities.len()),
        (Excess::Metrics, |stats| stats.localities.iter().map(|at| at.load.metrics.len()).sum()),
        (Excess::Categories, |stats| stats.drops.len()),
    ];
    for (what, of) in kinds {
        let count = all.clone().map(of).sum();
        if count > limit {
            return Err(PeerMisbehaved::TooMuchLoad { what, count, limit });
        }
    }
    Ok(())
}

/// Adds up repeated entries of a report, and repeated localities of the same priority in an entry (R-LRS-57). Entries
/// stay in the order of their first appearance, and localities are in the order of their names. Endpoints are left out.
///
/// ```
/// use xds_machine::load::{ClusterStats, merge};
///
/// let stats = ClusterStats { dropped: 2, ..ClusterStats::new("c1", "") };
/// let merged = merge(&[stats.clone(), stats]);
/// assert_eq!((merged.len(), merged[0].dropped), (1, 4));
/// ```
pub fn merge(report: &[ClusterStats]) -> Vec<ClusterStats> {
    let (mut merged, mut known) = (Vec::<ClusterStats>::new(), BTreeMap::new());
    for stats in report {
        let at = *known.entry((&stats.cluster, &stats.service)).or_insert_with(|| {
            merged.push(ClusterStats::new(stats.cluster.clone(), stats.service.clone()));
            merged.len() - 1
        });
        // Both are of one report: the longer window covers both.
        merged[at].window = merged[at].window.max(stats.window);
        absorb(&mut merged[at], stats);
    }
    merged
}

/// Adds the stats of a cluster to those of the same cluster, but for the window.
fn absorb(sum: &mut ClusterStats, stats: &ClusterStats) {
    sum.dropped = sum.dropped.saturating_add(stats.dropped);
    for drops in &stats.drops {
        add_drops(&mut sum.drops, &drops.category, drops.count);
    }
    for at in &stats.localities {
        let found = sum.localities.binary_search_by(|known| place(known).cmp(&place(at)));
        let known = match found {
            Ok(at) => &mut sum.localities[at],
            Err(new) => {
                let (locality, priority) = (at.locality.clone(), at.priority);
                sum.localities.insert(new, LocalityStats { locality, priority, ..LocalityStats::default() });
                &mut sum.localities[new]
            }
        };
        add(&mut known.load, &at.load);
        for (known, other) in
            [(&mut known.cpu, at.cpu), (&mut known.mem, at.mem), (&mut known.application, at.application)]
        {
            *known = add_metric(*known, other);
        }
    }
}

fn place(stats: &LocalityStats) -> ([&str; 3], u32) {
    let Locality { region, zone, sub_zone } = Arc::as_ref(&stats.locality);
    ([region, zone, sub_zone], stats.priority)
}

fn add(sum: &mut Load, load: &Load) {
    sum.add_counts_and_gauge(load);
    for named in &load.metrics {
        sum.add_metric(&named.name, named.metric);
    }
}

fn add_metric(one: Option<Metric>, other: Option<Metric>) -> Option<Metric> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.plus(other)),
        (one, other) => one.or(other),
    }
}
