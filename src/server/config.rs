//! The configuration of a server machine: scope, dialect, limits, response size.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use super::size::Size;
use crate::name::TypeUrl;
use crate::resource_type::{ResourceType, TypeRegistry};
use crate::service::Method;

/// The configuration of a server machine. Cheap to clone: all streams of a server share one.
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
    pub(super) answer_wait: Duration,
    pub(super) removal_delay: Duration,
    pub(super) sotw_removal_delay: bool,
    pub(super) response_limit: ResponseLimit,
    pub(super) limits: Limits,
    pub(super) legacy_wildcard: LegacyWildcard,
    pub(super) named_by_initial_versions: bool,
}

/// Types for which an empty first request subscribes to the wildcard.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LegacyWildcard {
    AsTheTypeSays,
    UnknownTypesToo,
    AllTypes,
}

/// The types that a stream serves. The specification defines exactly these two scopes.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Scope {
    /// All types: an aggregated stream (ADS).
    Ads,
    /// One type: a stream of the type's own service, whose requests may omit the type URL.
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

    /// Returns the default configuration of a stream of this scope, or of a [method](Method) of a gRPC service.
    pub fn new(scope: impl Into<Scope>) -> Self {
        Self(Arc::new(Settings {
            scope: scope.into(),
            types: TypeRegistry::default(),
            control_plane: None,
            require_node: false,
            answer_wait: Duration::from_secs(1),
            removal_delay: Duration::from_secs(5),
            sotw_removal_delay: false,
            response_limit: ResponseLimit::default(),
            limits: Limits::default(),
            legacy_wildcard: LegacyWildcard::AsTheTypeSays,
            named_by_initial_versions: false,
        }))
    }

    /// Applies the settings of a [`Dialect`], which clients of a real server rely on; leaves all other settings
    /// unchanged.
    #[must_use]
    pub fn with_dialect(self, dialect: Dialect) -> Self {
        match dialect {
            Dialect::Spec => self,
            Dialect::Istio => self.with_legacy_wildcard_of_unknown_types().with_names_by_initial_versions(),
            Dialect::GoControlPlane => self.with_legacy_wildcard_of_all_types(),
        }
    }

    /// Treats an empty first request as a wildcard also for types that are not registered.
    #[must_use]
    pub fn with_legacy_wildcard_of_unknown_types(mut self) -> Self {
        self.settings_mut().legacy_wildcard = LegacyWildcard::UnknownTypesToo;
        self
    }

    /// Treats an empty first request as a wildcard for every type.
    #[must_use]
    pub fn with_legacy_wildcard_of_all_types(mut self) -> Self {
        self.settings_mut().legacy_wildcard = LegacyWildcard::AllTypes;
        self
    }

    /// Treats the names in `initial_resource_versions` as subscriptions, unless the wildcard is subscribed (delta).
    #[must_use]
    pub fn with_names_by_initial_versions(mut self) -> Self {
        self.settings_mut().named_by_initial_versions = true;
        self
    }

    /// Sets the properties of the types: full state, legacy wildcard, and so on. Default: the types of the xDS API.
    #[must_use]
    pub fn with_types(mut self, types: TypeRegistry) -> Self {
        self.settings_mut().types = types;
        self
    }

    /// Sets the `control_plane.identifier` of every response. Default: none.
    #[must_use]
    pub fn with_control_plane(mut self, identifier: impl Into<String>) -> Self {
        self.settings_mut().control_plane = Some(identifier.into().into());
        self
    }

    /// Rejects a stream whose first request has no node with an id. Default: accepted.
    #[must_use]
    pub fn with_node_required(mut self) -> Self {
        self.settings_mut().require_node = true;
        self
    }

    /// Sets how long a response may wait for the ACK or NACK of an earlier one: of its own type, or of clusters that its
    /// resources may refer to ([S-FLOW-01], [S-SOTW-65]). Default: 1 s.
    ///
    /// A client may take long for a verdict: Envoy acknowledges clusters once they are warm, which takes as long as their
    /// endpoints and health checks. Within this time one response of a type is in flight, changes are sent together
    /// after its ACK, and listeners and routes follow clusters. Afterwards a newer response takes the place of the
    /// unanswered one, whose late answer is stale: see [`Action::DropStale`](super::Action::DropStale). Zero means that
    /// no response waits for an answer; [`Duration::MAX`] means that a response waits for ever.
    ///
    /// [S-FLOW-01]: crate::manual::catalogue
    /// [S-SOTW-65]: crate::manual::catalogue
    #[must_use]
    pub fn with_answer_wait(mut self, wait: Duration) -> Self {
        self.settings_mut().answer_wait = wait;
        self
    }

    /// Sets how long pushed removals of clusters and endpoints (delta) may wait for unsent changes of listeners and
    /// routes (xds_protocol.rst, "Eventual consistency considerations"). The removals of a type share this time, which
    /// counts from the first that waits. Default: 5 s. Zero disables the delay.
    #[must_use]
    pub fn with_removal_delay(mut self, delay: Duration) -> Self {
        self.settings_mut().removal_delay = delay;
        self
    }

    /// Defers removals of clusters in SotW too. A response of a full-state type removes a resource by omission, so
    /// the old resources are first sent beside the new ones, in a response with a version of its own, and the new
    /// ones follow alone within the same bounded time. Off by default, because the first response differs from the
    /// source: a client may apply a cluster that was removed before that response was sent. A resource that the
    /// source does not remember ([`Source::previous`](super::Source::previous)) is removed at once; a
    /// [`Cache`](super::Cache) remembers a thousand changes, and nothing of a resource that changed just before its
    /// removal.
    #[must_use]
    pub fn with_sotw_removal_delay(mut self) -> Self {
        self.settings_mut().sotw_removal_delay = true;
        self
    }

    /// Limits the size of one response (delta). Default: no limit. Clients in Rust, for example, reject messages of
    /// more than 4 MiB unless configured otherwise.
    #[must_use]
    pub fn with_response_limit(mut self, response_limit: ResponseLimit) -> Self {
        self.settings_mut().response_limit = response_limit;
        self
    }

    /// Sets the limits on what a client may make the machine hold.
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

