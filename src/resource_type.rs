//! The properties of a resource type that the protocol depends on. The user declares them: no machine tests whether a
//! type is Listener or Cluster.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::fields::{self, Fields, Malformed, Value};
use crate::name::TypeUrl;
use crate::type_url::{
    CLUSTER, ENDPOINT, EXTENSION_CONFIG, LB_ENDPOINT, LISTENER, ROUTE, RUNTIME, SCOPED_ROUTE, SECRET, VIRTUAL_HOST,
};

/// The position of a type in the order in which a server pushes a change that affects several types (xds_protocol.rst,
/// "Eventual consistency considerations": make before break). The variants are in the order of the pushes.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum PushOrder {
    /// Clusters: pushed first, because all other types refer to them.
    Cluster,
    /// The endpoints of clusters: pushed after the clusters that refer to them.
    Endpoint,
    /// Listeners: pushed only when no cluster is pending.
    Listener,
    /// Scopes of routes: wait for pending clusters, as listeners do.
    ScopedRoute,
    /// Routes: wait for pending clusters, as listeners do.
    Route,
    /// Parts of routes: wait for pending clusters, as listeners do.
    VirtualHost,
    /// Any other type: pushed last, and waits for nothing.
    Other,
}

impl PushOrder {
    /// Returns whether other types refer to resources of this position: those resources are removed last.
    pub(crate) fn is_referred_to(self) -> bool {
        matches!(self, Self::Cluster | Self::Endpoint)
    }

    /// Returns whether resources of this position refer to clusters: pushing them waits for unsent clusters.
    pub(crate) fn refers_to_clusters(self) -> bool {
        matches!(self, Self::Listener | Self::ScopedRoute | Self::Route | Self::VirtualHost)
    }
}

/// A resource type, as the protocol treats it.
///
/// ```
/// use xds_machine::resource_type::{PushOrder, ResourceType};
///
/// let own = ResourceType::full_state("type.googleapis.com/example.Policy").with_push_order(PushOrder::Route);
/// assert!(own.is_full_state() && own.has_legacy_wildcard());
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ResourceType {
    type_url: TypeUrl,
    full_state: bool,
    legacy_wildcard: bool,
    heartbeats: bool,
    name_field: u32,
    push_order: PushOrder,
}

impl ResourceType {
    /// Makes a type whose SotW responses may hold only changed resources, so that absence has no meaning (like RDS and
    /// EDS). Defaults: no legacy wildcard, name in field 1, pushed last. Unknown types are treated like this.
    pub fn partial(type_url: impl Into<TypeUrl>) -> Self {
        Self {
            type_url: type_url.into(),
            full_state: false,
            legacy_wildcard: false,
            heartbeats: true,
            name_field: 1,
            push_order: PushOrder::Other,
        }
    }

    /// Makes a type whose SotW responses hold every resource that the client is subscribed to, so that absence deletes
    /// (like LDS and CDS; xds_protocol.rst, "Grouping Resources into Responses"), and that has the legacy wildcard.
    pub fn full_state(type_url: impl Into<TypeUrl>) -> Self {
        Self { full_state: true, legacy_wildcard: true, ..Self::partial(type_url) }
    }

    /// Sets whether a first request without names subscribes to the wildcard (xds_protocol.rst, "How the client
    /// specifies what resources to return").
    #[must_use]
    pub fn with_legacy_wildcard(self, legacy_wildcard: bool) -> Self {
        Self { legacy_wildcard, ..self }
    }

    /// Makes the absence of a resource from a response delete the resource.
    pub(crate) fn with_complete_responses(self) -> Self {
        Self { full_state: true, ..self }
    }

    /// Sets whether a delta resource without content is a heartbeat. In VHDS, such a resource is the server's answer to
    /// a subscription to an alias or a resource that does not exist.
    #[must_use]
    pub fn with_heartbeats(self, heartbeats: bool) -> Self {
        Self { heartbeats, ..self }
    }

    /// Sets the string field of the resource that holds its name, for SotW resources that are not wrapped.
    #[must_use]
    pub fn named_by_field(self, name_field: u32) -> Self {
        Self { name_field, ..self }
    }

