//! Canonical JSON (proto3) to messages and back, as in polls over REST and in files of peers.
//!
//! Both spellings of a field are read, `versionInfo` and `version_info`, and not both at once; lowerCamel is written.
//! Unknown fields are ignored, because a newer peer may have more. The input is one value, with nothing after it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use bytes::Bytes;
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, SerializeOptions,
};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use xds_machine::message::sotw;
use xds_machine::server::Response;
use xds_machine::{Sotw, proto};

use crate::canonical;

/// The descriptors of the xDS API.
pub static DESCRIPTORS: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(xds_api::FILE_DESCRIPTOR_SET).expect("a descriptor set, checked by tests"));

const REQUEST: &str = "envoy.service.discovery.v3.DiscoveryRequest";
const RESPONSE: &str = "envoy.service.discovery.v3.DiscoveryResponse";

/// Reads a `DiscoveryRequest`.
///
/// # Errors
///
/// One line that says why the input is invalid.
pub fn read_request(json: &[u8]) -> Result<sotw::Request, String> {
    let message = message(REQUEST, parse(json)?)?;
    proto::sotw::decode_request(canonical::encode(&message).into()).map_err(|error| error.to_string())
}

/// Reads a `DiscoveryResponse`. Equal responses have resources with equal bytes.
///
/// # Errors
///
/// One line that says why the input is invalid.
pub fn read_response(json: &[u8]) -> Result<sotw::Response, String> {
    response_of(parse(json)?)
}

/// Reads a `DiscoveryResponse` from YAML.
///
/// # Errors
///
/// One line that says why the input is invalid.
pub fn read_yaml_response(yaml: &[u8]) -> Result<sotw::Response, String> {
    let value: Tree =
        Tree::deserialize(serde_yaml_ng::Deserializer::from_slice(yaml)).map_err(|error| error.to_string())?;
    response_of(value.0)
}

/// Reads a resource that an operator wrote, of the type with this full name, and returns its canonical encoding.
/// `@type` may be left out; an unknown field is an error.
///
/// # Errors
///
/// One line that says why the input is invalid.
pub fn read_resource(name: &str, json: &[u8]) -> Result<Vec<u8>, String> {
    let mut value = parse(json)?;
    let descriptor = descriptor(name)?;
    let said = value.as_object_mut().and_then(|fields| fields.remove("@type"));
    let type_url = format!("type.googleapis.com/{name}");
    if let Some(said) = said.filter(|said| *said != *type_url) {
        let said = said.as_str().map_or(said.to_string(), str::to_owned);
        return Err(format!("its @type is {said}, not {type_url}"));
    }
    one_spelling(&descriptor, &value)?;
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(value, &mut track);
    let message = DynamicMessage::deserialize(descriptor, tracked).map_err(|error| match track.path().to_string() {
        path if path == "." => error.to_string(),
        path => format!("{path}: {error}"),
    })?;
    Ok(canonical::encode(&message))
}

/// Reads a `DiscoveryResponse` from the text format of protobuf.
///
/// # Errors
///
/// One line that says why the input is invalid.
pub fn read_text_response(text: &[u8]) -> Result<sotw::Response, String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let message = DynamicMessage::parse_text_format(descriptor(RESPONSE)?, text).map_err(|error| error.to_string())?;
    decode_response(&message)
}

/// Writes a response.
///
/// # Errors
///
/// One line that says what can't be written: a message of a type that is not described, for example.
pub fn write_response(response: &Response<Sotw>) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(response.encoded_len());
    response.encode(&mut bytes);
    write(RESPONSE, bytes.into())
}

/// Writes a request.
///
/// # Errors
///
/// One line that says what can't be written.
pub fn write_request(request: &sotw::Request) -> Result<Vec<u8>, String> {
    write(REQUEST, proto::sotw::encode_request(request).into())
}

fn response_of(value: Value) -> Result<sotw::Response, String> {
    decode_response(&message(RESPONSE, value)?)
}

fn decode_response(message: &DynamicMessage) -> Result<sotw::Response, String> {
    proto::sotw::decode_response(canonical::encode(message).into()).map_err(|error| error.to_string())
}

fn write(name: &str, bytes: Bytes) -> Result<Vec<u8>, String> {
    let message = DynamicMessage::decode(descriptor(name)?, bytes).map_err(|error| error.to_string())?;
    let mut json = serde_json::Serializer::new(Vec::new());
    message.serialize_with_options(&mut json, &SerializeOptions::new()).map_err(|error| error.to_string())?;
    Ok(json.into_inner())
}

