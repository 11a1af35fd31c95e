//! Messages of all kinds, and inputs that make a server send some.

use std::time::Duration;

use bytes::Bytes;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use xds_machine::message::sotw::Item;
use xds_machine::message::{Any, Locality, Node, Resource, ResourceError, delta, feature, sotw};
use xds_machine::{ResourceName, Status, TypeUrl, server, type_url};

/// A stream of a server: the contents of the store, and the subscriptions.
#[derive(Clone, Debug)]
pub struct Script {
    pub type_url: String,
    pub resources: Vec<server::Resource>,
    /// The number of resources added after the pages were encoded.
    pub late: usize,
    pub published: bool,
    pub names: Vec<ResourceName>,
    pub wildcard: bool,
    pub node: Node,
    pub control_plane: Option<String>,
    pub stream: u64,
}

pub fn script() -> impl Strategy<Value = Script> {
    // Pages have 128 slots: there is mostly less than one page, sometimes a few.
    let count = prop_oneof![4 => 0..12_usize, 1 => 120..400_usize];
    let resources = (count, vec(resource(), 12)).prop_map(|(count, some)| {
        let numbered = |at: usize| some[at % some.len()].clone().named(at);
        (0..count).map(numbered).collect::<Vec<_>>()
    });
    let types =
        prop_oneof![Just(type_url::CLUSTER.to_string()), Just(type_url::ENDPOINT.to_string()), Just("é".to_string())];
    let node = (any::<bool>(), any::<bool>()).prop_map(|(ttl, wrapper)| {
        let mut node = Node::new("n");
        node.client_features.extend(ttl.then(|| feature::TTL.into()));
        node.client_features.extend(wrapper.then(|| feature::WRAPPER[0].into()));
        node
    });
    let control_plane = option::of(text());
    (
        types,
        resources,
        any::<bool>(),
        0..20_usize,
        vec(0..20_usize, 1..20),
        any::<bool>(),
        node,
        control_plane,
        any::<u64>(),
    )
        .prop_map(|(type_url, resources, published, late, names, wildcard, node, control_plane, stream)| Script {
            type_url,
            resources: resources.into_iter().map(Made::make).collect(),
            late,
            published,
            names: names.into_iter().map(|at| name(at).as_str().into()).collect(),
            wildcard,
            node,
            control_plane,
            stream,
        })
}

fn name(at: usize) -> String {
    format!("r{at}")
}

/// A resource of a store; its name is set later.
#[derive(Clone, Debug)]
struct Made {
    name: String,
    body: Bytes,
    ttl: Option<Duration>,
    aliases: Vec<ResourceName>,
    version: Option<String>,
}

impl Made {
    fn named(self, at: usize) -> Self {
        Self { name: name(at), ..self }
    }

    fn make(self) -> server::Resource {
        let resource = server::Resource::new(self.name, self.body).with_aliases(self.aliases);
        let resource = match self.ttl {
            Some(ttl) => resource.with_ttl(ttl),
            None => resource,
        };
        match self.version {
            Some(version) => resource.with_version(version),
            None => resource,
        }
    }
}

fn resource() -> impl Strategy<Value = Made> {
    let ttl = prop_oneof![3 => Just(None), 1 => time().prop_map(Some)];
    let aliases = prop_oneof![3 => Just(Vec::new()), 1 => vec(resource_name(), 0..3)];
    (body(), ttl, aliases, option::of(text())).prop_map(|(body, ttl, aliases, version)| Made {
        name: String::new(),
        body,
        ttl,
        aliases,
        version,
    })
}

/// Times that a protobuf `Duration` can express.
fn time() -> impl Strategy<Value = Duration> {
    let seconds = prop_oneof![0..3_u64, 0..1_000_000_u64, Just(i64::MAX as u64)];
    let nanos = prop_oneof![Just(0), 0..1_000_000_000_u32];
    let time = (seconds, nanos).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos));
    time.prop_filter("a TTL of nothing is none", |time| !time.is_zero())
}

/// Texts whose lengths take one or two bytes, with characters of more than one byte.
fn text() -> impl Strategy<Value = String> {
    let text = |chars: Vec<char>| chars.into_iter().collect::<String>();
    prop_oneof![4 => vec(any::<char>(), 0..7).prop_map(text), 1 => vec(any::<char>(), 100..140).prop_map(text)]
}

