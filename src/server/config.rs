use alloc::string::String;
use alloc::sync::Arc;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use super::variant::Size;
use crate::name::TypeUrl;
use crate::resource_type::Types;

/// What a server machine is to be. Cheap to clone: all streams of a server share one.
///
/// ```
/// use core::time::Duration;
/// use xds_machine::server::{Config, Limits};
/// use xds_machine::type_url;
///
/// let ads = Config::ads().with_control_plane("example");
/// let limits = Limits { names_per_type: 1_000, ..Limits::default() };
/// let clusters_only = Config::single(type_url::CLUSTER).with_limits(limits);
/// ```
#[derive(Clone, Debug)]
pub struct Config(Arc<Settings>);

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    pub(super) scope: Scope,
    pub(super) types: Types,
    pub(super) control_plane: Option<Arc<str>>,
    pub(super) require_node: bool,
    pub(super) removal_hold: Duration,
    pub(super) limits: Limits,
}

/// Which types a stream serves.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Scope {
    /// All of them: an aggregated stream (ADS).
    Ads,
    /// One: a stream of the type's own service. Requests need not say their type.
    Single(TypeUrl),
}

impl Config {
    /// For an aggregated stream.
    pub fn ads() -> Self {
        Self::new(Scope::Ads)
    }

    /// For a stream of one type's own service.
    pub fn single(type_url: impl Into<TypeUrl>) -> Self {
        Self::new(Scope::Single(type_url.into()))
    }

    fn new(scope: Scope) -> Self {
        Self(Arc::new(Settings {
            scope,
            types: Types::default(),
            control_plane: None,
            require_node: false,
            removal_hold: Duration::from_secs(5),
            limits: Limits::default(),
        }))
    }

    /// Which types are full state, have a legacy wildcard, and so on. Default: those of the xDS API.
    #[must_use]
    pub fn with_types(mut self, types: Types) -> Self {
        self.settings_mut().types = types;
        self
    }

    /// What every response says of who answers (`control_plane.identifier`). Default: nothing.
    #[must_use]
    pub fn with_control_plane(mut self, identifier: impl Into<String>) -> Self {
        self.settings_mut().control_plane = Some(identifier.into().into());
        self
    }

    /// Refuses a stream whose first request names no node (S-COM-05). Default: takes it.
    #[must_use]
    pub fn with_node_required(mut self) -> Self {
        self.settings_mut().require_node = true;
        self
    }

    /// How long pushed removals of clusters and endpoints (delta) may stay back for changes of listeners and routes
    /// that are not sent yet (xds_protocol.rst, "Eventual consistency considerations"). Default: 5 s. Zero: not at
    /// all.
    #[must_use]
    pub fn with_removal_hold(mut self, hold: Duration) -> Self {
        self.settings_mut().removal_hold = hold;
        self
    }

    /// What a client may make the machine hold.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.settings_mut().limits = limits;
        self
    }

    fn settings_mut(&mut self) -> &mut Settings {
        Arc::make_mut(&mut self.0)
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.0
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Config {}

impl Hash for Config {
    /// Nothing: a configuration never changes during a machine's life, and a model checker hashes machines by the
    /// million.
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// What a client may make one stream of a server hold. An honest mesh of 100,000 resources meets none of these. A
/// request of 4 MiB can be ten times as large once it is decoded, so counts are limited as well as bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Subscribed names of one type. Default 100,000.
    pub names_per_type: usize,
    /// Subscribed names of all types. Default 200,000.
    pub names_per_stream: usize,
    /// Bytes of all subscribed names; and apart from them, of all names and versions in `initial_resource_versions`.
    /// Default 32 MiB.
    pub name_bytes_per_stream: usize,
    /// Bytes of one name. Default 4 KiB.
    pub name_bytes: usize,
    /// Entries of `initial_resource_versions`. Default 200,000.
    pub initial_versions: usize,
    /// Bytes of a version in it. Default 256.
    pub version_bytes: usize,
    /// Resource types. Default 64.
    pub types: usize,
    /// Bytes of a type URL. Default 256.
    pub type_url_bytes: usize,
    /// Bytes of the message of `error_detail` that are kept. Default 4,096; the rest is cut off.
    pub error_bytes: usize,
    /// Stale requests of a type in a row, after which the stream is closed: the client is out of its mind. Default
    /// 1,000.
    pub stale_requests: u32,
    /// Actions that wait to be polled. Default 1,024.
    pub waiting_actions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            names_per_type: 100_000,
            names_per_stream: 200_000,
            name_bytes_per_stream: 32 << 20,
            name_bytes: 4 << 10,
            initial_versions: 200_000,
            version_bytes: 256,
            types: 64,
            type_url_bytes: 256,
            error_bytes: 4096,
            stale_requests: 1000,
            waiting_actions: 1024,
        }
    }
}

impl Limits {
    /// Whether one type may be of this size, whatever the others are.
    pub(super) fn allow(&self, size: Size) -> bool {
        size.names <= self.names_per_type.min(self.names_per_stream) && size.bytes <= self.name_bytes_per_stream
    }
}