fn descriptor(name: &str) -> Result<MessageDescriptor, String> {
    DESCRIPTORS.get_message_by_name(name).ok_or_else(|| format!("{name} is not described"))
}

fn message(name: &str, value: Value) -> Result<DynamicMessage, String> {
    let descriptor = descriptor(name)?;
    if !value.is_object() {
        return Err(format!("a {} is an object", descriptor.name()));
    }
    one_spelling(&descriptor, &value)?;
    let options = DeserializeOptions::new().deny_unknown_fields(false);
    DynamicMessage::deserialize_with_options(descriptor, value, &options).map_err(|error| error.to_string())
}

fn parse(json: &[u8]) -> Result<Value, String> {
    if json.is_empty() {
        return Err("the body is empty".into());
    }
    // Trailing bytes and a depth of more than 128 are errors.
    serde_json::from_slice::<Tree>(json).map(|tree| tree.0).map_err(|error| error.to_string())
}

/// Refuses a field that is present in both spellings.
fn one_spelling(kind: &MessageDescriptor, value: &Value) -> Result<(), String> {
    let Value::Object(fields) = value else { return Ok(()) };
    let any = (kind.full_name() == "google.protobuf.Any").then(|| fields.get("@type")).flatten();
    if let Some(type_url) = any {
        let name = type_url.as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        return match DESCRIPTORS.get_message_by_name(name) {
            Some(content) if content.full_name().starts_with("google.protobuf.") => Ok(()),
            Some(content) => one_spelling(&content, value),
            None => Ok(()), // decoding reports the unknown type
        };
    }
    if kind.full_name().starts_with("google.protobuf.") {
        return Ok(()); // a form of its own, such as that of Struct
    }
    let mut seen: BTreeMap<u32, &str> = BTreeMap::new();
    for (key, value) in fields {
        let Some(field) = kind.get_field_by_json_name(key).or_else(|| kind.get_field_by_name(key)) else { continue };
        if let Some(other) = seen.insert(field.number(), key) {
            return Err(format!("{other} and {key} are the same field"));
        }
        inner(&field, value)?;
    }
    Ok(())
}

fn inner(field: &FieldDescriptor, value: &Value) -> Result<(), String> {
    let Kind::Message(kind) = field.kind() else { return Ok(()) };
    match value {
        Value::Array(list) => list.iter().try_for_each(|value| one_spelling(&kind, value)),
        Value::Object(map) if field.is_map() => match kind.map_entry_value_field().kind() {
            Kind::Message(kind) => map.values().try_for_each(|value| one_spelling(&kind, value)),
            _ => Ok(()),
        },
        value => one_spelling(&kind, value),
    }
}

