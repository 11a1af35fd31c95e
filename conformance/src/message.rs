//! The messages of both variants in one form, which the referee judges and which stories are written in.
//!
//! A value of this module has the fields that any judgement depends on, as plain strings. The bytes are read and
//! written by the codec of [`xds_machine::proto`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use xds_machine::message::{self, delta, sotw};
pub use xds_machine::service::Variant;
use xds_machine::{Status, proto};

/// A request of the client.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Request {
    /// The type; empty where a stream of one type leaves it out.
    pub type_url: String,
    /// SotW: every subscribed name (`resource_names`). Delta: the names to subscribe to.
    pub names: Vec<String>,
    /// Delta: the names to unsubscribe from.
    pub unsubscribe: Vec<String>,
    /// Delta: the versions that the client holds (`initial_resource_versions`).
    pub initial: BTreeMap<String, String>,
    /// SotW: the version that the client uses (`version_info`).
    pub version: String,
    /// The nonce of the response that this request answers; empty if none.
    pub nonce: String,
    /// The error of a NACK: code and message.
    pub error: Option<(i32, String)>,
    /// The client, with its id and its features; `None` leaves the node out.
    pub node: Option<Node>,
}

/// The node of a request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Node {
    /// The id.
    pub id: String,
    /// The features that the client claims.
    pub features: Vec<String>,
}

/// A response of the server.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Response {
    /// The type.
    pub type_url: String,
    /// SotW: the version of the type (`version_info`). Delta: the system version, for debugging only.
    pub version: String,
    /// The nonce.
    pub nonce: String,
    /// The resources, in the order of the message.
    pub resources: Vec<Item>,
    /// Delta: the names that are removed or do not exist.
    pub removed: Vec<String>,
    /// The names of resources with an error (`resource_errors`).
    pub errors: Vec<String>,
}

/// A resource of a response.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Item {
    /// The name; empty if the resource has none that can be read.
    pub name: String,
    /// The version: of the resource in delta and of a wrapped resource, otherwise empty.
    pub version: String,
    /// The content; `None` is a heartbeat, or an alias that does not exist.
    pub body: Option<Bytes>,
    /// The type of the content, as its `Any` says.
    pub any_type: String,
    /// SotW: whether the resource is wrapped.
    pub wrapped: bool,
    /// The time to live.
    pub ttl: Option<Duration>,
    /// Other names of the resource.
    pub aliases: Vec<String>,
    /// The revision that the content stands for; `None` if the content is not of the kit.
    pub revision: Option<u64>,
}

/// Returns the revision that the content of a resource stands for.
pub type RevisionOf = fn(&str, &[u8]) -> Option<u64>;

