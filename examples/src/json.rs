//! Canonical JSON (proto3) to messages and back, as in polls over REST and in files of peers.
//!
//! Both spellings of a field are read, `versionInfo` and `version_info`, and not both at once; lowerCamel is written.
//! Unknown fields are ignored, because a newer peer may have more. The input is one value, with nothing after it.

use bytes::Bytes;
use prost_reflect::{DynamicMessage, MessageDescriptor, SerializeOptions, Value};
use xds_machine::message::{Any, sotw};
use xds_machine::server::Response;
use xds_machine::{Sotw, proto};

use crate::reader::{self, DESCRIPTORS, Rules, Tree, any_name};
use crate::{canonical, discovery_file};

/// A poll, and a resource of an etcd: a field that is there twice is an error (R-REST-50).
const POLL: Rules = Rules { ignore_unknown: true, refuse_twice: true };

/// The file of a peer: what Envoy takes.
const FILE: Rules = Rules { ignore_unknown: true, refuse_twice: false };

const REQUEST: &str = "envoy.service.discovery.v3.DiscoveryRequest";
const RESPONSE: &str = "envoy.service.discovery.v3.DiscoveryResponse";

/// Reads a `DiscoveryRequest`.
///
/// # Errors
///
/// One line that says why the input is invalid.
pub fn read_request(json: &[u8]) -> Result<sotw::Request, String> {
    let message = reader::read(&descriptor(REQUEST)?, &parse(json)?, POLL)?;
    proto::sotw::decode_request(canonical::encode(&message).into()).map_err(|error| error.to_string())
}

/// Reads a `DiscoveryResponse`. Equal responses have resources with equal bytes.
///
/// # Errors
///
/// One line that says why the input is invalid.
pub fn read_response(json: &[u8]) -> Result<sotw::Response, String> {
    response_of(parse(json)?, POLL)
}

/// Reads a `DiscoveryResponse` from YAML.
///
/// # Errors
///
/// One line that says why the input is invalid.
pub fn read_yaml_response(yaml: &[u8]) -> Result<sotw::Response, String> {
    response_of(Tree::from_yaml(yaml)?, FILE)
}

/// Reads a `DiscoveryResponse` from the JSON of a file.
///
/// # Errors
///
/// One line that says why the input is invalid.
pub fn read_json_file(json: &[u8]) -> Result<sotw::Response, String> {
    response_of(parse(json)?, FILE)
}

