//! The messages of the state-of-the-world variant.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::error::Status;
use crate::message::{Any, Resource};
use crate::message::{Node, ResourceError};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};

/// A SotW request: everything of a type that the client is subscribed to, and which response it answers
/// (`envoy.service.discovery.v3.DiscoveryRequest`).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Request {
    /// Who asks; at least on the first request of a stream.
    pub node: Option<Arc<Node>>,
    /// Which type the request is for.
    pub type_url: TypeUrl,
    /// Everything of the type that the client is subscribed to.
    pub names: Vec<ResourceName>,
    /// The version of the last response that was accepted.
    pub version: Version,
    /// The response that this answers, or the last one received.
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
    /// The name of this response on its stream.
    pub nonce: Nonce,
    /// Who answers (`control_plane.identifier`), for logs; empty if the server does not say.
    pub control_plane: String,
    /// The resources that the server could not deliver, and why.
    pub errors: Vec<ResourceError>,
}

/// A resource of a SotW response, in one of the three forms that the wire knows.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Item {
    /// The resource itself; its name is inside.
    Bare(Any),
    /// A resource in a wrapper that names it and may have a TTL.
    Wrapped(Box<Resource>),
    /// Bytes that say they are a wrapper and are not.
    Malformed,
}

impl Request {
    /// A request for a type that says nothing; as a type's first it asks for everything.
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
