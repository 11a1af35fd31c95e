//! The messages of the incremental variant.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::error::Status;
use crate::message::Resource;
pub use crate::message::versions::{Iter as VersionsIter, Versions};
use crate::message::{Node, ResourceError};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};

/// A delta request: the changes to the client's subscriptions, and the ACK or NACK of a response
/// (`envoy.service.discovery.v3.DeltaDiscoveryRequest`).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Request {
    /// The client; required at least on the first request of a stream.
    pub node: Option<Arc<Node>>,
    /// The type that the request is for.
    pub type_url: TypeUrl,
    /// The names to subscribe to, in addition to those of earlier requests.
    pub subscribe: Vec<ResourceName>,
    /// The names to unsubscribe from.
    pub unsubscribe: Vec<ResourceName>,
    /// In the first request for a type on a stream: the versions that the client holds (`initial_resource_versions`).
    pub initial_versions: Versions,
    /// The nonce of the response that this request answers; empty if none.
    pub nonce: Nonce,
    /// Present if and only if the response is rejected (a NACK).
    pub error: Option<Status>,
}

/// A delta response: the resources that are new, changed or removed
/// (`envoy.service.discovery.v3.DeltaDiscoveryResponse`).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Response {
    /// A version of all resources of the type, for debugging only.
    pub system_version: Version,
    /// The resources that are new or changed.
    pub resources: Vec<Resource>,
    /// The names of resources that were removed or do not exist.
    pub removed: Vec<ResourceName>,
    /// The type of the resources.
    pub type_url: TypeUrl,
    /// The nonce of this response, unique on its stream.
    pub nonce: Nonce,
    /// The server (`control_plane.identifier`), for logs; empty if the server sends none.
    pub control_plane: String,
    /// The resources that the server could not deliver, and why.
    pub errors: Vec<ResourceError>,
}

impl Request {
    /// Makes an empty request for a type.
    pub fn new(type_url: impl Into<TypeUrl>) -> Self {
        Self {
            node: None,
            type_url: type_url.into(),
            subscribe: Vec::new(),
            unsubscribe: Vec::new(),
            initial_versions: Versions::default(),
            nonce: Nonce::default(),
            error: None,
        }
    }
}
