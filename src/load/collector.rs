//! The server's side: asks one client for its loads, and takes its reports.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use super::config::SEND_ALL_CLUSTERS;
use super::excess::Excess;
use super::message::{ClusterStats, LocalityStats, Request, Response};
use super::selection::Selection;
use super::totals::Totals;
use crate::error::{Error, Misuse, PeerMisbehaved};
use crate::message::Node;

/// The limit of waiting actions: a node, and a report.
const WAITING: usize = 2;

/// The configuration of a [`Collector`]. Cheap to clone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CollectorConfig {
    floor: Duration,
    cap: Duration,
    limits: ReportLimits,
    totals: bool,
}

/// Limits on a report. Beyond them the stream ends with RESOURCE_EXHAUSTED (R-LRS-61).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReportLimits {
    /// Entries of a report. Default: 100,000.
    pub clusters: usize,
    /// Localities of a report. Default: 200,000.
    pub localities: usize,
    /// Endpoints of a report. Default: 200,000.
    pub endpoints: usize,
    /// Named metrics of a report, of localities and endpoints. Default: 200,000.
    pub metrics: usize,
    /// Categories of dropped calls of a report. Default: 100,000.
    pub categories: usize,
    /// Bytes of all names in a report: of clusters, services, localities, endpoints, metrics and categories. Default:
    /// 16 MiB.
    pub name_bytes: usize,
    /// Clusters, localities, metrics and categories whose sums are remembered ([`Collector::totals`]); the limit is of
    /// each kind. Default: 100,000.
    pub remembered: usize,
}

impl Default for ReportLimits {
    fn default() -> Self {
        Self {
            clusters: 100_000,
            localities: 200_000,
            endpoints: 200_000,
            metrics: 200_000,
            categories: 100_000,
            name_bytes: 16 << 20,
            remembered: 100_000,
        }
    }
}

impl Default for CollectorConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl CollectorConfig {
    /// Creates the default configuration.
    pub fn new() -> Self {
        let (floor, cap) = (Duration::from_secs(1), Duration::from_secs(1_000_000));
        Self { floor, cap, limits: ReportLimits::default(), totals: true }
    }

    /// Sets the shortest interval that clients receive: a shorter interval of a selection, or zero, becomes this one.
    /// Default: 1 s. It is at least 1 ms, because an interval of zero makes Envoy 1.40 report without pause (R-LRS-51).
    #[must_use]
    pub fn with_floor(self, floor: Duration) -> Self {
        Self { floor: floor.max(Duration::from_millis(1)), ..self }
    }

    /// Sets the limits. Default: [`ReportLimits::default`].
    #[must_use]
    pub fn with_limits(self, limits: ReportLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets whether the sums of all reports are kept ([`Collector::totals`]). Default: yes.
    #[must_use]
    pub fn with_totals(self, totals: bool) -> Self {
        Self { totals, ..self }
    }
}

/// The server's side of one stream of load reports. See the [module](super).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Collector {
    config: CollectorConfig,
    node: Option<Arc<Node>>,
    selection: Option<Selection>,
    sent: Option<Response>,
    totals: Totals,
    actions: VecDeque<Action>,
    is_closed: bool,
}

/// What a driver has to do.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[must_use = "an action does nothing by itself"]
pub enum Action {
    /// The node of the client is known. Choose the client's selection now, or later (R-LRS-62).
    Node(Arc<Node>),
    /// The client sent a report. The entries are as received, but without windows of zero: an entry may occur twice
    /// ([`merge`](super::merge)), counts need not agree (R-LRS-58), and there may be clusters that were not selected
    /// (R-LRS-53).
    Report(Vec<ClusterStats>),
    /// Nothing is selected any more: end the stream with OK, because no response can say so (R-LRS-55).
    Close,
}

impl Collector {
    /// Creates the machine of a new stream.
    pub fn new(config: CollectorConfig) -> Self {
        Self {
            config,
            node: None,
            selection: None,
            sent: None,
            totals: Totals::new(),
            actions: VecDeque::new(),
            is_closed: false,
        }
    }