impl Item {
    /// Returns whether the resource answers a subscription to this name.
    pub fn answers(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

impl Request {
    /// Returns the message as bytes.
    pub fn encode(&self, variant: Variant) -> Vec<u8> {
        match variant {
            Variant::Sotw => proto::sotw::encode_request(&self.to_sotw()),
            Variant::Delta => proto::delta::encode_request(&self.to_delta()),
        }
    }

    /// Reads the bytes of a request.
    ///
    /// # Errors
    ///
    /// If the bytes are not a request.
    pub fn decode(variant: Variant, bytes: Bytes) -> Result<Self, proto::DecodeError> {
        Ok(match variant {
            Variant::Sotw => (&proto::sotw::decode_request(bytes)?).into(),
            Variant::Delta => (&proto::delta::decode_request(bytes)?).into(),
        })
    }

    /// Returns the message for a machine of the SotW variant.
    pub fn to_sotw(&self) -> sotw::Request {
        sotw::Request {
            node: self.to_node(),
            names: self.names.iter().map(Into::into).collect(),
            version: self.version.as_str().into(),
            nonce: self.nonce.as_str().into(),
            error: self.to_status(),
            ..sotw::Request::new(self.type_url.as_str())
        }
    }

    /// Returns the message for a machine of the incremental variant.
    pub fn to_delta(&self) -> delta::Request {
        let initial = self.initial.iter().map(|(name, version)| (name.as_str(), version.as_str()));
        delta::Request {
            node: self.to_node(),
            subscribe: self.names.iter().map(Into::into).collect(),
            unsubscribe: self.unsubscribe.iter().map(Into::into).collect(),
            initial_versions: initial.collect(),
            nonce: self.nonce.as_str().into(),
            error: self.to_status(),
            ..delta::Request::new(self.type_url.as_str())
        }
    }

    fn to_node(&self) -> Option<Arc<message::Node>> {
        let node = |node: &Node| {
            let features = node.features.iter().cloned();
            Arc::new(features.fold(message::Node::new(node.id.clone()), message::Node::with_feature))
        };
        self.node.as_ref().map(node)
    }

    fn to_status(&self) -> Option<Status> {
        self.error.clone().map(|(code, message)| Status { code, message })
    }
}

impl From<&sotw::Request> for Request {
    fn from(request: &sotw::Request) -> Self {
        Self {
            type_url: request.type_url.to_string(),
            names: request.names.iter().map(ToString::to_string).collect(),
            version: request.version.to_string(),
            nonce: request.nonce.to_string(),
            error: request.error.as_ref().map(|error| (error.code, error.message.clone())),
            node: request.node.as_deref().map(Node::from),
            ..Self::default()
        }
    }
}

impl From<&delta::Request> for Request {
    fn from(request: &delta::Request) -> Self {
        let owned = |(name, version): (&str, &str)| (name.to_owned(), version.to_owned());
        Self {
            type_url: request.type_url.to_string(),
            names: request.subscribe.iter().map(ToString::to_string).collect(),
            unsubscribe: request.unsubscribe.iter().map(ToString::to_string).collect(),
            initial: request.initial_versions.iter().map(owned).collect(),
            nonce: request.nonce.to_string(),
            error: request.error.as_ref().map(|error| (error.code, error.message.clone())),
            node: request.node.as_deref().map(Node::from),
            ..Self::default()
        }
    }
}

impl From<&message::Node> for Node {
    fn from(node: &message::Node) -> Self {
        Self { id: node.id.clone(), features: node.client_features.clone() }
    }
}

impl Response {
    /// Reads the bytes of a response.
    ///
    /// # Errors
    ///
    /// If the bytes are not a response.
    pub fn decode(variant: Variant, bytes: Bytes, revision_of: RevisionOf) -> Result<Self, proto::DecodeError> {
        Ok(match variant {
            Variant::Sotw => Self::from_sotw(&proto::sotw::decode_response(bytes)?, revision_of),
            Variant::Delta => Self::from_delta(&proto::delta::decode_response(bytes)?, revision_of),
        })
    }

    /// Converts a message of the SotW variant.
    pub fn from_sotw(response: &sotw::Response, revision_of: RevisionOf) -> Self {
        let item = |item: &sotw::Item| match item {
            sotw::Item::Bare(any) => Item {
                name: name_in(&any.value).unwrap_or_default(),
                any_type: any.type_url.to_string(),
                body: Some(any.value.clone()),
                revision: revision_of(any.type_url.as_str(), &any.value),
                ..Item::default()
            },
            sotw::Item::Wrapped(resource) => Item { wrapped: true, ..Item::new(resource, revision_of) },
            sotw::Item::Malformed => Item { wrapped: true, ..Item::default() },
        };
        Self {
            type_url: response.type_url.to_string(),
            version: response.version.to_string(),
            nonce: response.nonce.to_string(),
            resources: response.resources.iter().map(item).collect(),
            removed: Vec::new(),
            errors: response.errors.iter().map(|error| error.name.to_string()).collect(),
        }
    }

    /// Converts a message of the incremental variant.
    pub fn from_delta(response: &delta::Response, revision_of: RevisionOf) -> Self {
        Self {
            type_url: response.type_url.to_string(),
            version: response.system_version.to_string(),
            nonce: response.nonce.to_string(),
            resources: response.resources.iter().map(|resource| Item::new(resource, revision_of)).collect(),
            removed: response.removed.iter().map(ToString::to_string).collect(),
            errors: response.errors.iter().map(|error| error.name.to_string()).collect(),
        }
    }

    /// Returns the message as bytes. `errors` are not written: the kit sends none to clients.
    pub fn encode(&self, variant: Variant) -> Vec<u8> {
        match variant {
            Variant::Sotw => proto::sotw::encode_response(&sotw::Response {
                version: self.version.as_str().into(),
                resources: self.resources.iter().map(Item::to_sotw).collect(),
                type_url: self.type_url.as_str().into(),
                nonce: self.nonce.as_str().into(),
                control_plane: String::new(),
                errors: Vec::new(),
            }),
            Variant::Delta => proto::delta::encode_response(&delta::Response {
                system_version: self.version.as_str().into(),
                resources: self.resources.iter().map(Item::to_resource).collect(),
                removed: self.removed.iter().map(Into::into).collect(),
                type_url: self.type_url.as_str().into(),
                nonce: self.nonce.as_str().into(),
                control_plane: String::new(),
                errors: Vec::new(),
            }),
        }
    }

    /// Returns whether the response has the resource of this name, its removal or its error.
    pub fn mentions(&self, name: &str) -> bool {
        self.has(name) || self.removed.iter().chain(&self.errors).any(|other| other == name)
    }

    /// Returns whether the response has the resource of this name, or a heartbeat of it.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.resources.iter().any(|item| item.answers(name))
    }
}

impl Item {
    fn to_any(&self) -> Option<message::Any> {
        self.body.clone().map(|value| message::Any { type_url: self.any_type.as_str().into(), value })
    }

    fn to_sotw(&self) -> sotw::Item {
        match self.to_any() {
            Some(any) if !self.wrapped => sotw::Item::Bare(any),
            _ => sotw::Item::Wrapped(Box::new(self.to_resource())),
        }
    }

    fn to_resource(&self) -> message::Resource {
        message::Resource {
            name: self.name.as_str().into(),
            version: self.version.as_str().into(),
            aliases: self.aliases.iter().map(Into::into).collect(),
            body: self.to_any(),
            ttl: self.ttl,
        }
    }

    fn new(resource: &message::Resource, revision_of: RevisionOf) -> Self {
        let body = resource.body.as_ref();
        Self {
            name: resource.name.to_string(),
            version: resource.version.to_string(),
            body: body.map(|any| any.value.clone()),
            any_type: body.map(|any| any.type_url.to_string()).unwrap_or_default(),
            wrapped: false,
            ttl: resource.ttl,
            aliases: resource.aliases.iter().map(ToString::to_string).collect(),
            revision: body.and_then(|any| revision_of(any.type_url.as_str(), &any.value)),
        }
    }
}

/// Returns the string in field 1, which names the resource in every type of the xDS API but LEDS.
fn name_in(body: &[u8]) -> Option<String> {
    let (&key, rest) = body.split_first()?;
    let (len, rest) = crate::resource::varint(rest)?;
    let name = rest.get(..usize::try_from(len).ok()?)?;
    (key == 0x0a).then(|| String::from_utf8(name.to_vec()).ok()).flatten()
}
