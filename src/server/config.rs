//! The configuration of a server machine: scope, dialect, limits, portions, retries.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use super::size::Size;
use crate::name::TypeUrl;
use crate::resource_type::{ResourceType, TypeRegistry};
use crate::service::Method;

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
    pub(super) types: TypeRegistry,
    pub(super) control_plane: Option<Arc<str>>,
    pub(super) require_node: bool,
    pub(super) removal_delay: Duration,
    pub(super) sotw_removal_delay: bool,
    pub(super) response_limit: ResponseLimit,
    pub(super) retry: Option<Retry>,
    pub(super) limits: Limits,
    pub(super) legacy_wildcard: LegacyWildcard,
    pub(super) named_by_initial_versions: bool,
}

/// Which types an empty first request means everything of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LegacyWildcard {
    AsTheTypeSays,
    UnknownTypesToo,
    AllTypes,
}

/// Which types a stream serves. The specification has these two, and no third.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Scope {
    /// All of them: an aggregated stream (ADS).
    Ads,
    /// One: a stream of the type's own service. Requests need not say their type.
    Single(TypeUrl),
}

impl From<Method> for Scope {
    fn from(method: Method) -> Self {
        method.type_url.map_or(Self::Ads, |type_url| Self::Single(type_url.into()))
    }
}

impl Config {
    /// Returns the default configuration of an aggregated stream (ADS).
    pub fn ads() -> Self {
        Self::new(Scope::Ads)
    }

    /// Returns the default configuration of a stream of one type's own service.
    pub fn single(type_url: impl Into<TypeUrl>) -> Self {
        Self::new(Scope::Single(type_url.into()))
    }

    /// For a stream of this scope, or of a [method](Method) of a gRPC service.
    pub fn new(scope: impl Into<Scope>) -> Self {
        Self(Arc::new(Settings {
            scope: scope.into(),
            types: TypeRegistry::default(),
            control_plane: None,
            require_node: false,
            removal_delay: Duration::from_secs(5),
            sotw_removal_delay: false,
            response_limit: ResponseLimit::default(),
            retry: None,
            limits: Limits::default(),
            legacy_wildcard: LegacyWildcard::AsTheTypeSays,
            named_by_initial_versions: false,
        }))
    }

    /// Behaves as clients of a real server need it: sets what [`Dialect`] says, and leaves the rest.
    #[must_use]
    pub fn with_dialect(self, dialect: Dialect) -> Self {
        match dialect {
            Dialect::Spec => self,
            Dialect::Istio => self.with_legacy_wildcard_of_unknown_types().with_names_by_initial_versions(),
            Dialect::GoControlPlane => self.with_legacy_wildcard_of_all_types(),
        }
    }

    /// Takes an empty first request for everything also of types that the configuration does not know.
    #[must_use]
    pub fn with_legacy_wildcard_of_unknown_types(mut self) -> Self {
        self.settings_mut().legacy_wildcard = LegacyWildcard::UnknownTypesToo;
        self
    }

    /// Takes an empty first request for everything of whatever type.
    #[must_use]
    pub fn with_legacy_wildcard_of_all_types(mut self) -> Self {
        self.settings_mut().legacy_wildcard = LegacyWildcard::AllTypes;
        self
    }

    /// Takes the names in `initial_resource_versions` for subscriptions, unless everything is wanted (delta).
    #[must_use]
    pub fn with_names_by_initial_versions(mut self) -> Self {
        self.settings_mut().named_by_initial_versions = true;
        self
    }

    /// Which types are full state, have a legacy wildcard, and so on. Default: those of the xDS API.
    #[must_use]
    pub fn with_types(mut self, types: TypeRegistry) -> Self {
        self.settings_mut().types = types;
        self
    }

    /// What every response says of who answers (`control_plane.identifier`). Default: nothing.
    #[must_use]
    pub fn with_control_plane(mut self, identifier: impl Into<String>) -> Self {
        self.settings_mut().control_plane = Some(identifier.into().into());
        self
    }

    /// Refuses a stream whose first request names no node. Default: takes it.
    #[must_use]
    pub fn with_node_required(mut self) -> Self {
        self.settings_mut().require_node = true;
        self
    }

