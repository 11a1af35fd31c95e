//! The same messages as plain prost messages.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use xds_machine::message::sotw::Item;
use xds_machine::message::{self, Any, Node, Resource, ResourceError, delta, sotw};
use xds_machine::{Delta, Nonce, ResourceName, Sotw, Status, TypeUrl, proto, server, type_url};

/// The output of `cargo xtask protos`; a test of xtask compares it with the protos.
#[rustfmt::skip]
#[allow(clippy::all, dead_code, missing_docs, unreachable_pub)]
#[path = "../../../src/proto/generated.rs"]
mod generated;

use self::generated::{
    ControlPlane, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Locality,
};

/// `envoy.config.core.v3.Node`, as far as the machines read it. The library itself keeps it as bytes.
#[derive(Clone, PartialEq, Message)]
struct PlainNode {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    cluster: String,
    #[prost(message, optional, tag = "4")]
    locality: Option<Locality>,
    #[prost(string, tag = "6")]
    user_agent_name: String,
    #[prost(string, tag = "7")]
    user_agent_version: String,
    #[prost(string, repeated, tag = "10")]
    client_features: Vec<String>,
}

/// A variant, as far as this test needs it.
pub trait Plain: server::Variant {
    type Message: Clone + PartialEq + std::fmt::Debug;

    fn ask(type_url: &TypeUrl, names: &[ResourceName], node: Node, nonce: Option<Nonce>) -> Self::Request;
    fn message(response: &server::Response<Self>) -> Self::Message;
    fn plain(message: &Self::Message) -> Vec<u8>;
    fn encode(message: &Self::Message) -> Vec<u8>;
    fn decode(bytes: Bytes) -> Result<Self::Message, proto::DecodeError>;
    /// Returns the names of the resources; none if a name is only in an encoded resource.
    fn names(message: &Self::Message) -> Vec<&str>;
}

impl Plain for Sotw {
    type Message = sotw::Response;

    fn ask(type_url: &TypeUrl, names: &[ResourceName], node: Node, nonce: Option<Nonce>) -> sotw::Request {
        let nonce = nonce.unwrap_or_default();
        sotw::Request { node: Some(node.into()), names: names.into(), nonce, ..sotw::Request::new(type_url.clone()) }
    }

    fn message(response: &server::Response<Self>) -> sotw::Response {
        response.into()
    }

    fn plain(message: &sotw::Response) -> Vec<u8> {
        let wrapper = |value: Bytes| generated::Any { type_url: type_url::RESOURCE.into(), value };
        let resources = message.resources.iter().map(|item| match item {
            Item::Bare(body) => any(body),
            Item::Wrapped(wrapped) => wrapper(resource(wrapped).encode_to_vec().into()),
            Item::Malformed => wrapper(Bytes::from_static(&[0xff])),
        });
        DiscoveryResponse {
            version_info: message.version.to_string(),
            resources: resources.collect(),
            canary: false,
            type_url: message.type_url.to_string(),
            nonce: message.nonce.to_string(),
            control_plane: control_plane(&message.control_plane),
            resource_errors: message.errors.iter().map(resource_error).collect(),
        }
        .encode_to_vec()
    }

    fn encode(message: &sotw::Response) -> Vec<u8> {
        proto::sotw::encode_response(message)
    }

    fn decode(bytes: Bytes) -> Result<sotw::Response, proto::DecodeError> {
        proto::sotw::decode_response(bytes)
    }

    fn names(message: &sotw::Response) -> Vec<&str> {
        let names = message.resources.iter().map(|item| match item {
            Item::Wrapped(wrapped) => Some(wrapped.name.as_str()),
            Item::Bare(_) | Item::Malformed => None, // inside
        });
        names.collect::<Option<_>>().unwrap_or_default()
    }
}

impl Plain for Delta {
    type Message = delta::Response;

    fn ask(type_url: &TypeUrl, names: &[ResourceName], node: Node, nonce: Option<Nonce>) -> delta::Request {
        // Only the first request subscribes; the others are ACKs.
        let subscribe = if nonce.is_none() { names.into() } else { Vec::new() };
        let nonce = nonce.unwrap_or_default();
        delta::Request { node: Some(node.into()), subscribe, nonce, ..delta::Request::new(type_url.clone()) }
    }

