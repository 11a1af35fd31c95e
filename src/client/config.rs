//! The configuration of a client machine: node, types, time-outs, dialect, limits.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use crate::message::{Node, feature};
use crate::name::TypeUrl;
use crate::resource_type::{ResourceType, TypeRegistry};

/// The configuration of a client machine. Cheap to clone.
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

/// Settings in which dialects differ.
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
    /// Creates the default configuration for this node. Adds the client features for wrapped resources and for TTLs,
    /// which the machine supports, to the node.
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

    /// Returns the node as requests carry it, with the client features of the machine.
    pub fn node(&self) -> &Arc<Node> {
        &self.settings().node
    }

    /// Sets the ID of this client, where there are several: updates and verdicts carry the ID, and no client takes a
    /// verdict on the update of another. Default 0.
    #[must_use]
    pub fn with_id(mut self, id: u64) -> Self {
        self.settings_mut().id = id;
        self
    }

    /// Sets the resource types, with properties such as full state and the legacy wildcard. Default: the types of the
    /// xDS API.
    #[must_use]
    pub fn with_types(mut self, types: TypeRegistry) -> Self {
        self.settings_mut().types = types;
        self
    }

    /// Sets the time after which a resource that was not received is taken not to exist, counted from the sending of
    /// its first request (gRFC A57). `None` disables the time-out. Default: 15 s, as xds_protocol.rst recommends.
    #[must_use]
    pub fn with_existence_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.settings_mut().existence_timeout = timeout;
        self
    }

    /// Treats the existence time-out as an error ([`Action::Errors`](super::Action::Errors), UNAVAILABLE) instead of as
    /// [`Action::DoesNotExist`](super::Action::DoesNotExist). Meant for a server that reports nonexistent resources, as
    /// gRFC A88's `resource_timer_is_transient_error`, which uses a time-out of 30 s.
    #[must_use]
    pub fn with_transient_timeout(mut self) -> Self {
        self.settings_mut().transient_timeout = true;
        self
    }

    /// Sets how held resources are treated when the server deletes them or reports errors of them. Default:
    /// [`DataErrors::Delete`].
    #[must_use]
    pub fn with_data_errors(mut self, data_errors: DataErrors) -> Self {
        self.settings_mut().data_errors = data_errors;
        self
    }

    /// Disables TTLs: the node does not announce support for them, and received TTLs are ignored.
    #[must_use]
    pub fn without_ttl(mut self) -> Self {
        let settings = self.settings_mut();
        settings.ttl = false;
        Arc::make_mut(&mut settings.node).client_features.retain(|feature| feature != feature::TTL);
        self
    }

    /// Sets the limits on what a server may make the machine hold. A limit with which nothing would ever be received
    /// counts as 1 where it is 0 ([`Limits`]).
    #[must_use]
    pub fn with_limits(mut self, mut limits: Limits) -> Self {
        for limit in [
            &mut limits.waiting_responses,
            &mut limits.responses_per_stream,
            &mut limits.resources_per_response,
            &mut limits.resources_per_type,
            &mut limits.nonce_bytes,
            &mut limits.waiting_actions,
        ] {
            *limit = (*limit).max(1);
        }
        self.settings_mut().limits = limits;
        self
    }

    /// Returns the limits, including those of a dialect, so that a caller can change some and keep the others.
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

    /// Adopts the behaviour of a real client, or the behaviour that a real server needs: changes the settings listed at
    /// [`Dialect`], and leaves the rest.
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

    /// Sends the node with every request, instead of only with the first of a stream.
    #[must_use]
    pub fn with_node_on_every_request(mut self) -> Self {
        self.settings_mut().quirks.node_on_every_request = true;
        self
    }

    /// Always sends `*` as the wildcard, and never an empty list, whatever the type.
    #[must_use]
    pub fn with_explicit_wildcard(mut self) -> Self {
        self.settings_mut().quirks.explicit_wildcard = true;
        self
    }

    /// Accepts a resource that is in a response twice, and uses the last occurrence. By default, such a response is
    /// rejected (xds_protocol.rst, "Duplicate Resource Names").
    #[must_use]
    pub fn with_duplicates_allowed(mut self) -> Self {
        self.settings_mut().quirks.duplicates_allowed = true;
        self
    }

    /// Repeats the last names in a NACK (SotW), and sends changes of the subscribed names in a separate request after
    /// it, for servers that do not read the names of a NACK. (Delta never sends changes in a NACK.)
    #[must_use]
    pub fn with_bare_nacks(mut self) -> Self {
        self.settings_mut().quirks.bare_nacks = true;
        self
    }

    /// Makes a [refetch](super::ResourcesMut::refetch) unsubscribe and then subscribe (delta), for servers that do not
    /// answer a subscription to a resource that they have sent.
    #[must_use]
    pub fn with_refetch_by_leaving(mut self) -> Self {
        self.settings_mut().quirks.refetch_by_leaving = true;
        self
    }

    /// Sets the types that are requested on every stream, even without subscribed names: the first request then
    /// subscribes to `*` and unsubscribes from it (delta). An istiod that loads on demand needs to know the type before
    /// the first name, and an empty request would ask for everything.
    #[must_use]
    pub fn with_on_demand(mut self, types: impl IntoIterator<Item = impl Into<TypeUrl>>) -> Self {
        self.settings_mut().quirks.on_demand = types.into_iter().map(Into::into).collect();
        self
    }

    /// Makes responses of this type complete: a subscribed resource that is absent from a response does not exist, as
    /// where each response answers one request (REST, files).
    pub(crate) fn with_complete_responses(mut self, type_url: &TypeUrl) -> Self {
        let settings = self.settings_mut();
        settings.types = settings.types.and([settings.types.get(type_url).with_complete_responses()]);
        self
    }

    pub(crate) fn data_errors(&self) -> DataErrors {
        self.settings().data_errors
    }

    fn settings_mut(&mut self) -> &mut Settings {
        Arc::make_mut(&mut self.0)
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.0
    }
}

