//! The node on the wire: the fields that the machines read, and all others as received.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bytes::Bytes;
use prost::{Message, encoding};

use super::{DecodeError, generated};
use crate::fields::{Fields, Malformed, Value};
use crate::message::{Locality, Node};

const ID: u8 = 1;
const CLUSTER: u8 = 2;
const LOCALITY: u8 = 4;
const USER_AGENT_NAME: u8 = 6;
const USER_AGENT_VERSION: u8 = 7;
const CLIENT_FEATURES: u8 = 10;

/// Decodes a node without prost, which would drop unknown fields: Envoys send 60 KB of these.
pub(super) fn decode(bytes: &Bytes) -> Result<Node, DecodeError> {
    let malformed = |Malformed| DecodeError { message: "Node", reason: "not a protobuf message".into() };
    let (mut node, mut rest) = (Node::default(), Vec::new());
    let mut fields = Fields::new(bytes);
    while let Some(raw) = fields.next_raw() {
        let (number, value, raw) = raw.map_err(malformed)?;
        let text = |bytes| core::str::from_utf8(bytes).map(ToString::to_string).map_err(|_| malformed(Malformed));
        match (u8::try_from(number), value) {
            (Ok(ID), Value::Bytes(id)) => node.id = text(id)?,
            (Ok(CLUSTER), Value::Bytes(cluster)) => node.cluster = text(cluster)?,
            (Ok(USER_AGENT_NAME), Value::Bytes(name)) => node.user_agent_name = text(name)?,
            (Ok(USER_AGENT_VERSION), Value::Bytes(version)) => node.user_agent_version = text(version)?,
            (Ok(CLIENT_FEATURES), Value::Bytes(feature)) => node.client_features.push(text(feature)?),
            (Ok(LOCALITY), Value::Bytes(locality)) => {
                let locality = generated::Locality::decode(locality).map_err(DecodeError::new("Locality"))?;
                let generated::Locality { region, zone, sub_zone } = locality;
                node.locality = Some(Locality { region, zone, sub_zone });
            }
            _ => rest.extend_from_slice(raw),
        }
    }
    node.rest = rest.into();
    Ok(node)
}

pub(super) fn encode(node: &Node) -> Bytes {
    let mut bytes = Vec::new();
    let string = |number: u8, text: &String, to: &mut Vec<u8>| {
        if !text.is_empty() {
            encoding::string::encode(number.into(), text, to);
        }
    };
    string(ID, &node.id, &mut bytes);
    string(CLUSTER, &node.cluster, &mut bytes);
    if let Some(Locality { region, zone, sub_zone }) = node.locality.clone() {
        let locality = generated::Locality { region, zone, sub_zone };
        encoding::message::encode(LOCALITY.into(), &locality, &mut bytes);
    }
    string(USER_AGENT_NAME, &node.user_agent_name, &mut bytes);
    string(USER_AGENT_VERSION, &node.user_agent_version, &mut bytes);
    encoding::string::encode_repeated(CLIENT_FEATURES.into(), &node.client_features, &mut bytes);
    bytes.extend_from_slice(&node.rest);
    bytes.into()
}
