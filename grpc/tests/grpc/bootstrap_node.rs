//! The bootstrap file: R-BOOT, the node.

use prost_reflect::prost::Message;
use prost_reflect::{DynamicMessage, Value as Reflected};
use serde_json::{Value, json};
use xds_machine::client::{Action, Client};
use xds_machine::message::{Locality, Node};
use xds_machine::{Sotw, TypeUrl, proto, type_url};
use xds_machine_grpc::bootstrap::{Bootstrap, Era};

use super::bootstrap::{AGENT, file, parse, server, supports};
use super::resource::FULL;

/// R-BOOT-20: Without a node, the user agent and the features are still sent. R-BOOT-24: The features of gRPC.
#[test]
fn user_agent_and_features_are_sent_without_a_node_in_the_file() {
    let bootstrap = parse(file(json!({})));
    let feature = "envoy.lb.does_not_support_overprovisioning";
    assert_eq!(bootstrap.node(&AGENT), Node::new("").with_user_agent("agent", "1").with_feature(feature));
    let config = bootstrap.servers_config(bootstrap.node(&AGENT), Era::A53);
    let sent = config.servers().next().expect("a server").node();
    assert_eq!(sent.client_features, [feature, "xds.config.resource-in-sotw"]);
}

/// R-BOOT-21: The file sets id, cluster, locality and metadata only. R-BOOT-22: A locality without a name is none.
#[test]
fn the_node_takes_id_cluster_and_locality_from_the_file() {
    let node = |node: Value| parse(file(json!({"node": node}))).node(&AGENT);
    let odd = json!({
        "id": "i", "cluster": "c", "locality": {"zone": "z"},
        "user_agent_name": "x", "user_agent_version": 7, "build_version": [], "client_features": ["x"],
    });
    let expected = Node::new("i")
        .with_cluster("c")
        .with_locality(Locality { zone: "z".into(), ..Locality::default() })
        .with_user_agent("agent", "1")
        .with_feature("envoy.lb.does_not_support_overprovisioning");
    assert_eq!(node(odd.clone()), expected);
    assert_eq!(
        parse(file(json!({"node": odd}))).identity().to_json(),
        json!({"id": "i", "cluster": "c", "locality": {"zone": "z"}})
    );
    for none in [json!({}), json!({"region": "", "zone": "", "sub_zone": ""})] {
        assert_eq!(node(json!({"locality": none})).locality, None);
    }
}

/// R-BOOT-23: Metadata is any JSON object, as `google.protobuf.Struct`, and equal metadata is equal bytes.
#[test]
fn metadata_is_encoded_as_a_protobuf_struct() {
    let metadata = json!({
        "z": null, "n": 7, "f": -1.5, "big": 1e300, "max": u64::MAX, "s": "x", "t": true,
        "l": [1, "a", [null], {}], "o": {"b": {"c": []}, "a": ""},
    });
    let node = parse(file(json!({"node": {"metadata": metadata}}))).node(&AGENT);
    let message = FULL.get_message_by_name("envoy.config.core.v3.Node").expect("a message");
    let full = DynamicMessage::decode(message, node.rest.clone()).expect("a node");
    assert_eq!(full.encode_to_vec().len(), node.rest.len(), "and no other fields");
    let Some(Reflected::Message(read)) = full.get_field_by_name("metadata").map(|field| field.into_owned()) else {
        panic!("metadata")
    };
    let expected = json!({
        "z": null, "n": 7.0, "f": -1.5, "big": 1e300, "max": u64::MAX as f64, "s": "x", "t": true,
        "l": [1.0, "a", [null], {}], "o": {"b": {"c": []}, "a": ""},
    });
    assert_eq!(serde_json::to_value(&read).expect("JSON"), expected);
    // The order of the keys in the text has no effect.
    let bytes = |text: &str| {
        let text = format!("{{\"xds_servers\": [{}], \"node\": {{\"metadata\": {text}}}}}", server("a"));
        Bootstrap::parse(&text, supports).expect("valid").node(&AGENT).rest
    };
    assert_eq!(bytes(r#"{"a": 1, "b": {"c": 1, "d": 2}}"#), bytes(r#"{"b": {"d": 2, "c": 1}, "a": 1}"#));
    assert_eq!(bytes(r#"{"a": 1}"#)[..], *b"\x1a\x10\x0a\x0e\x0a\x01a\x12\x09\x11\0\0\0\0\0\0\xf0\x3f");
    assert!(bytes("{}").is_empty());
}

/// R-BOOT-21, on a complete connection: the first request of a client has the node of the file.
#[test]
fn the_first_request_contains_the_node() {
    let bootstrap = parse(file(json!({"node": {"id": "i", "metadata": {"k": "v"}}})));
    let config = bootstrap.servers_config(bootstrap.node(&AGENT), Era::A53);
    let mut client = Client::<Sotw>::new(config.servers().next().expect("a server").clone());
    client.resources_mut(&TypeUrl::from(type_url::LISTENER)).subscribe(["l"]).expect("a name");
    client.handle_open();
    let request = client.poll_transmit().expect("a request").request;
    let bytes = proto::sotw::encode_request(&request);
    let message = FULL.get_message_by_name("envoy.service.discovery.v3.DiscoveryRequest").expect("a message");
    let full = DynamicMessage::decode(message, bytes.as_slice()).expect("a request");
    let node = serde_json::to_value(&full).expect("JSON")["node"].clone();
    let features = json!(["envoy.lb.does_not_support_overprovisioning", "xds.config.resource-in-sotw"]);
    assert_eq!(
        node,
        json!({
            "id": "i", "metadata": {"k": "v"}, "userAgentName": "agent", "userAgentVersion": "1", "clientFeatures": features,
        })
    );
    assert!(!matches!(client.poll_action(), Some(Action::Apply(_))));
}