    fn message(response: &server::Response<Self>) -> delta::Response {
        response.into()
    }

    fn plain(message: &delta::Response) -> Vec<u8> {
        DeltaDiscoveryResponse {
            system_version_info: message.system_version.to_string(),
            resources: message.resources.iter().map(resource).collect(),
            type_url: message.type_url.to_string(),
            nonce: message.nonce.to_string(),
            removed_resources: strings(&message.removed),
            control_plane: control_plane(&message.control_plane),
            removed_resource_names: Vec::new(),
            resource_errors: message.errors.iter().map(resource_error).collect(),
        }
        .encode_to_vec()
    }

    fn encode(message: &delta::Response) -> Vec<u8> {
        proto::delta::encode_response(message)
    }

    fn decode(bytes: Bytes) -> Result<delta::Response, proto::DecodeError> {
        proto::delta::decode_response(bytes)
    }

    fn names(message: &delta::Response) -> Vec<&str> {
        message.resources.iter().map(|resource| resource.name.as_str()).collect()
    }
}

pub fn sotw_request(request: &sotw::Request) -> impl Message + use<> {
    DiscoveryRequest {
        version_info: request.version.to_string(),
        node: request.node.as_deref().map(node),
        resource_names: strings(&request.names),
        type_url: request.type_url.to_string(),
        response_nonce: request.nonce.to_string(),
        error_detail: request.error.as_ref().map(status),
        resource_locators: Vec::new(),
    }
}

pub fn delta_request(request: &delta::Request) -> impl Message + use<> {
    let versions = request.initial_versions.iter();
    DeltaDiscoveryRequest {
        node: request.node.as_deref().map(node),
        type_url: request.type_url.to_string(),
        resource_names_subscribe: strings(&request.subscribe),
        resource_names_unsubscribe: strings(&request.unsubscribe),
        initial_resource_versions: versions.map(|(name, version)| (name.to_string(), version.to_string())).collect(),
        response_nonce: request.nonce.to_string(),
        error_detail: request.error.as_ref().map(status),
        resource_locators_subscribe: Vec::new(),
        resource_locators_unsubscribe: Vec::new(),
    }
}

/// The known fields, followed by the unknown ones.
fn node(node: &Node) -> Bytes {
    let locality = node.locality.as_ref().map(|message::Locality { region, zone, sub_zone }| Locality {
        region: region.clone(),
        zone: zone.clone(),
        sub_zone: sub_zone.clone(),
    });
    let known = PlainNode {
        id: node.id.clone(),
        cluster: node.cluster.clone(),
        locality,
        user_agent_name: node.user_agent_name.clone(),
        user_agent_version: node.user_agent_version.clone(),
        client_features: node.client_features.clone(),
    };
    [&known.encode_to_vec()[..], &node.rest].concat().into()
}

fn any(any: &Any) -> generated::Any {
    generated::Any { type_url: any.type_url.to_string(), value: any.value.clone() }
}

fn resource(resource: &Resource) -> generated::Resource {
    generated::Resource {
        version: resource.version.to_string(),
        resource: resource.body.as_ref().map(any),
        name: resource.name.to_string(),
        aliases: strings(&resource.aliases),
        ttl: resource.ttl.map(duration),
        cache_control: None,
        resource_name: None,
        metadata: None,
    }
}

fn duration(duration: Duration) -> generated::Duration {
    let nanos = duration.subsec_nanos().try_into().expect("less than a second");
    generated::Duration { seconds: duration.as_secs().try_into().expect("a time that protobuf can say"), nanos }
}

fn resource_error(error: &ResourceError) -> generated::ResourceError {
    let name = generated::ResourceName { name: error.name.to_string(), dynamic_parameter_constraints: None };
    generated::ResourceError { resource_name: Some(name), error_detail: error.status.as_ref().map(status) }
}

fn status(status: &Status) -> generated::Status {
    generated::Status { code: status.code, message: status.message.clone(), details: Vec::new() }
}

fn control_plane(identifier: &str) -> Option<ControlPlane> {
    (!identifier.is_empty()).then(|| ControlPlane { identifier: identifier.into() })
}

fn strings(names: &[ResourceName]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}