    /// Sets the position of the type in the push order.
    #[must_use]
    pub fn with_push_order(self, push_order: PushOrder) -> Self {
        Self { push_order, ..self }
    }

    /// Returns the type URL.
    pub fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    /// Returns whether the absence of a resource from a SotW response deletes the resource.
    pub fn is_full_state(&self) -> bool {
        self.full_state
    }

    /// Returns whether a first request without names subscribes to the wildcard.
    pub fn has_legacy_wildcard(&self) -> bool {
        self.legacy_wildcard
    }

    /// Returns whether a delta resource without content is a heartbeat.
    pub fn has_heartbeats(&self) -> bool {
        self.heartbeats
    }

    /// Returns the position of the type in the push order.
    pub fn push_order(&self) -> PushOrder {
        self.push_order
    }

    /// Returns the name of an encoded resource of this type. The caller checks whether the name is UTF-8.
    #[inline]
    pub(crate) fn name_of<'a>(&self, value: &'a [u8]) -> Result<&'a [u8], Malformed> {
        fields::bytes(value, self.name_field)
    }

    /// Returns the probable name of a resource that is truncated or of another type.
    pub(crate) fn guess_name_of<'a>(&self, value: &'a [u8]) -> Option<&'a str> {
        let name = |field| match field {
            (number, Value::Bytes(name)) if number == self.name_field => core::str::from_utf8(name).ok(),
            _ => None,
        };
        Fields::new(value).map_while(Result::ok).find_map(name).filter(|name| !name.is_empty())
    }
}

/// The resource types that a machine knows. The default registry has the types of the xDS API; an unregistered type is
/// treated as [`ResourceType::partial`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TypeRegistry(Arc<[ResourceType]>);

impl TypeRegistry {
    /// Makes a registry of only these types. Of two types with one URL, the last counts.
    pub fn new(types: impl IntoIterator<Item = ResourceType>) -> Self {
        let mut sorted: Vec<ResourceType> = Vec::new();
        for new in types {
            match sorted.binary_search_by(|old| old.type_url.cmp(&new.type_url)) {
                Ok(at) => sorted[at] = new,
                Err(at) => sorted.insert(at, new),
            }
        }
        Self(sorted.into())
    }

    /// Returns this registry extended by these types.
    #[must_use]
    pub fn and(&self, types: impl IntoIterator<Item = ResourceType>) -> Self {
        Self::new(self.0.iter().cloned().chain(types))
    }

    /// Returns whether the type is registered.
    pub fn contains(&self, type_url: &TypeUrl) -> bool {
        self.0.binary_search_by(|known| known.type_url.cmp(type_url)).is_ok()
    }

    /// Returns the type of this URL.
    pub fn get(&self, type_url: &TypeUrl) -> ResourceType {
        match self.0.binary_search_by(|known| known.type_url.cmp(type_url)) {
            Ok(at) => self.0[at].clone(),
            Err(_) => ResourceType::partial(type_url.clone()),
        }
    }
}

impl Default for TypeRegistry {
    fn default() -> Self {
        Self::new([
            ResourceType::full_state(LISTENER).with_push_order(PushOrder::Listener),
            ResourceType::full_state(CLUSTER).with_push_order(PushOrder::Cluster),
            ResourceType::partial(SCOPED_ROUTE).with_legacy_wildcard(true).with_push_order(PushOrder::ScopedRoute),
            ResourceType::partial(ROUTE).with_push_order(PushOrder::Route),
            ResourceType::partial(VIRTUAL_HOST).with_heartbeats(false).with_push_order(PushOrder::VirtualHost),
            ResourceType::partial(ENDPOINT).with_push_order(PushOrder::Endpoint),
            ResourceType::partial(LB_ENDPOINT).with_push_order(PushOrder::Endpoint),
            ResourceType::partial(SECRET),
            ResourceType::partial(RUNTIME),
            ResourceType::partial(EXTENSION_CONFIG),
        ])
    }
}