impl Settings {
    /// Returns the properties of a type.
    pub(super) fn resource_type(&self, type_url: &TypeUrl) -> ResourceType {
        let resource_type = self.types.get(type_url);
        if self.quirks.explicit_wildcard { resource_type.with_legacy_wildcard(false) } else { resource_type }
    }
}

/// Presets of the settings in which real clients and servers differ.
///
#[doc = include_str!("../dialects.md")]
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Dialect {
    /// Follows the specification, with the most careful choice where the specification is silent.
    #[default]
    Spec,
    /// Behaves as an Envoy: sends the node with every request.
    Envoy,
    /// Behaves as a gRPC channel: one response at a time (for at most a second), the explicit wildcard, no TTLs.
    Grpc,
    /// Suits an istiod: a NACK carries no changes, and a refetch unsubscribes first.
    Istio,
}

impl fmt::Display for Dialect {
    /// Writes the common name of the dialect, in lower case.
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
    /// Hashes nothing: a configuration never changes during a machine's life, and a model checker hashes machines by
    /// the million.
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// The treatment of a held resource with a data error: the server deletes it, or reports that it does not exist
/// (NOT_FOUND) or is not for this client (PERMISSION_DENIED), or its new content is rejected.
///
/// Transient errors, that is all other errors that a server reports, never affect held resources. Variants may be
/// added.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DataErrors {
    /// Removes a resource that does not exist any more, and keeps a resource with any other error. This is the
    /// behaviour of xds_protocol.rst.
    #[default]
    Delete,
    /// Keeps the resource, whatever the server reports: gRFC A88 without `fail_on_data_errors`, and the
    /// `ignore_resource_deletion` of gRFC A53. Meant for a server that may lose its resources by mistake.
    Keep,
    /// Removes the resource, whatever the error is: gRFC A88 with `fail_on_data_errors`. An application that rejects a
    /// resource drops the content that it held ([`Update::drops_rejected`](super::Update::drops_rejected)).
    Drop,
}

/// Limits on what a server may make a client machine hold. An honest mesh of 100,000 resources reaches none of them.
///
/// Write `Limits { .., ..Limits::default() }`: limits may be added in any release, and code of this form does not
/// break.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// ACKs and NACKs of one type that wait to be sent, and responses of it that were merged while they wait for a
    /// verdict and are answered by themselves (delta). Default 1,000, at least 1. Beyond the limit the oldest ACK is left
    /// out, and that of a later response stands for it.
    pub waiting_responses: usize,
    /// Bytes of the names and contents of one type that wait for a verdict behind the type's update, merged. Default 64
    /// MiB. A response with which they would be more is rejected (NACK, RESOURCE_EXHAUSTED), and its resources are
    /// requested again when the others are judged.
    pub waiting_bytes: usize,
    /// Responses of all types that wait for a verdict. Default: no limit. With 1, the next response is read after the
    /// verdict on the last, as gRPC does, but at the latest a second after the last: the verdict may wait for it. At
    /// least 1.
    pub responses_per_stream: usize,
    /// Resources, removed names and errors in one response. Default 200,000, at least
    /// 1. A response with more is rejected (NACK).
    pub resources_per_response: usize,
    /// Held resources of a type with a wildcard or a collection; otherwise the subscribed names are the limit. Default
    /// 1,000,000, at least 1. A response that would exceed the limit is rejected (NACK).
    pub resources_per_type: usize,
    /// Bytes of a nonce. Default 1,024, at least 1. A longer nonce can't be echoed, so the stream must end.
    pub nonce_bytes: usize,
    /// Bytes of a version. Default 4,096. A response with a longer version is rejected (NACK).
    pub version_bytes: usize,
    /// Bytes of the message in `error_detail`. Default 4,096; longer messages are cut.
    pub error_bytes: usize,
    /// Names that were announced on a stream and unsubscribed since, which SotW has to remember: as many as there are
    /// subscribed names, and at least this number. Default 10,000. Beyond the limit, every newly subscribed name is
    /// left out of one request and listed in the next.
    pub departed_names: usize,
    /// Actions that wait to be polled. Default 1,024, at least 1. Meanwhile the stream is not read.
    pub waiting_actions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            waiting_responses: 1000,
            waiting_bytes: 64 << 20,
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
