//! The selection of a server, as a reporter has read it.

use alloc::collections::BTreeSet;
use core::time::Duration;

use super::config::Settings;
use super::excess::Excess;
use super::message::Response;
use crate::error::PeerMisbehaved;
use crate::name::ResourceName;

/// The clusters, interval and granularity of the last response.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Wanted {
    clusters: Clusters,
    pub(super) interval: Duration,
    pub(super) endpoints: bool,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Clusters {
    All,
    Named(BTreeSet<ResourceName>),
}

impl Wanted {
    /// Reads a response. A hostile interval becomes the floor or the cap (R-LRS-05).
    pub(super) fn read(response: Response, settings: &Settings) -> Result<Self, PeerMisbehaved> {
        let check = |what, count, limit| {
            if count > limit { Err(PeerMisbehaved::TooMuchLoad { what, count, limit }) } else { Ok(()) }
        };
        let bytes = response.clusters.iter().map(|name| name.as_str().len()).sum();
        check(Excess::Clusters, response.clusters.len(), settings.limits.selected)?;
        check(Excess::NameBytes, bytes, settings.limits.selected_bytes)?;
        // If both are set, all clusters are selected (R-LRS-06).
        let clusters = match response.send_all_clusters {
            true => Clusters::All,
            false => Clusters::Named(response.clusters.into_iter().collect()),
        };
        let interval = response.interval.map_or(Duration::ZERO, super::message::Interval::to_duration);
        let interval = interval.min(settings.cap).max(settings.floor);
        Ok(Self { clusters, interval, endpoints: response.endpoint_granularity })
    }

    /// Returns whether a cluster is to be reported. An empty list names none (R-LRS-07).
    pub(super) fn wants(&self, cluster: &ResourceName) -> bool {
        match &self.clusters {
            Clusters::All => true,
            Clusters::Named(names) => names.contains(cluster),
        }
    }

    /// Returns whether there can be a cluster to report.
    pub(super) fn wants_any(&self) -> bool {
        match &self.clusters {
            Clusters::All => true,
            Clusters::Named(names) => !names.is_empty(),
        }
    }
}
