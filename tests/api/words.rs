//! Names, times and other small parts of messages.

use std::time::Duration;

use bytes::Bytes;
use xds_machine::client::{Action, Client, Config};
use xds_machine::message::{Any, Locality, Node, delta, sotw};
use xds_machine::resource_type::{ResourceType, TypeRegistry};
use xds_machine::server::{self, Cache, Resource, Server, StreamId};
use xds_machine::service::ClientStatusMethod;
use xds_machine::xdstp::{self, Uri};
use xds_machine::{Delta, Instant, ResourceName, Sotw, Status, TypeUrl, Version, proto};

use crate::hash;

#[test]
fn instants_add_durations_and_subtract_with_saturation() {
    let at = |seconds| Instant::from_epoch(Duration::from_secs(seconds));
    assert_eq!(at(5).saturating_since(at(3)), Duration::from_secs(2));
    assert_eq!(at(3).saturating_since(at(5)), Duration::ZERO);
    assert_eq!((at(3) + Duration::from_secs(2)).since_epoch(), Duration::from_secs(5));
}

#[test]
fn equal_names_and_versions_have_equal_hashes_and_clones_share_memory() {
    assert_eq!(hash(&Version::from("a")), hash(&Version::from("a")));
    assert_ne!(hash(&Version::from("a")), hash(&Version::from("b")));
    let (a, b) = (ResourceName::from("a"), ResourceName::from("b"));
    assert_eq!(hash(&a), hash(&ResourceName::from("a")));
    assert_ne!(hash(&a), hash(&b));
    assert!(a.shares_with(&a.clone()));
    assert!(!a.shares_with(&"a".into()));
}

#[test]
fn a_duplicate_context_parameter_is_an_error() {
    let twice = Err(xdstp::Error::DuplicateParam { key: "k".into() });
    for params in ["k=1&k=2", "k=1&k=1", "k=2&a=1&k=1"] {
        assert_eq!(Uri::parse(&format!("xdstp://a/T/x?{params}")).map(|_| ()), twice, "{params}");
    }
}

#[test]
fn a_message_is_cut_between_characters() {
    let cut = |error_bytes| {
        let limits = server::Limits { error_bytes, ..server::Limits::default() };
        let mut server = Server::<Delta>::new(server::Config::ads().with_limits(limits), StreamId(1));
        let mut cache = Cache::new(1);
        cache.insert(&"t".into(), Resource::new("a", &b"\x0a\x01a"[..]));
        let first = delta::Request { subscribe: vec!["a".into()], ..delta::Request::new("t") };
        server.handle_request(Instant::EPOCH, first).expect("a request");
        let nonce = server.poll_transmit(Instant::EPOCH, &cache).expect("an answer").nonce().clone();
        let error = Some(Status { code: 3, message: "tööx".into() });
        server
            .handle_request(Instant::EPOCH, delta::Request { nonce, error, ..delta::Request::new("t") })
            .expect("a NACK");
        match std::iter::from_fn(|| server.poll_action()).last() {
            Some(server::Action::Nack { error, .. }) => error.message,
            other => panic!("no NACK, but {other:?}"),
        }
    };
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(cut), ["", "t", "t", "tö", "tö", "töö", "tööx", "tööx"]);
}

/// A `google.protobuf.Duration` has less than a second of nanoseconds; an invalid one is read as zero, which is no TTL.
#[test]
fn a_ttl_with_too_many_nanoseconds_is_read_as_zero() {
    let ttl = |nanos: [u8; 5]| {
        let mut bytes = b"\x12\x0d\x1a\x01a\x32\x08\x08\x01\x10".to_vec();
        bytes.extend(nanos);
        proto::delta::decode_response(bytes.into()).expect("a response").resources[0].ttl
    };
    assert_eq!(ttl([0xff, 0x93, 0xeb, 0xdc, 0x03]), Some(Duration::new(1, 999_999_999)));
    assert_eq!(ttl([0x80, 0x94, 0xeb, 0xdc, 0x03]), Some(Duration::ZERO));
}

