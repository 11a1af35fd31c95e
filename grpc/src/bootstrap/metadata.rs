//! The metadata of the node as `google.protobuf.Struct`.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use prost::{Message, Oneof};
use serde_json::{Map, Value as Json};

/// The metadata among the fields of `envoy.config.core.v3.Node`.
#[derive(Clone, PartialEq, Message)]
struct Rest {
    #[prost(message, optional, tag = "3")]
    metadata: Option<Struct>,
}

/// `google.protobuf.Struct`. The keys are in order, so that equal metadata is equal bytes (R-BOOT-23).
#[derive(Clone, PartialEq, Message)]
struct Struct {
    #[prost(btree_map = "string, message", tag = "1")]
    fields: BTreeMap<String, Value>,
}

/// `google.protobuf.ListValue`.
#[derive(Clone, PartialEq, Message)]
struct List {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Value>,
}

/// `google.protobuf.Value`.
#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 6")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Kind {
    #[prost(int32, tag = "1")]
    Null(i32),
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    String(String),
    #[prost(bool, tag = "4")]
    Bool(bool),
    #[prost(message, tag = "5")]
    Struct(Struct),
    #[prost(message, tag = "6")]
    List(List),
}

/// Encodes the metadata as the field of a node; nothing if there is none.
pub(super) fn encode(metadata: &Map<String, Json>) -> Bytes {
    let metadata = (!metadata.is_empty()).then(|| structure(metadata));
    Rest { metadata }.encode_to_vec().into()
}

fn structure(object: &Map<String, Json>) -> Struct {
    Struct { fields: object.iter().map(|(key, json)| (key.clone(), value(json))).collect() }
}

fn value(json: &Json) -> Value {
    let kind = match json {
        Json::Null => Kind::Null(0),
        Json::Bool(flag) => Kind::Bool(*flag),
        Json::Number(number) => Kind::Number(number.as_f64().unwrap_or_default()),
        Json::String(text) => Kind::String(text.clone()),
        Json::Array(values) => Kind::List(List { values: values.iter().map(value).collect() }),
        Json::Object(object) => Kind::Struct(structure(object)),
    };
    Value { kind: Some(kind) }
}