/// Reads a resource that an operator wrote, of the type with this full name, and returns its canonical encoding.
/// `@type` may be left out; an unknown field is an error.
///
/// # Errors
///
/// One line that says why the input is invalid.
pub fn read_resource(name: &str, json: &[u8]) -> Result<Vec<u8>, String> {
    let mut tree = parse(json)?;
    if let Tree::Map(fields) = &mut tree {
        let (types, rest) = std::mem::take(fields).into_iter().partition(|(key, _)| key == "@type");
        *fields = rest;
        let types: Vec<(String, Tree)> = types;
        for (_, said) in types {
            match said {
                Tree::Text(said) if said.contains('/') && any_name(&said) == name => {}
                Tree::Text(said) => return Err(format!("its @type is {said}, not type.googleapis.com/{name}")),
                other => return Err(format!("its @type is {}, not type.googleapis.com/{name}", other.what())),
            }
        }
    }
    let rules = Rules { ignore_unknown: false, ..POLL };
    Ok(canonical::encode(&reader::read(&descriptor(name)?, &tree, rules)?))
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

/// A response in JSON.
#[derive(Debug, Default)]
pub struct Written {
    pub json: Vec<u8>,
    /// A line for each resource that is not in it, because it has no JSON form.
    pub left_out: Vec<String>,
}

/// Writes a response, without the resources that have no JSON form: those that hold a message of a type that is not
/// described.
///
/// # Errors
///
/// One line that says what can't be written.
pub fn write_response(response: &Response<Sotw>) -> Result<Written, String> {
    let mut bytes = Vec::with_capacity(response.encoded_len());
    response.encode(&mut bytes);
    let bytes = Bytes::from(bytes);
    if let Ok(json) = write(RESPONSE, bytes.clone()) {
        return Ok(Written { json, left_out: Vec::new() });
    }
    let mut message = DynamicMessage::decode(descriptor(RESPONSE)?, bytes).map_err(|error| error.to_string())?;
    let mut left_out = Vec::new();
    let resources = message.get_field_by_name_mut("resources").and_then(|resources| resources.as_list_mut());
    resources.into_iter().for_each(|resources| {
        resources.retain(|resource| match resource.as_message().map(serialize) {
            Some(Err(error)) => {
                left_out.push(format!("{}: {error}", shown(resource)));
                false
            }
            _ => true,
        });
    });
    Ok(Written { json: serialize(&message)?, left_out })
}

/// Returns the type and the name of a resource, for people.
fn shown(resource: &Value) -> String {
    let field = |number| resource.as_message()?.get_field_by_number(number).map(|value| value.into_owned());
    let type_url = field(1).and_then(|value| Some(value.as_str()?.to_owned())).unwrap_or_default();
    let value = field(2).and_then(|value| value.as_bytes().cloned()).unwrap_or_default();
    let name = discovery_file::name_of(&Any { type_url: type_url.as_str().into(), value });
    format!("{type_url} {:?}", name.as_ref().map_or("", xds_machine::ResourceName::as_str))
}

/// Writes a request.
///
/// # Errors
///
/// One line that says what can't be written.
pub fn write_request(request: &sotw::Request) -> Result<Vec<u8>, String> {
    write(REQUEST, proto::sotw::encode_request(request).into())
}

fn response_of(tree: Tree, rules: Rules) -> Result<sotw::Response, String> {
    decode_response(&reader::read(&descriptor(RESPONSE)?, &tree, rules)?)
}

fn decode_response(message: &DynamicMessage) -> Result<sotw::Response, String> {
    proto::sotw::decode_response(canonical::encode(message).into()).map_err(|error| error.to_string())
}

fn write(name: &str, bytes: Bytes) -> Result<Vec<u8>, String> {
    let message = DynamicMessage::decode(descriptor(name)?, bytes).map_err(|error| error.to_string())?;
    serialize(&message)
}

fn serialize(message: &DynamicMessage) -> Result<Vec<u8>, String> {
    let mut json = serde_json::Serializer::new(Vec::new());
    message.serialize_with_options(&mut json, &SerializeOptions::new()).map_err(|error| error.to_string())?;
    Ok(json.into_inner())
}

fn descriptor(name: &str) -> Result<MessageDescriptor, String> {
    DESCRIPTORS.get_message_by_name(name).ok_or_else(|| format!("{name} is not described"))
}

fn parse(json: &[u8]) -> Result<Tree, String> {
    if json.is_empty() {
        return Err("the body is empty".into());
    }
    Tree::from_json(json)
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
        assert_eq!(request(nested), Err("node: user_agent_name and userAgentName are the same field".into()));
        let error = request(r#"{"version_info":"1","version_info":"1"}"#).expect_err("twice");
        assert_eq!(error, "version_info is there twice");
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
            ("[]", "DiscoveryRequest is an object, not a list"),
            ("null", "DiscoveryRequest is an object, not null"),
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
        let json = write_response(&response).expect("described").json;
        let read = read_response(&json).expect("a response");
        assert_eq!((read.resources, read.version), (resources, response.version().clone()));
        let text = String::from_utf8(json).expect("text");
        assert!(text.contains(r#""connectTimeout":"1.500s""#) || text.contains(r#""connectTimeout":"1.5s""#), "{text}");
        let unknown = read_response(br#"{"resources":[{"@type":"type.googleapis.com/un.Known"}]}"#);
        assert_eq!(unknown, Err(r#"resources[0]: '@type': there is no message "un.Known""#.into()));
    }
}