/// Returns the actions of a wildcard client that receives one unwrapped resource.
fn given(kind: ResourceType, type_url: &str, value: Vec<u8>) -> Vec<Action> {
    let config = Config::new(Node::new("n")).with_types(TypeRegistry::new([kind]));
    let mut client = Client::<Sotw>::new(config);
    client.resources_mut(&"t".into()).subscribe(["*"]).expect("a name");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    let response = sotw::Response {
        version: "1".into(),
        resources: vec![sotw::Item::Bare(Any { type_url: TypeUrl::from(type_url), value: Bytes::from(value) })],
        type_url: "t".into(),
        nonce: "1".into(),
        control_plane: String::new(),
        errors: Vec::new(),
    };
    client.handle_response(Instant::EPOCH, response).expect("a response");
    std::iter::from_fn(|| client.poll_action()).collect()
}

fn name_of(kind: ResourceType, value: Vec<u8>) -> String {
    match &given(kind, "t", value)[..] {
        [Action::Apply(update)] => update.resources().map(|resource| resource.name().to_string()).collect(),
        other => panic!("no update, but {other:?}"),
    }
}

/// The name of an unwrapped resource is in one of its fields, whatever the field's number and length; the last
/// occurrence counts.
#[test]
fn the_name_of_an_unwrapped_resource_is_read_from_its_name_field() {
    let kind = || ResourceType::partial("t");
    assert_eq!(name_of(kind(), b"\x0a\x01a\x12\x01b".to_vec()), "a");
    assert_eq!(name_of(kind(), b"\x0a\x01a\x0a\x01b".to_vec()), "b");
    assert_eq!(name_of(kind().named_by_field(2), b"\x0a\x01a\x12\x01b".to_vec()), "b");
    assert_eq!(name_of(kind().named_by_field(16), b"\x0a\x01a\x82\x01\x01b".to_vec()), "b");
    let long = "n".repeat(200);
    assert_eq!(name_of(kind(), [b"\x12\x01b\x0a\xc8\x01", long.as_bytes()].concat()), long);

    // The fault of a resource of another type shows the name in that field.
    match &given(kind().named_by_field(2), "u", b"\x0a\x01a\x12\x01b".to_vec())[..] {
        [Action::Rejected { faults, .. }] => {
            assert_eq!(faults[0].reason.to_string(), "resource 0 (b, it seems) has the type u");
        }
        other => panic!("nothing wrong, but {other:?}"),
    }
}

#[test]
fn paths_of_client_status_methods_are_converted_both_ways() {
    let service = "/envoy.service.status.v3.ClientStatusDiscoveryService";
    for (method, name) in
        [(ClientStatusMethod::Fetch, "FetchClientStatus"), (ClientStatusMethod::Stream, "StreamClientStatus")]
    {
        let path = format!("{service}/{name}");
        assert_eq!((method.path(), ClientStatusMethod::of_path(&path)), (path, Some(method)));
    }
    for path in [service.to_owned(), format!("{service}/Other"), format!("{service}FetchClientStatus"), "/".into()] {
        assert_eq!(ClientStatusMethod::of_path(&path), None, "{path}");
    }
}

#[test]
fn the_builder_methods_of_a_node_set_its_fields() {
    let locality = Locality { region: "r".into(), zone: "z".into(), sub_zone: "s".into() };
    let node = Node::new("n").with_cluster("c").with_locality(locality.clone()).with_user_agent("u", "1");
    let node = node.with_feature("f").with_rest(&b"\x3a\x00"[..]);
    let expected = Node {
        id: "n".into(),
        cluster: "c".into(),
        locality: Some(locality),
        user_agent_name: "u".into(),
        user_agent_version: "1".into(),
        client_features: vec!["f".into()],
        rest: (&b"\x3a\x00"[..]).into(),
    };
    assert_eq!(node, expected);
}