    /// Sets the selection of the client; `None` selects nothing. If the resulting response equals the last one sent,
    /// nothing is sent, because each response starts Envoy's timer anew (R-LRS-52).
    pub fn set_selection(&mut self, selection: Option<Selection>) {
        self.selection = selection;
        // No response can say that nothing is selected: clients would take an empty list for all clusters.
        if self.sent.is_some() && self.response().is_none() && !self.is_closed {
            self.is_closed = true;
            self.actions.push_back(Action::Close);
        }
    }

    /// Takes a request. The first one has the node; the nodes of later ones are ignored (R-LRS-53).
    ///
    /// # Errors
    ///
    /// [`Error::Peer`] if the report exceeds a limit; [`Misuse::ActionsWaiting`] if actions still wait to be polled. In
    /// both cases the machine is unchanged.
    pub fn handle_request(&mut self, request: Request) -> Result<(), Error> {
        if !self.actions.is_empty() {
            return Err(Misuse::ActionsWaiting { limit: WAITING }.into());
        }
        let Request { node, mut clusters } = request;
        check(&clusters, &self.config.limits)?;
        // A window of zero counts as none, so that no application divides by it (R-LRS-58).
        for stats in &mut clusters {
            stats.window = stats.window.filter(|window| !window.is_zero());
        }
        if self.config.totals {
            self.totals.add(&clusters, self.config.limits.remembered)?;
        }
        if self.node.is_none() {
            let node = self.node.insert(node.unwrap_or_default()).clone();
            self.actions.push_back(Action::Node(node));
        }
        if !clusters.is_empty() {
            self.actions.push_back(Action::Report(clusters));
        }
        Ok(())
    }

    /// Returns the next action.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Returns the response to send. There is none before the client has sent its node (R-LRS-50), and none that equals
    /// the last response sent.
    pub fn poll_transmit(&mut self) -> Option<Response> {
        let response = self.response().filter(|response| self.sent.as_ref() != Some(response))?;
        Some(self.sent.insert(response).clone())
    }

    /// Returns the client's node, once it is known. Empty if the client sent none.
    pub fn node(&self) -> Option<&Arc<Node>> {
        self.node.as_ref()
    }

    /// Returns the sums of all reports of the stream; empty [without](CollectorConfig::with_totals) totals.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns the response for this client, whether or not it was sent.
    fn response(&self) -> Option<Response> {
        let (node, selection) = (self.node.as_ref()?, self.selection.as_ref()?);
        if self.is_closed {
            return None;
        }
        selection.response(node.has_feature(SEND_ALL_CLUSTERS), self.config.floor, self.config.cap)
    }
}

impl Hash for Collector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { config: _, node, selection, sent, totals, actions, is_closed } = self;
        (node, selection, sent, totals, actions, is_closed).hash(state);
    }
}

fn check(report: &[ClusterStats], limits: &ReportLimits) -> Result<(), PeerMisbehaved> {
    let localities = || report.iter().flat_map(|stats| &stats.localities);
    let endpoints = || localities().flat_map(|at| &at.endpoints);
    let loads = || localities().map(|at| &at.load).chain(endpoints().map(|endpoint| &endpoint.load));
    let metrics = || loads().flat_map(|load| &load.metrics);
    let categories = || report.iter().flat_map(|stats| &stats.drops);
    let of_locality = |at: &LocalityStats| {
        let locality = &at.locality;
        locality.region.len() + locality.zone.len() + locality.sub_zone.len()
    };
    let of_cluster = |stats: &ClusterStats| stats.cluster.as_str().len() + stats.service.as_str().len();
    let bytes = report.iter().map(of_cluster).sum::<usize>()
        + localities().map(of_locality).sum::<usize>()
        + endpoints().map(|endpoint| endpoint.address.len()).sum::<usize>()
        + metrics().map(|named| named.name.len()).sum::<usize>()
        + categories().map(|drops| drops.category.len()).sum::<usize>();
    for (what, count, limit) in [
        (Excess::Clusters, report.len(), limits.clusters),
        (Excess::Localities, localities().count(), limits.localities),
        (Excess::Endpoints, endpoints().count(), limits.endpoints),
        (Excess::Metrics, metrics().count(), limits.metrics),
        (Excess::Categories, categories().count(), limits.categories),
        (Excess::NameBytes, bytes, limits.name_bytes),
    ] {
        if count > limit {
            return Err(PeerMisbehaved::TooMuchLoad { what, count, limit });
        }
    }
    Ok(())
}