/// A value in which no object has a key twice.
struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Tree)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Tree(value)) = seq.next_element()? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Tree(value))) = map.next_entry::<String, Tree>()? {
            if object.contains_key(&key) {
                return Err(Error::custom(format!("the key {key:?} is there twice")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use xds_machine::message::{Node, sotw::Item};
    use xds_machine::server::{Cache, Config, Resource};
    use xds_machine::{Code, Status, TypeUrl, type_url};

    use super::*;

    fn request(json: &str) -> Result<sotw::Request, String> {
        read_request(json.as_bytes())
    }

    #[test]
    fn both_spellings_of_a_field_are_read_but_refused_together() {
        let snake =
            r#"{"version_info":"1","resource_names":["a"],"type_url":"t","node":{"id":"n","user_agent_name":"u"}}"#;
        let camel = r#"{"versionInfo":"1","resourceNames":["a"],"typeUrl":"t","node":{"id":"n","userAgentName":"u"}}"#;
        assert_eq!(request(snake), request(camel));
        assert_eq!(request(camel).expect("a request").version.as_str(), "1");
        let both = r#"{"versionInfo":"1","version_info":"1"}"#;
        assert_eq!(request(both), Err("versionInfo and version_info are the same field".into()));
        let nested = r#"{"node":{"user_agent_name":"a","userAgentName":"b"}}"#;
        assert_eq!(request(nested), Err("userAgentName and user_agent_name are the same field".into()));
        let error = request(r#"{"version_info":"1","version_info":"1"}"#).expect_err("twice");
        assert!(error.starts_with(r#"the key "version_info" is there twice"#), "{error}");
        let metadata = r#"{"node":{"metadata":{"a_b":1,"aB":2}}}"#;
        assert!(request(metadata).is_ok(), "keys of a Struct are data");
    }

    #[test]
    fn absent_null_and_default_are_the_same_and_unknown_fields_ignored() {
        let none = request("{}").expect("a request");
        for json in [
            r#"{"versionInfo":"","node":null,"resourceNames":[]}"#,
            r#"{"unheard_of":1,"versionInfo":null}"#,
            r#"{"typeUrl":""}"#,
        ] {
            assert_eq!(request(json), Ok(none.clone()), "{json}");
        }
        let nested = request(r#"{"node":{"id":"n","unheard":{"of":[1]}},"errorDetail":{"code":3,"unheard":1}}"#);
        assert_eq!(nested.expect("a request").error, Some(Status { code: 3, message: String::new() }));
    }

    #[test]
    fn the_body_is_one_json_object_of_limited_depth() {
        for (json, message) in [
            ("", "the body is empty"),
            ("{} x", "trailing characters at line 1 column 4"),
            ("[]", "a DiscoveryRequest is an object"),
            ("null", "a DiscoveryRequest is an object"),
            ("{", "EOF while parsing an object at line 1 column 1"),
        ] {
            assert_eq!(request(json), Err(message.into()));
        }
        let deep =
            |depth: usize| format!(r#"{{"node":{{"metadata":{}1{}}}}}"#, r#"{"a":"#.repeat(depth), "}".repeat(depth));
        assert!(request(&deep(20)).is_ok());
        for depth in [100, 1000, 100_000] {
            let error = request(&deep(depth)).err();
            assert!(depth == 100 || error.is_some_and(|error| error.starts_with("recursion limit exceeded")));
        }
    }

    #[test]
    fn a_nack_of_an_envoy_is_read_with_its_node_and_error() {
        let json = r#"{"node":{"id":"n","cluster":"c","metadata":{"k":[1,"x",null]},"user_agent_build_version":{"version":
            {"major_number":1,"minor_number":40},"metadata":{"build.type":"RELEASE"}},"extensions":[{"name":"e","category":
            "envoy.x","type_urls":["a.B"]}],"client_features":["envoy.lb.does_not_support_overprovisioning"]},
            "resource_names":["b"],"type_url":"type.googleapis.com/envoy.config.cluster.v3.Cluster",
            "error_detail":{"code":13,"message":"no","details":[{"@type":"type.googleapis.com/google.protobuf.Duration",
            "value":"1.5s"}]}}"#;
        let request = request(json).expect("a request");
        assert_eq!(request.node.as_ref().map(|node| (node.id.as_str(), node.cluster.as_str())), Some(("n", "c")));
        assert_eq!(request.error.as_ref().map(|error| error.code), Some(13));
        assert_eq!((request.names.len(), request.type_url.as_str()), (1, type_url::CLUSTER));
        let again = read_request(&write_request(&request).expect("described")).expect("a request");
        assert_eq!(again, sotw::Request { error: again.error.clone(), ..request });
    }

    #[test]
    fn a_request_is_written_in_lower_camel_without_defaults() {
        let mut request = sotw::Request::new(type_url::ENDPOINT);
        request.names = vec!["a".into()];
        request.node = Some(Node::new("n").into());
        request.error = Some(Status::new(Code::InvalidArgument, "no"));
        let json = String::from_utf8(write_request(&request).expect("described")).expect("text");
        let expected = format!(
            r#"{{"node":{{"id":"n"}},"resourceNames":["a"],"typeUrl":"{}","errorDetail":{{"code":3,"message":"no"}}}}"#,
            type_url::ENDPOINT
        );
        assert_eq!(json, expected);
    }

    #[test]
    fn resources_are_written_and_read() {
        let of = TypeUrl::from(type_url::CLUSTER);
        let body = read_response(
            br#"{"resources":[{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"c",
            "connect_timeout":"1.5s","unheard_of":true}]}"#,
        );
        let Ok(sotw::Response { resources, .. }) = body else { panic!("{body:?}") };
        let [Item::Bare(any)] = &resources[..] else { panic!("{resources:?}") };
        let mut cache = Cache::new(1);
        cache.insert(&of, Resource::new("c", any.value.clone()));
        let request = sotw::Request::new(of);
        let reply = xds_machine::poll::answer(&cache, &Config::ads(), request);
        let xds_machine::poll::Reply::Response(response) = reply else { panic!("{reply:?}") };
        let json = write_response(&response).expect("described");
        let read = read_response(&json).expect("a response");
        assert_eq!((read.resources, read.version), (resources, response.version().clone()));
        let text = String::from_utf8(json).expect("text");
        assert!(text.contains(r#""connectTimeout":"1.500s""#) || text.contains(r#""connectTimeout":"1.5s""#), "{text}");
        let unknown = read_response(br#"{"resources":[{"@type":"type.googleapis.com/un.Known"}]}"#);
        assert_eq!(unknown, Err("message 'un.Known' not found".into()));
    }
}
