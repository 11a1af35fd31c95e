//! The messages of the state-of-the-world variant.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::error::Status;
use crate::message::{Any, Resource};
use crate::message::{Node, ResourceError};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};

/// A SotW request: every subscribed name of a type, and the ACK or NACK of a response
/// (`envoy.service.discovery.v3.DiscoveryRequest`).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Request {
    /// The client; required at least on the first request of a stream.
    pub node: Option<Arc<Node>>,
    /// The type that the request is for.
    pub type_url: TypeUrl,
    /// Every subscribed name of the type.
    pub names: Vec<ResourceName>,
    /// The version of the last response that was accepted.
    pub version: Version,
    /// The nonce of the response that this request answers, or of the last response received.
    pub nonce: Nonce,
    /// Present if and only if the response is rejected (a NACK).
    pub error: Option<Status>,
}

/// A SotW response: all resources of a full-state type, or some of a partial type
/// (`envoy.service.discovery.v3.DiscoveryResponse`).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Response {
    /// The version of the type's resources.
    pub version: Version,
    /// The resources, in the order of the message.
    pub resources: Vec<Item>,
    /// The type of the resources.
    pub type_url: TypeUrl,
    /// The nonce of this response, unique on its stream.
    pub nonce: Nonce,
    /// The server (`control_plane.identifier`), for logs; empty if the server sends none.
    pub control_plane: String,
    /// The resources that the server could not deliver, and why.
    pub errors: Vec<ResourceError>,
}

/// A resource of a SotW response, in one of the three forms of the wire format.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Item {
    /// The resource itself, which contains its name.
    Bare(Any),
    /// A resource in a wrapper that carries the name and possibly a TTL.
    Wrapped(Box<Resource>),
    /// An item with the type URL of the wrapper, whose bytes can't be decoded.
    Malformed,
}

impl Request {
    /// Makes an empty request for a type. As the first request for the type, it is the legacy wildcard.
    pub fn new(type_url: impl Into<TypeUrl>) -> Self {
        Self {
            node: None,
            type_url: type_url.into(),
            names: Vec::new(),
            version: Version::default(),
            nonce: Nonce::default(),
            error: None,
        }
    }
}
