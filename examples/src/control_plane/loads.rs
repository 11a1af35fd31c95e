//! Load reports: the clusters that clients are asked for, and the log of their reports.

use std::sync::Arc;
use std::time::Duration;

use xds_machine::load::{ClusterStats, SEND_ALL_CLUSTERS, Selection, merge};
use xds_machine::server::{Page, Source};
use xds_machine::{ResourceName, TypeUrl, type_url};
use xds_machine_tonic::server::{LoadReports, LoadStream, Store};

use super::groups::Groups;
use super::log::{ClusterLoad, Event, LocalityLoad, Log};

/// Asks all clients for the loads of all clusters.
pub struct Loads {
    pub log: Log,
    pub groups: Arc<Groups>,
    /// `None` asks for nothing.
    pub interval: Option<Duration>,
}

impl LoadReports for Loads {
    fn select(&self, stream: &LoadStream) -> Option<Selection> {
        let (interval, node) = (self.interval?, stream.node());
        if node.has_feature(SEND_ALL_CLUSTERS) {
            return Some(Selection::all(interval));
        }
        // By name, and only the clusters that the node is served.
        let clusters = TypeUrl::from(type_url::CLUSTER);
        let names: Vec<ResourceName> = self.groups.assign(node).store().with(|source| {
            let pages: Vec<Page> = source.pages(&clusters).collect();
            pages.iter().flat_map(Page::resources).map(|resource| resource.name().clone()).collect()
        });
        Some(Selection::clusters(interval, names))
    }

    fn reported(&self, stream: &LoadStream, report: &[ClusterStats]) {
        let merged = merge(report);
        let clusters = Some(merged.iter().map(of_cluster).collect());
        let (id, node) = (Some(stream.id().0), Some((&stream.node().id).into()));
        self.log.event(Event { stream: id, peer: stream.peer(), node, clusters, ..Event::new("load") });
    }
}

fn of_cluster(stats: &ClusterStats) -> ClusterLoad<'_> {
    let sum = stats.sum();
    ClusterLoad {
        cluster: stats.cluster.as_str().into(),
        service: stats.service.as_str().into(),
        issued: sum.issued,
        ok: sum.ok,
        error: sum.error,
        in_progress: sum.in_progress,
        dropped: stats.dropped,
        interval_ms: stats.window.map(|window| u64::try_from(window.as_millis()).unwrap_or(u64::MAX)),
        localities: stats
            .localities
            .iter()
            .map(|at| LocalityLoad {
                region: (&at.locality.region).into(),
                zone: (&at.locality.zone).into(),
                sub_zone: (&at.locality.sub_zone).into(),
                priority: at.priority,
                issued: at.load.issued,
                ok: at.load.ok,
                error: at.load.error,
                in_progress: at.load.in_progress,
            })
            .collect(),
    }
}