fn body() -> impl Strategy<Value = Bytes> {
    prop_oneof![4 => vec(any::<u8>(), 0..8), 1 => vec(any::<u8>(), 120..300)].prop_map(Bytes::from)
}

fn resource_name() -> impl Strategy<Value = ResourceName> {
    text().prop_map(ResourceName::from)
}

fn own_type() -> impl Strategy<Value = TypeUrl> {
    let wrapper = |text: &String| text != type_url::RESOURCE;
    text().prop_filter("that would be a wrapper", wrapper).prop_map(TypeUrl::from)
}

fn content() -> impl Strategy<Value = Any> {
    (own_type(), body()).prop_map(|(type_url, value)| Any { type_url, value })
}

fn message_resource() -> impl Strategy<Value = Resource> {
    (resource_name(), text(), vec(resource_name(), 0..3), option::of(content()), option::of(time()))
        .prop_map(|(name, version, aliases, body, ttl)| Resource { name, version: version.into(), aliases, body, ttl })
}

fn status() -> impl Strategy<Value = Status> {
    (any::<i32>(), text()).prop_map(|(code, message)| Status { code, message })
}

fn errors() -> impl Strategy<Value = Vec<ResourceError>> {
    vec((resource_name(), option::of(status())).prop_map(|(name, status)| ResourceError { name, status }), 0..3)
}

fn node() -> impl Strategy<Value = Node> {
    // Field 3, the metadata, and an unknown field.
    let rest = option::of(vec(any::<u8>(), 0..8)).prop_map(|bytes| {
        let metadata = bytes.map_or(Vec::new(), |bytes| [&[0x1a, bytes.len() as u8], &bytes[..]].concat());
        Bytes::from([&metadata[..], &[0xa0, 0x3f, 0x07]].concat())
    });
    let rest = prop_oneof![Just(Bytes::new()), rest];
    let locality = (text(), text(), text()).prop_map(|(region, zone, sub_zone)| Locality { region, zone, sub_zone });
    (text(), text(), option::of(locality), text(), text(), vec(text(), 0..3), rest).prop_map(
        |(id, cluster, locality, user_agent_name, user_agent_version, client_features, rest)| Node {
            id,
            cluster,
            locality,
            user_agent_name,
            user_agent_version,
            client_features,
            rest,
        },
    )
}

pub fn sotw_request() -> impl Strategy<Value = sotw::Request> {
    (option::of(node()), text(), vec(resource_name(), 0..4), text(), text(), option::of(status())).prop_map(
        |(node, type_url, names, version, nonce, error)| sotw::Request {
            node: node.map(Into::into),
            type_url: type_url.into(),
            names,
            version: version.into(),
            nonce: nonce.into(),
            error,
        },
    )
}

pub fn delta_request() -> impl Strategy<Value = delta::Request> {
    let names = || vec(resource_name(), 0..4);
    let versions = btree_map(resource_name(), text().prop_map(Into::into), 0..4);
    (option::of(node()), text(), names(), names(), versions, text(), option::of(status())).prop_map(
        |(node, type_url, subscribe, unsubscribe, initial_versions, nonce, error)| delta::Request {
            node: node.map(Into::into),
            type_url: type_url.into(),
            subscribe,
            unsubscribe,
            initial_versions: initial_versions.into(),
            nonce: nonce.into(),
            error,
        },
    )
}

pub fn sotw_response() -> impl Strategy<Value = sotw::Response> {
    let item = prop_oneof![
        content().prop_map(Item::Bare),
        message_resource().prop_map(|resource| Item::Wrapped(resource.into())),
        Just(Item::Malformed),
    ];
    (text(), vec(item, 0..4), own_type(), text(), text(), errors()).prop_map(
        |(version, resources, type_url, nonce, control_plane, errors)| sotw::Response {
            version: version.into(),
            resources,
            type_url,
            nonce: nonce.into(),
            control_plane,
            errors,
        },
    )
}

pub fn delta_response() -> impl Strategy<Value = delta::Response> {
    (text(), vec(message_resource(), 0..4), vec(resource_name(), 0..4), own_type(), text(), text(), errors()).prop_map(
        |(version, resources, removed, type_url, nonce, control_plane, errors)| delta::Response {
            system_version: version.into(),
            resources,
            removed,
            type_url,
            nonce: nonce.into(),
            control_plane,
            errors,
        },
    )
}
