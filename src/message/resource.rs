//! What the protocol carries.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use crate::name::{ResourceName, TypeUrl, Version};

/// A resource's content, opaque to the machines (`google.protobuf.Any`).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Any {
    /// The type of the message in `value`.
    pub type_url: TypeUrl,
    /// The encoded message. A slice of the buffer that it came in; never copied.
    pub value: Bytes,
}

/// A resource as messages carry it (`envoy.service.discovery.v3.Resource`): every resource of a delta response,
/// and a SotW resource that is wrapped.
///
/// Dynamic parameters, cache control and metadata are not here: see ARCHITECTURE.md, "What is left out, on purpose".
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Resource {
    /// The name of the resource, unique within its type.
    pub name: ResourceName,
    /// The version of this resource. In SotW the version of the response counts instead.
    pub version: Version,
    /// Other names of the resource (delta; xds_protocol.rst, "Resource names").
    pub aliases: Vec<ResourceName>,
    /// The content. `None` is a heartbeat (xds_protocol.rst, "TTL"), or for a type with aliases a name that does
    /// not exist.
    pub body: Option<Any>,
    /// How long the resource lives unless it is sent again, or a heartbeat is.
    pub ttl: Option<Duration>,
}
