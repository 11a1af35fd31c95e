//! The node: the identity of the client.

use alloc::string::String;

use serde_json::{Map, Value};
use xds_machine::message::{Locality, Node};

use super::json::{Object, object, string};
use super::metadata;
use crate::faults::Walk;

/// The program of the client. A file can't set it (R-BOOT-21).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Agent<'a> {
    /// The name of the program, such as `gRPC C-core`.
    pub name: &'a str,
    /// The version of the program.
    pub version: &'a str,
}

/// The part of the node that a file sets; other fields of the file's node are ignored (R-BOOT-21).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Identity {
    /// The id of the client.
    pub id: String,
    /// The group of clients.
    pub cluster: String,
    /// The location; `None` unless a part of the location is not empty (R-BOOT-22).
    pub locality: Option<Locality>,
    /// Any JSON object.
    pub metadata: Map<String, Value>,
}

/// The feature of a client that uses the weights of localities as they are (gRFC A27).
const NO_OVERPROVISIONING: &str = "envoy.lb.does_not_support_overprovisioning";

impl Identity {
    pub(super) fn read(walk: &mut Walk, value: &Value) -> Option<Self> {
        let node = Object::read(walk, value)?;
        Some(Self {
            id: node.field(walk, "id", string).unwrap_or_default(),
            cluster: node.field(walk, "cluster", string).unwrap_or_default(),
            locality: node.field(walk, "locality", locality),
            metadata: node.field(walk, "metadata", object).unwrap_or_default(),
        })
    }

    /// Returns the node as requests have it. R-BOOT-24: The transport adds its own features.
    pub(super) fn node(&self, agent: &Agent<'_>) -> Node {
        let node = Node {
            cluster: self.cluster.clone(),
            locality: self.locality.clone(),
            rest: metadata::encode(&self.metadata),
            ..Node::new(&self.id)
        };
        node.with_user_agent(agent.name, agent.version).with_feature(NO_OVERPROVISIONING)
    }
}

fn locality(walk: &mut Walk, value: &Value) -> Option<Locality> {
    let object = Object::read(walk, value)?;
    let mut part = |name| object.field(walk, name, string).unwrap_or_default();
    let locality = Locality { region: part("region"), zone: part("zone"), sub_zone: part("sub_zone") };
    (locality != Locality::default()).then_some(locality)
}
