//! The configuration of a client machine: node, types, time-outs, dialect, limits.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use crate::message::{Node, feature};
use crate::name::TypeUrl;
use crate::resource_type::{ResourceType, TypeRegistry};

/// What a client machine is to be. Cheap to clone.
///
/// ```
/// use xds_machine::client::Config;
/// use xds_machine::message::Node;
///
/// let config = Config::new(Node::new("sidecar~10.0.0.1")).with_existence_timeout(None);
/// ```
#[derive(Clone, Debug)]
pub struct Config(Arc<Settings>);

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    pub(super) id: u64,
    pub(super) node: Arc<Node>,
    pub(super) types: TypeRegistry,
    pub(super) existence_timeout: Option<Duration>,
    pub(super) transient_timeout: bool,
    pub(super) data_errors: DataErrors,
    pub(super) ttl: bool,
    pub(super) limits: Limits,
    pub(super) quirks: Quirks,
}

/// Where dialects differ.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Quirks {
    pub(super) node_on_every_request: bool,
    pub(super) explicit_wildcard: bool,
    pub(super) duplicates_allowed: bool,
    pub(super) bare_nacks: bool,
    pub(super) refetch_by_leaving: bool,
    pub(super) on_demand: Vec<TypeUrl>,
}

impl Config {
    /// The defaults, for this node. Adds to its client features that resources may be wrapped and have a TTL, which
    /// the machine supports.
    pub fn new(mut node: Node) -> Self {
        for feature in [feature::WRAPPER[0], feature::TTL] {
            if !node.has_feature(feature) {
                node.client_features.push(feature.into());
            }
        }
        Self(Arc::new(Settings {
            id: 0,
            node: Arc::new(node),
            types: TypeRegistry::default(),
            existence_timeout: Some(Duration::from_secs(15)),
            transient_timeout: false,
            data_errors: DataErrors::default(),
            ttl: true,
            limits: Limits::default(),
            quirks: Quirks::default(),
        }))
    }

    /// Which client this is, where there are several: updates and verdicts say it, and no client takes the verdict of
    /// another's update. Default 0.
    #[must_use]
    pub fn with_id(mut self, id: u64) -> Self {
        self.settings_mut().id = id;
        self
    }

    /// Which types are full state, have a legacy wildcard, and so on. Default: those of the xDS API.
    #[must_use]
    pub fn with_types(mut self, types: TypeRegistry) -> Self {
        self.settings_mut().types = types;
        self
    }

    /// How long after its first request was sent a resource that did not come is taken not to exist (gRFC A57).
    /// `None`: never. Default: 15 s, as xds_protocol.rst recommends.
    #[must_use]
    pub fn with_existence_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.settings_mut().existence_timeout = timeout;
        self
    }

    /// That a resource did not come in time says nothing of whether it exists: it is an error
    /// ([`Action::Errors`](super::Action::Errors), UNAVAILABLE), and not [`Action::DoesNotExist`](super::Action::DoesNotExist). For
    /// a server that reports what does not exist, as gRFC A88's `resource_timer_is_transient_error`; that has a time-out
    /// of 30 s.
    #[must_use]
    pub fn with_transient_timeout(mut self) -> Self {
        self.settings_mut().transient_timeout = true;
        self
    }

    /// What becomes of what is held when the server deletes it, or says that something is wrong with it. Default:
    /// [`DataErrors::Delete`].
    #[must_use]
    pub fn with_data_errors(mut self, data_errors: DataErrors) -> Self {
        self.settings_mut().data_errors = data_errors;
        self
    }

    /// Does without TTLs: the node says nothing of them, and those that come are ignored.
    #[must_use]
    pub fn without_ttl(mut self) -> Self {
        let settings = self.settings_mut();
        settings.ttl = false;
        Arc::make_mut(&mut settings.node).client_features.retain(|feature| feature != feature::TTL);
        self
    }

    /// What a server may make the machine hold.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.settings_mut().limits = limits;
        self
    }

    /// The limits that are set, a dialect's among them: a caller that changes some of them keeps the others.
    ///
    /// ```
    /// use xds_machine::client::{Config, Dialect, Limits};
    /// use xds_machine::message::Node;
    ///
    /// let config = Config::new(Node::new("example")).with_dialect(Dialect::Grpc);
    /// let limits = Limits { error_bytes: 100, ..config.limits().clone() };
    /// assert_eq!(limits.responses_per_stream, 1, "the dialect set this limit");
    /// let config = config.with_limits(limits);
    /// assert_eq!(config.limits().error_bytes, 100);
    /// ```
    pub fn limits(&self) -> &Limits {
        &self.settings().limits
    }

    /// Speaks as a real client does, or as a real server needs it: sets what [`Dialect`] says, and leaves the rest.
    #[must_use]
    pub fn with_dialect(self, dialect: Dialect) -> Self {
        match dialect {
            Dialect::Spec => self,
            Dialect::Envoy => self.with_node_on_every_request(),
            Dialect::Grpc => {
                let limits = Limits { responses_per_stream: 1, ..self.settings().limits.clone() };
                self.with_limits(limits).with_explicit_wildcard().with_duplicates_allowed().without_ttl()
            }
            Dialect::Istio => self.with_bare_nacks().with_refetch_by_leaving(),
        }
    }

    /// Sends the node with every request, and not just with the first of a stream.
    #[must_use]
    pub fn with_node_on_every_request(mut self) -> Self {
        self.settings_mut().quirks.node_on_every_request = true;
        self
    }

    /// Always says `*` for everything, and never an empty list, whatever the type.
    #[must_use]
    pub fn with_explicit_wildcard(mut self) -> Self {
        self.settings_mut().quirks.explicit_wildcard = true;
        self
    }

    /// Of a resource that is in a response twice the last counts. Without it the response is rejected
    /// (xds_protocol.rst, "Duplicate Resource Names").
    #[must_use]
    pub fn with_duplicates_allowed(mut self) -> Self {
        self.settings_mut().quirks.duplicates_allowed = true;
        self
    }

    /// Says nothing new in a NACK (SotW): what is wanted otherwise than before goes in a request of its own after it,
    /// for servers that do not read the names of a NACK. (Delta never does.)
    #[must_use]
    pub fn with_bare_nacks(mut self) -> Self {
        self.settings_mut().quirks.bare_nacks = true;
        self
    }

    /// Asks again ([`ResourcesMut::refetch`](super::ResourcesMut::refetch)) by unsubscribing and then subscribing (delta), for
    /// servers that do not answer a subscription to what they have sent.
    #[must_use]
    pub fn with_refetch_by_leaving(mut self) -> Self {
        self.settings_mut().quirks.refetch_by_leaving = true;
        self
    }

    /// Types that every stream asks for, be it for nothing: with no name wanted, their first request subscribes to `*`
    /// and unsubscribes from it (delta). For an istiod that loads on demand, which is to know of the type before the
    /// first name; a request that says nothing would ask for everything.
    #[must_use]
    pub fn with_on_demand(mut self, types: impl IntoIterator<Item = impl Into<TypeUrl>>) -> Self {
        self.settings_mut().quirks.on_demand = types.into_iter().map(Into::into).collect();
        self
    }

    fn settings_mut(&mut self) -> &mut Settings {
        Arc::make_mut(&mut self.0)
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.0
    }
}

