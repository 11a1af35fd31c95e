//! The payload of the protocol: resources.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use crate::name::{ResourceName, TypeUrl, Version};

/// The content of a resource, opaque to the machines (`google.protobuf.Any`).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Any {
    /// The type of the message in `value`.
    pub type_url: TypeUrl,
    /// The encoded message: a slice of the received buffer, never copied.
    pub value: Bytes,
}

/// A resource as messages carry it (`envoy.service.discovery.v3.Resource`): every resource of a delta response, and a
/// wrapped resource of a SotW response.
///
/// Dynamic parameters, cache control and metadata are omitted: see ARCHITECTURE.md, "What is left out, on purpose".
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Resource {
    /// The name of the resource, unique within its type.
    pub name: ResourceName,
    /// The version of this resource. In SotW the version of the response applies instead.
    pub version: Version,
    /// Other names of the resource (delta; xds_protocol.rst, "Resource names").
    pub aliases: Vec<ResourceName>,
    /// The content. `None` is a heartbeat (xds_protocol.rst, "TTL"), or for a type with aliases a name that does not
    /// exist.
    pub body: Option<Any>,
    /// The time until the resource expires, unless the server sends the resource or a heartbeat again.
    pub ttl: Option<Duration>,
}
