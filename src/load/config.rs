//! The configuration of a reporter: node, intervals, dialect, limits.

use alloc::sync::Arc;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use crate::message::Node;

/// The client feature by which a client declares that it supports `send_all_clusters`.
pub const SEND_ALL_CLUSTERS: &str = "envoy.lrs.supports_send_all_clusters";

/// The configuration of a [`Reporter`](super::Reporter). Cheap to clone.
///
/// ```
/// use xds_machine::load::{Config, Dialect};
/// use xds_machine::message::Node;
///
/// let config = Config::new(Node::new("n")).with_dialect(Dialect::Grpc).with_quiet(false);
/// ```
#[derive(Clone, Debug)]
pub struct Config(Arc<Settings>);

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Settings {
    pub(super) node: Arc<Node>,
    pub(super) floor: Duration,
    pub(super) cap: Duration,
    pub(super) limits: Limits,
    pub(super) quirks: Quirks,
}

/// Settings in which implementations differ.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Quirks {
    pub(super) node_on_every_request: bool,
    pub(super) count_before_asked: bool,
    pub(super) idle_localities: bool,
    pub(super) quiet: bool,
    pub(super) keep_selection: bool,
    pub(super) metrics_by_name: bool,
}

/// An implementation whose behaviour a reporter imitates.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Dialect {
    /// The behaviour that lrs.proto defines; where lrs.proto is silent, the behaviour that loses least.
    #[default]
    Spec,
    /// Envoy: the node in every message; a new stream goes on with the selection of the last one, and its first message
    /// has stats; utilizations are named metrics.
    Envoy,
    /// gRPC (C-core): loads from before their cluster was selected are reported; idle localities are listed; after one
    /// report of zeros nothing is sent until something happens.
    Grpc,
}

/// Limits on what a reporter counts, because clusters, localities and the names of metrics come from peers.
/// Write `Limits { .., ..Limits::default() }`: a field may be added in any release.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Clusters whose loads are counted. Default: 100,000.
    pub clusters: usize,
    /// Localities of one cluster in a window. Default: 10,000.
    pub localities: usize,
    /// Endpoints of one locality in a window. Default: 10,000.
    pub endpoints: usize,
    /// Names of metrics of one locality, or of one endpoint, in a window; further ones are ignored. Default: 100.
    pub metrics: usize,
    /// Categories of dropped calls of one cluster in a window. Default: 1,000.
    pub categories: usize,
    /// Names of clusters in a selection. Default: 100,000.
    pub selected: usize,
    /// Bytes of the names in a selection. Default: 16 MiB.
    pub selected_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clusters: 100_000,
            localities: 10_000,
            endpoints: 10_000,
            metrics: 100,
            categories: 1_000,
            selected: 100_000,
            selected_bytes: 16 << 20,
        }
    }
}

impl Config {
    /// Creates the default configuration for the node of the xDS client, and adds the feature [`SEND_ALL_CLUSTERS`] to
    /// the node, unless the node has it (R-LRS-01).
    pub fn new(mut node: Node) -> Self {
        if !node.has_feature(SEND_ALL_CLUSTERS) {
            node.client_features.push(SEND_ALL_CLUSTERS.into());
        }
        Self(Arc::new(Settings {
            node: Arc::new(node),
            floor: Duration::from_secs(1),
            cap: Duration::from_secs(1_000_000),
            limits: Limits::default(),
            quirks: Quirks::default(),
        }))
    }

    /// Sets all settings in which implementations differ to those of one implementation.
    #[must_use]
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.settings_mut().quirks = match dialect {
            Dialect::Spec => Quirks::default(),
            Dialect::Envoy => {
                Quirks { node_on_every_request: true, keep_selection: true, metrics_by_name: true, ..Quirks::default() }
            }
            Dialect::Grpc => {
                Quirks { count_before_asked: true, idle_localities: true, quiet: true, ..Quirks::default() }
            }
        };
        self
    }

    /// Sets the shortest interval between two reports, which applies if the server sends none, a shorter one, zero, or
    /// a negative one. Default: 1 s, as in C-core (R-LRS-05).
    #[must_use]
    pub fn with_floor(mut self, floor: Duration) -> Self {
        self.settings_mut().floor = floor;
        self
    }

    /// Sets the longest interval between two reports. Default: 10^6 s.
    #[must_use]
    pub fn with_cap(mut self, cap: Duration) -> Self {
        self.settings_mut().cap = cap;
        self
    }

    /// Sets the limits. Default: [`Limits::default`].
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.settings_mut().limits = limits;
        self
    }

    /// Sets whether every message has the node. Default: only the first one of a stream (R-LRS-03).
    #[must_use]
    pub fn with_node_on_every_request(mut self, every: bool) -> Self {
        self.settings_mut().quirks.node_on_every_request = every;
        self
    }

    /// Sets whether loads from before a cluster was selected are reported. Default: no; the first window of a cluster
    /// begins when the cluster is selected (lrs.proto, `load_reporting_interval`; R-LRS-10).
    #[must_use]
    pub fn with_count_before_asked(mut self, count: bool) -> Self {
        self.settings_mut().quirks.count_before_asked = count;
        self
    }

    /// Sets whether a locality in which nothing happened is listed once more. Default: no (R-LRS-15).
    #[must_use]
    pub fn with_idle_localities(mut self, list: bool) -> Self {
        self.settings_mut().quirks.idle_localities = list;
        self
    }

    /// Sets whether a reporter sends nothing after one report in which nothing happened, until something happens.
    /// Default: no; each interval has its report (R-LRS-16).
    #[must_use]
    pub fn with_quiet(mut self, quiet: bool) -> Self {
        self.settings_mut().quirks.quiet = quiet;
        self
    }

    /// Sets whether a new stream uses the selection of the last one until the server answers. Default: no
    /// (R-LRS-21).
    #[must_use]
    pub fn with_kept_selection(mut self, keep: bool) -> Self {
        self.settings_mut().quirks.keep_selection = keep;
        self
    }

    /// Sets whether `cpu_utilization`, `mem_utilization` and `application_utilization` are sent as named metrics.
    /// Default: no; they have fields of their own (R-LRS-28).
    #[must_use]
    pub fn with_metrics_by_name(mut self, by_name: bool) -> Self {
        self.settings_mut().quirks.metrics_by_name = by_name;
        self
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.0
    }

    fn settings_mut(&mut self) -> &mut Settings {
        Arc::make_mut(&mut self.0)
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Config {}

impl Hash for Config {
    /// Hashes nothing: a configuration never changes during a machine's life.
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