    /// How long pushed removals of clusters and endpoints (delta) may stay back for changes of listeners and routes
    /// that are not sent yet (xds_protocol.rst, "Eventual consistency considerations"). Default: 5 s. Zero: not at
    /// all.
    #[must_use]
    pub fn with_removal_delay(mut self, hold: Duration) -> Self {
        self.settings_mut().removal_delay = hold;
        self
    }

    /// Holds removals of clusters back in SotW too. A response of a full-state type says what is gone by leaving it out:
    /// so the old goes beside the new first, with a version of its own, and then the new alone, in the same bounded
    /// time. That is off by default, for such a response is not what there is: a client may apply a cluster that was
    /// removed before it came. What the source does not remember ([`Source::previous`](super::Source::previous)) is gone at
    /// once; a [`Cache`](super::Cache) remembers a thousand changes, and of a resource that changed just before it was
    /// removed nothing.
    #[must_use]
    pub fn with_sotw_removal_delay(mut self) -> Self {
        self.settings_mut().sotw_removal_delay = true;
        self
    }

    /// How much one response may hold (delta). Default: any amount. A client in Rust, say, refuses messages of more than
    /// 4 MiB unless it is told otherwise.
    #[must_use]
    pub fn with_response_limit(mut self, response_limit: ResponseLimit) -> Self {
        self.settings_mut().response_limit = response_limit;
        self
    }

    /// Sends again what was rejected, though it did not change: for clients that reject for reasons that pass. Default:
    /// never.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.settings_mut().retry = Some(retry);
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

/// Whose clients are served: presets of what is not the same everywhere.
///
#[doc = include_str!("../dialects.md")]
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Dialect {
    /// What the specification says, and the most careful where it says nothing.
    #[default]
    Spec,
    /// Serves clients that are used to an istiod.
    Istio,
    /// Serves clients that are used to a go-control-plane.
    GoControlPlane,
}

impl fmt::Display for Dialect {
    /// The name by which people know it, in lower case.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spec => "spec",
            Self::Istio => "istio",
            Self::GoControlPlane => "go-control-plane",
        })
    }
}

impl Settings {
    /// What is to be known of a type.
    pub(super) fn resource_type(&self, type_url: &TypeUrl) -> ResourceType {
        let resource_type = self.types.get(type_url);
        match self.legacy_wildcard {
            LegacyWildcard::AsTheTypeSays => resource_type,
            LegacyWildcard::UnknownTypesToo if self.types.contains(type_url) => resource_type,
            LegacyWildcard::UnknownTypesToo | LegacyWildcard::AllTypes => resource_type.with_legacy_wildcard(true),
        }
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

/// How much one response may hold. What is more goes in further responses, each when the one before is acknowledged
/// (delta; a SotW response of a full-state type can't be split, and of others is not).
///
/// Changes that come meanwhile go after what was begun; what changes before its turn may go twice, rejected or not.
/// Heartbeats and errors, which have no content, count for nothing. Write `ResponseLimit { .., ..ResponseLimit::default() }`: a field
/// may be added in any release.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ResponseLimit {
    /// Resources and removed names. Default: no limit.
    pub resources: usize,
    /// Bytes of the encoded message. A resource that is larger goes alone. Default: no limit.
    pub bytes: usize,
}

impl Default for ResponseLimit {
    fn default() -> Self {
        Self { resources: usize::MAX, bytes: usize::MAX }
    }
}

/// Whether and when a rejected response is sent again, though nothing changed. Both are always needed, so no field will be
/// added.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Retry {
    /// The time from the NACK to the retry.
    pub after: Duration,
    /// The number of retries of one rejection. New content that is rejected counts anew.
    pub times: u32,
}

/// What a client may make one stream of a server hold. An honest mesh of 100,000 resources meets none of these. A
/// request of 4 MiB can be ten times as large once it is decoded, so counts are limited as well as bytes.
///
/// Write `Limits { .., ..Limits::default() }`: a limit may be added in any release, and no code that is written so breaks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Subscribed names of one type, and those that left and are kept until what waits was sent. A request that asks for no
    /// more than before is not refused. Default 100,000.
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
    /// Resource types that one stream may ask for. Default 64.
    pub types: usize,
    /// Bytes of a type URL. Default 256.
    pub type_url_bytes: usize,
    /// Bytes of the message of `error_detail` that are kept. Default 4,096; the rest is cut off.
    pub error_bytes: usize,
    /// Consecutive stale requests of one type after which the stream is closed with RESOURCE_EXHAUSTED. Default 1,000.
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
