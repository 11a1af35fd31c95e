//! What the protocol needs to know of a resource type. Properties of the type, given by the user: nowhere does a
//! machine ask whether something is a Listener or a Cluster.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::fields::{self, Fields, Malformed, Value};
use crate::name::TypeUrl;
use crate::type_url::{
    CLUSTER, ENDPOINT, EXTENSION_CONFIG, LB_ENDPOINT, LISTENER, ROUTE, RUNTIME, SCOPED_ROUTE, SECRET, VIRTUAL_HOST,
};

/// Where a type stands in the order in which a server pushes a change that touches several types
/// (xds_protocol.rst, "Eventual consistency considerations": make before break). The order of the variants is
/// the order of the pushes.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum PushOrder {
    /// Clusters: first, because everything else refers to them.
    Cluster,
    /// The endpoints of clusters: after the clusters that refer to them.
    Endpoint,
    /// Listeners: pushed only when no cluster waits to be sent.
    Listener,
    /// Scopes of routes: wait for clusters, as listeners do.
    ScopedRoute,
    /// Routes: wait for clusters, as listeners do.
    Route,
    /// Parts of routes: wait for clusters, as listeners do.
    VirtualHost,
    /// Anything else: last, and waits for nothing.
    Other,
}

impl PushOrder {
    /// Whether resources of this place are what the front refers to: they go away last.
    pub(crate) fn is_referred_to(self) -> bool {
        matches!(self, Self::Cluster | Self::Endpoint)
    }

    /// Whether resources of this place refer to clusters: a push of them waits for clusters that are not sent.
    pub(crate) fn refers_to_clusters(self) -> bool {
        matches!(self, Self::Listener | Self::ScopedRoute | Self::Route | Self::VirtualHost)
    }
}

/// A resource type, as the protocol sees it.
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
    /// A type whose SotW responses may hold just what changed, so that absence means nothing (as RDS and EDS).
    /// No legacy wildcard, named by field 1, pushed last: what is assumed of a type that nobody described.
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

    /// A type whose SotW responses hold everything the client is subscribed to, so that absence deletes (as LDS
    /// and CDS; xds_protocol.rst, "Grouping Resources into Responses"). With the legacy wildcard, as these have it.
    pub fn full_state(type_url: impl Into<TypeUrl>) -> Self {
        Self { full_state: true, legacy_wildcard: true, ..Self::partial(type_url) }
    }

    /// Whether a type's first request with no names means everything (xds_protocol.rst, "How the client specifies
    /// what resources to return").
    #[must_use]
    pub fn with_legacy_wildcard(self, legacy_wildcard: bool) -> Self {
        Self { legacy_wildcard, ..self }
    }

    /// Whether a delta resource without content is a heartbeat. It is not for VHDS, where it says that an alias
    /// does not exist, and is how a server answers who asks for what does not exist.
    #[must_use]
    pub fn with_heartbeats(self, heartbeats: bool) -> Self {
        Self { heartbeats, ..self }
    }

    /// The string field of the resource that holds its name, for SotW resources that are not wrapped.
    #[must_use]
    pub fn named_by_field(self, name_field: u32) -> Self {
        Self { name_field, ..self }
    }

    /// Where the type stands in the push order.
    #[must_use]
    pub fn with_push_order(self, push_order: PushOrder) -> Self {
        Self { push_order, ..self }
    }

    /// Returns the type URL.
    pub fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    /// Whether absence from a SotW response deletes.
    pub fn is_full_state(&self) -> bool {
        self.full_state
    }

    /// Whether a first request with no names means everything.
    pub fn has_legacy_wildcard(&self) -> bool {
        self.legacy_wildcard
    }

    /// Whether a delta resource without content is a heartbeat.
    pub fn has_heartbeats(&self) -> bool {
        self.heartbeats
    }

    /// Where the type stands in the push order.
    pub fn push_order(&self) -> PushOrder {
        self.push_order
    }

    /// The name of an encoded resource of this type; whether it is UTF-8 is for the caller to see.
    #[inline]
    pub(crate) fn name_of<'a>(&self, value: &'a [u8]) -> Result<&'a [u8], Malformed> {
        fields::bytes(value, self.name_field)
    }

    /// What the name seems to be, of something that can't be read to its end, or is of another type.
    pub(crate) fn guess_name_of<'a>(&self, value: &'a [u8]) -> Option<&'a str> {
        let name = |field| match field {
            (number, Value::Bytes(name)) if number == self.name_field => core::str::from_utf8(name).ok(),
            _ => None,
        };
        Fields::new(value).map_while(Result::ok).find_map(name).filter(|name| !name.is_empty())
    }
}

/// The resource types that a machine knows. The default has those of the xDS API; a type that is not in it is
/// taken for [`ResourceType::partial`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TypeRegistry(Arc<[ResourceType]>);

impl TypeRegistry {
    /// Just these types; of two with one URL, the last counts.
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

    /// These types besides the ones that are here already.
    #[must_use]
    pub fn and(&self, types: impl IntoIterator<Item = ResourceType>) -> Self {
        Self::new(self.0.iter().cloned().chain(types))
    }

    /// Whether the type is among these.
    pub fn contains(&self, type_url: &TypeUrl) -> bool {
        self.0.binary_search_by(|known| known.type_url.cmp(type_url)).is_ok()
    }

    /// The type of this URL.
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
