//! Deterministic encoding: equal messages have equal bytes. A `DynamicMessage` keeps its maps in random order, but the
//! versions of resources are hashes of their bytes.

use std::collections::BTreeSet;

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value};

use crate::reader::any_name;

/// Encodes a message with its maps in key order, inside of `Any` as well.
pub fn encode(message: &DynamicMessage) -> Vec<u8> {
    if let Some(bytes) = encode_any(message) {
        return bytes;
    }
    let mut bytes = Vec::new();
    for (field, value) in message.fields() {
        match (value, field.kind()) {
            (Value::Message(inner), _) => put(&mut bytes, &field, &encode(inner)),
            (Value::List(list), Kind::Message(_)) => {
                let inner = list.iter().filter_map(Value::as_message);
                inner.for_each(|inner| put(&mut bytes, &field, &encode(inner)));
            }
            (Value::Map(map), Kind::Message(entry)) => {
                let entries = map.iter().map(|(key, value)| {
                    let mut message = DynamicMessage::new(entry.clone());
                    message.set_field(&entry.map_entry_key_field(), key.clone().into());
                    message.set_field(&entry.map_entry_value_field(), value.clone());
                    encode(&message)
                });
                let entries: BTreeSet<Vec<u8>> = entries.collect();
                entries.iter().for_each(|entry| put(&mut bytes, &field, entry));
            }
            _ => {
                let mut one = DynamicMessage::new(message.descriptor());
                one.set_field(&field, value.clone());
                bytes.extend(one.encode_to_vec());
            }
        }
    }
    bytes
}

/// Encodes an `Any` with its content in order. Returns `None` if the message is no `Any`, or its content has no
/// descriptor.
fn encode_any(message: &DynamicMessage) -> Option<Vec<u8>> {
    if message.descriptor().full_name() != "google.protobuf.Any" {
        return None;
    }
    let type_url = message.get_field_by_number(1)?;
    let content = described(message, type_url.as_str()?)?;
    let value = message.get_field_by_number(2)?;
    let content = DynamicMessage::decode(content, value.as_bytes()?.clone()).ok()?;
    let mut any = message.clone();
    any.set_field_by_number(2, Value::Bytes(encode(&content).into()));
    Some(any.encode_to_vec())
}

fn described(message: &DynamicMessage, type_url: &str) -> Option<MessageDescriptor> {
    message.descriptor().parent_pool().get_message_by_name(any_name(type_url))
}

fn put(bytes: &mut Vec<u8>, field: &FieldDescriptor, content: &[u8]) {
    encode_key(field.number(), WireType::LengthDelimited, bytes);
    encode_varint(content.len() as u64, bytes);
    bytes.extend_from_slice(content);
}
