//! The node: who a client is, and what it can do.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;

/// Who a client is (`envoy.config.core.v3.Node`). Sent on the first request of a stream.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Node {
    /// Unique among the clients of a control plane.
    pub id: String,
    /// The group of clients that this one belongs to.
    pub cluster: String,
    /// Where the client runs.
    pub locality: Option<Locality>,
    /// What the client is, such as `envoy`.
    pub user_agent_name: String,
    /// The version of that program.
    pub user_agent_version: String,
    /// What the client can do that a server must not assume, such as `xds.config.resource-in-sotw`.
    pub client_features: Vec<String>,
    /// All other fields (metadata, extensions, ..), encoded: kept as they came, written after the ones above.
    pub rest: Bytes,
}

/// Where a client runs (`envoy.config.core.v3.Locality`).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Locality {
    /// The name of the region, such as `eu-west-1`.
    pub region: String,
    /// The name of the zone in the region.
    pub zone: String,
    /// The name of the part of the zone.
    pub sub_zone: String,
}

/// What a client says that it can do (`Node.client_features`), as far as the transport is concerned.
pub mod feature {
    /// Resources may have a TTL.
    pub const TTL: &str = "xds.config.supports-resource-ttl";
    /// SotW resources may be wrapped. The first is the registered name, the second that of xds_protocol.rst.
    pub const WRAPPER: [&str; 2] = ["xds.config.resource-in-sotw", "xds.config.supports-resource-in-sotw"];
}

impl Node {
    /// A node with an id and nothing else.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Whether the client says that it has this feature.
    pub fn has_feature(&self, feature: &str) -> bool {
        self.client_features.iter().any(|has| has == feature)
    }
}
