//! The node: the identity and the capabilities of a client.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;

/// The identity of a client (`envoy.config.core.v3.Node`). Sent on the first request of a stream.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Node {
    /// Unique among the clients of a control plane.
    pub id: String,
    /// The group of clients that this one belongs to.
    pub cluster: String,
    /// The location of the client.
    pub locality: Option<Locality>,
    /// The client program, such as `envoy`.
    pub user_agent_name: String,
    /// The version of that program.
    pub user_agent_version: String,
    /// Capabilities that a server must not assume, such as `xds.config.resource-in-sotw`.
    pub client_features: Vec<String>,
    /// All other fields (metadata, extensions, ..), encoded: kept as received, and written after the fields above.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    ///
    /// use prost::Message;
    /// use xds_machine::message::Node;
    ///
    /// /// The fields of `envoy.config.core.v3.Node` that are wanted besides; or that type as it is generated, with the others unset.
    /// #[derive(Clone, PartialEq, Message)]
    /// struct Rest {
    ///     #[prost(message, optional, tag = "3")]
    ///     metadata: Option<Struct>,
    /// }
    ///
    /// /// `google.protobuf.Struct`.
    /// #[derive(Clone, PartialEq, Message)]
    /// struct Struct {
    ///     #[prost(btree_map = "string, message", tag = "1")]
    ///     fields: BTreeMap<String, Value>,
    /// }
    ///
    /// /// `google.protobuf.Value`, of strings.
    /// #[derive(Clone, PartialEq, Message)]
    /// struct Value {
    ///     #[prost(string, tag = "3")]
    ///     string: String,
    /// }
    ///
    /// let fields = BTreeMap::from([("NAMESPACE".into(), Value { string: "default".into() })]);
    /// let metadata = Some(Struct { fields: fields.clone() });
    /// let node = Node::new("sidecar~10.0.0.1").with_rest(Rest { metadata }.encode_to_vec());
    ///
    /// // And at the server:
    /// let rest = Rest::decode(node.rest)?;
    /// assert_eq!(rest.metadata.expect("it was given").fields, fields);
    /// # Ok::<(), prost::DecodeError>(())
    /// ```
    pub rest: Bytes,
}

/// The location of a client (`envoy.config.core.v3.Locality`).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Locality {
    /// The name of the region, such as `eu-west-1`.
    pub region: String,
    /// The name of the zone in the region.
    pub zone: String,
    /// The name of the part of the zone.
    pub sub_zone: String,
}

/// The capabilities that a client claims (`Node.client_features`) and that concern the transport.
pub mod feature {
    /// Resources may have a TTL.
    pub const TTL: &str = "xds.config.supports-resource-ttl";
    /// SotW resources may be wrapped. The first name is the registered one, the second that of xds_protocol.rst.
    pub const WRAPPER: [&str; 2] = ["xds.config.resource-in-sotw", "xds.config.supports-resource-in-sotw"];
}

impl Node {
    /// Makes a node with an id and no other fields.
    ///
    /// ```
    /// use xds_machine::message::{Locality, Node, feature};
    ///
    /// let locality = Locality { region: "eu".into(), ..Locality::default() };
    /// let node = Node::new("n1").with_cluster("edge").with_locality(locality).with_feature(feature::TTL);
    /// assert_eq!((node.cluster.as_str(), node.has_feature(feature::TTL)), ("edge", true));
    /// ```
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Sets the group of clients.
    #[must_use]
    pub fn with_cluster(self, cluster: impl Into<String>) -> Self {
        Self { cluster: cluster.into(), ..self }
    }

    /// Sets the location.
    #[must_use]
    pub fn with_locality(self, locality: Locality) -> Self {
        Self { locality: Some(locality), ..self }
    }

    /// Sets the program and its version.
    #[must_use]
    pub fn with_user_agent(self, name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { user_agent_name: name.into(), user_agent_version: version.into(), ..self }
    }

    /// Adds a [feature].
    #[must_use]
    pub fn with_feature(mut self, feature: impl Into<String>) -> Self {
        self.client_features.push(feature.into());
        self
    }

    /// Sets the other fields, [encoded](Self::rest).
    #[must_use]
    pub fn with_rest(self, rest: impl Into<Bytes>) -> Self {
        Self { rest: rest.into(), ..self }
    }

    /// Returns whether the client claims this feature.
    pub fn has_feature(&self, feature: &str) -> bool {
        self.client_features.iter().any(|has| has == feature)
    }
}
