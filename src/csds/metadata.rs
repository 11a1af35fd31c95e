//! The metadata of a node, read in place: a matcher needs one value of it.

use alloc::string::String;
use alloc::vec::Vec;

use crate::fields::{Fields, Value};
use crate::message::Node;

/// The number of `metadata` in `envoy.config.core.v3.Node`.
const METADATA: u32 = 3;

/// The encoded metadata of a node (`google.protobuf.Struct`).
pub(super) struct Metadata(Vec<u8>);

/// A value in the metadata (`google.protobuf.Value`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found<'a> {
    Null,
    Number(f64),
    String(&'a str),
    Bool(bool),
    /// The encoded fields.
    Struct(&'a [u8]),
    List(List<'a>),
}

/// The encoded values of a list (`google.protobuf.ListValue`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct List<'a>(&'a [u8]);

impl Metadata {
    pub(super) fn of(node: &Node) -> Self {
        // A message field that occurs twice is merged: both occurrences are read.
        Self(messages(&node.rest, METADATA).flatten().copied().collect())
    }

    /// Returns the value at a path of keys.
    pub(super) fn find(&self, path: &[String]) -> Option<Found<'_>> {
        let mut found = Found::Struct(&self.0);
        for key in path {
            let Found::Struct(fields) = found else { return None };
            let value = |entry| {
                let own = messages(entry, 1).last().unwrap_or_default();
                (own == key.as_bytes()).then(|| messages(entry, 2).last().unwrap_or_default())
            };
            found = read(messages(fields, 1).filter_map(value).last()?)?;
        }
        Some(found)
    }
}

impl<'a> List<'a> {
    pub(super) fn values(self) -> impl Iterator<Item = Found<'a>> {
        messages(self.0, 1).filter_map(read)
    }
}

/// Returns the strings or messages of one field. Malformed bytes end the iteration.
fn messages(message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    Fields::new(message).map_while(Result::ok).filter_map(move |field| match field {
        (is, Value::Bytes(bytes)) if is == number => Some(bytes),
        _ => None,
    })
}

/// Reads a value: of several kinds, the last one counts. `None` if the value has no kind, or is malformed.
fn read(value: &[u8]) -> Option<Found<'_>> {
    let (mut fields, mut found) = (Fields::new(value), None);
    while let Some(raw) = fields.next_raw() {
        let (number, value, raw) = raw.ok()?;
        found = match (number, value) {
            (1, Value::Varint(_)) => Some(Found::Null),
            (2, Value::Fixed) => Some(Found::Number(f64::from_le_bytes(*raw.last_chunk()?))),
            (3, Value::Bytes(text)) => Some(Found::String(core::str::from_utf8(text).ok()?)),
            (4, Value::Varint(bool)) => Some(Found::Bool(bool != 0)),
            (5, Value::Bytes(fields)) => Some(Found::Struct(fields)),
            (6, Value::Bytes(values)) => Some(Found::List(List(values))),
            _ => found,
        };
    }
    found
}