impl Settings {
    /// What is to be known of a type.
    pub(super) fn resource_type(&self, type_url: &TypeUrl) -> ResourceType {
        let resource_type = self.types.get(type_url);
        if self.quirks.explicit_wildcard { resource_type.with_legacy_wildcard(false) } else { resource_type }
    }
}

/// What a client speaks: presets of what is not the same everywhere.
///
#[doc = include_str!("../dialects.md")]
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Dialect {
    /// What the specification says, and the most careful where it says nothing.
    #[default]
    Spec,
    /// Speaks as an Envoy does: the node goes with every request.
    Envoy,
    /// Speaks as a gRPC channel does: one response at a time, the explicit wildcard, no TTLs.
    Grpc,
    /// Speaks to an istiod: a NACK says nothing new, and asking again leaves first.
    Istio,
}

impl fmt::Display for Dialect {
    /// The name by which people know it, in lower case.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spec => "spec",
            Self::Envoy => "envoy",
            Self::Grpc => "grpc",
            Self::Istio => "istio",
        })
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

/// What becomes of what is held of a resource when there is a data error of it: the server deletes it, or reports that it
/// does not exist (NOT_FOUND) or is not for this client (PERMISSION_DENIED), or what it sends instead is rejected.
///
/// Transient errors, that is all others that a server reports, never touch what is held. More ways may come.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DataErrors {
    /// What does not exist any more is removed; anything else leaves what is held. This is what xds_protocol.rst says.
    #[default]
    Delete,
    /// It stays, whatever the server says: gRFC A88 without `fail_on_data_errors`, and the `ignore_resource_deletion` of
    /// gRFC A53. For a server that may lose its resources by mistake.
    Keep,
    /// It is removed, whatever the error is: gRFC A88 with `fail_on_data_errors`. Who rejects a resource drops what it had
    /// of it ([`Update::drops_rejected`](super::Update::drops_rejected)).
    Drop,
}

/// What a server may make a client machine hold. An honest mesh of 100,000 resources meets none of these.
///
/// Write `Limits { .., ..Limits::default() }`: a limit may be added in any release, and no code that is written so breaks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Responses of one type that wait for a verdict or for their answer to be sent. Default 8. The caller stops
    /// reading there: [`Client::wants_response`](super::Client::wants_response).
    pub waiting_responses: usize,
    /// Responses of all types that wait for a verdict. Default: no limit besides. With 1 the next is read when the
    /// application is done with the last, as gRPC does.
    pub responses_per_stream: usize,
    /// Resources, removed names and errors in one response. Default 200,000. More are a NACK.
    pub resources_per_response: usize,
    /// Resources of one type that are held by the wildcard: names that are subscribed to are the application's own
    /// measure. Default 1,000,000. A response with which there would be more is a NACK.
    pub resources_per_type: usize,
    /// Bytes of a nonce. Default 1,024. A longer one can't be echoed: the stream must end.
    pub nonce_bytes: usize,
    /// Bytes of a version. Default 4,096. A longer one is a NACK.
    pub version_bytes: usize,
    /// Bytes of the message in `error_detail`. Default 4,096; longer messages are cut.
    pub error_bytes: usize,
    /// Names that were announced on a stream and are no longer wanted, which SotW has to remember: as many as are
    /// wanted, and at least this. Default 10,000. Beyond it every name that is subscribed to is announced in the
    /// careful way (gone, then wanted).
    pub departed_names: usize,
    /// Actions that wait to be polled. Default 1,024.
    pub waiting_actions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            waiting_responses: 8,
            responses_per_stream: usize::MAX,
            resources_per_response: 200_000,
            resources_per_type: 1_000_000,
            nonce_bytes: 1024,
            version_bytes: 4096,
            error_bytes: 4096,
            departed_names: 10_000,
            waiting_actions: 1024,
        }
    }
}