/// Presets for the clients of a real server, where servers differ.
///
#[doc = include_str!("../dialects.md")]
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Dialect {
    /// Follows the specification, and is as careful as possible where the specification is silent.
    #[default]
    Spec,
    /// Serves clients that rely on istiod.
    Istio,
    /// Serves clients that rely on go-control-plane.
    GoControlPlane,
}

impl fmt::Display for Dialect {
    /// Writes the common name of the dialect, in lower case.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spec => "spec",
            Self::Istio => "istio",
            Self::GoControlPlane => "go-control-plane",
        })
    }
}

impl Settings {
    /// Returns the properties of a type, with the legacy wildcard as configured.
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
    /// Hashes nothing: a configuration never changes during a machine's life, and a model checker hashes machines by
    /// the million.
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// The size limit of one response. The rest is sent in further responses, each after the ACK or NACK of the one
/// before (delta; a SotW response of a full-state type can't be split, and one of another type is not).
///
/// Changes that occur meanwhile follow the answer that was begun; a resource that changes before its turn may be sent
/// twice, rejected or not. Changes and removals take turns if there is no room for both. A change of a resource with a
/// TTL that had to wait at the last heartbeat is sent before everything else. Heartbeats and errors have no content and
/// do not count.
/// Write `ResponseLimit { .., ..ResponseLimit::default() }`: a field may be added in any release.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ResponseLimit {
    /// Number of resources and removed names. Default: no limit.
    pub resources: usize,
    /// Bytes of the encoded message. A larger resource is sent alone. Default: no limit.
    pub bytes: usize,
}

impl ResponseLimit {
    /// Returns whether there is any limit.
    pub(super) fn is_limited(self) -> bool {
        self != Self::default()
    }
}

impl Default for ResponseLimit {
    fn default() -> Self {
        Self { resources: usize::MAX, bytes: usize::MAX }
    }
}

/// Limits on what a client may make one stream of a server hold. A legitimate mesh of 100,000 resources reaches none
/// of them. A request of 4 MiB can grow tenfold when it is decoded, so counts are limited as well as bytes.
///
/// Write `Limits { .., ..Limits::default() }`: such code keeps compiling when a release adds a limit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Subscribed names of one type; also bounds the unsubscribed names that are kept until pending resources are
    /// sent, and those whose error was sent in SotW: with more of these the stream is closed. A request that subscribes
    /// to nothing new is not rejected. Default 100,000.
    pub names_per_type: usize,
    /// Subscribed names of all types. Default 200,000.
    pub names_per_stream: usize,
    /// Bytes of all subscribed names, and separately of all names and versions in `initial_resource_versions`.
    /// Default 32 MiB.
    pub name_bytes_per_stream: usize,
    /// Bytes of one name. Default 4 KiB.
    pub name_bytes: usize,
    /// Entries of `initial_resource_versions`. Default 200,000.
    pub initial_versions: usize,
    /// Bytes of one version in `initial_resource_versions`. Default 256.
    pub version_bytes: usize,
    /// Resource types that one stream may request. Default 64.
    pub types: usize,
    /// Bytes of a type URL. Default 256.
    pub type_url_bytes: usize,
    /// Bytes of the message of `error_detail` that are kept. Default 4,096; the rest is cut off.
    pub error_bytes: usize,
    /// Consecutive requests of one type with a nonce that no response of the stream had, after which the stream is closed
    /// with RESOURCE_EXHAUSTED. A request that changes the subscribed names does not count. No client that follows the
    /// specification meets the limit, however many requests it sends before it reads. Default 1,000.
    pub stale_requests: u32,
    /// Actions that wait to be polled; zero counts as one. Default 1,024.
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
    /// Returns whether one type may have this size, whatever the size of the others.
    pub(super) fn allow(&self, size: Size) -> bool {
        size.names <= self.names_per_type.min(self.names_per_stream) && size.bytes <= self.name_bytes_per_stream
    }
}
