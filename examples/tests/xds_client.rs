//! `xds_client` against servers that follow the protocol, and servers that don't.

mod program;
mod rude;

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use program::{Program, soon};
use rude::{Peer, Rude};
use serde_json::{Value, json};
use tonic::Status;
use xds_machine::message::{Any, Resource, delta, sotw};
use xds_machine::type_url::{CLUSTER, ENDPOINT, LISTENER, ROUTE};
use xds_machine::{Delta, Sotw, proto};

fn start(server: SocketAddr, arguments: &str) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xds_client"));
    Program::start(command.arg("--server").arg(format!("http://{server}")).args(arguments.split_whitespace()))
}

/// Returns the remaining output and the exit status, once the program ends.
async fn rest(mut program: Program) -> (Vec<Value>, Option<i32>) {
    let mut lines = Vec::new();
    while let Some(line) = soon("the end", program.lines.recv()).await {
        lines.push(line);
    }
    (lines, program.child.wait().expect("an end").code())
}

fn named(name: &str, content: &str) -> Any {
    json_resource(CLUSTER, json!({ "name": name, "altStatName": content }))
}

/// Encodes a resource from its JSON.
fn json_resource(type_url: &str, content: Value) -> Any {
    let name = type_url.rsplit('/').next().expect("a name");
    let pool = prost_reflect::DescriptorPool::decode(xds_api::FILE_DESCRIPTOR_SET).expect("descriptors");
    let kind = pool.get_message_by_name(name).expect("a known type");
    let message = prost_reflect::DynamicMessage::deserialize(kind, content).expect("well formed");
    Any { type_url: type_url.into(), value: prost_reflect::prost::Message::encode_to_vec(&message).into() }
}

fn sotw(type_url: &str, version: &str, nonce: &str, resources: impl IntoIterator<Item = Any>) -> Vec<u8> {
    proto::sotw::encode_response(&sotw::Response {
        version: version.into(),
        resources: resources.into_iter().map(sotw::Item::Bare).collect(),
        type_url: type_url.into(),
        nonce: nonce.into(),
        control_plane: String::new(),
        errors: vec![],
    })
}

fn delta(type_url: &str, nonce: &str, resources: &[(&str, &str, Any)], removed: &[&str]) -> Vec<u8> {
    let resource = |(name, version, any): &(&str, &str, Any)| Resource {
        name: (*name).into(),
        version: (*version).into(),
        aliases: vec![],
        body: Some(any.clone()),
        ttl: None,
    };
    proto::delta::encode_response(&delta::Response {
        system_version: "s".into(),
        resources: resources.iter().map(resource).collect(),
        removed: removed.iter().map(|&name| name.into()).collect(),
        type_url: type_url.into(),
        nonce: nonce.into(),
        control_plane: String::new(),
        errors: vec![],
    })
}

/// Returns the fields of a request without its node: type, names, version, nonce, error.
fn said(request: &sotw::Request) -> (&str, Vec<&str>, &str, &str, Option<&str>) {
    let error = request.error.as_ref().map(|error| error.message.as_str());
    let names = request.names.iter().map(|name| name.as_str()).collect();
    (request.type_url.as_str(), names, request.version.as_str(), request.nonce.as_str(), error)
}

/// Returns the fields of a request without its node: type, subscribed, unsubscribed, nonce, error.
fn said_delta(request: &delta::Request) -> (&str, Vec<&str>, Vec<&str>, &str, Option<&str>) {
    let error = request.error.as_ref().map(|error| error.message.as_str());
    let subscribe = request.subscribe.iter().map(|name| name.as_str()).collect();
    let unsubscribe = request.unsubscribe.iter().map(|name| name.as_str()).collect();
    (request.type_url.as_str(), subscribe, unsubscribe, request.nonce.as_str(), error)
}

fn opened(stream: u64, server: &Rude<impl proto::Wire>) -> Value {
    json!({ "open": { "stream": stream, "server": format!("http://{}/", server.address) } })
}

/// Asserts that a line reports the end of a stream, and that the next one follows within the longest delay.
fn assert_closed(line: &Value, reason: &str, server: SocketAddr) {
    let close = &line["close"];
    assert_eq!((&close["reason"], &close["server"]), (&json!(reason), &json!(format!("http://{server}/"))));
    let again = close["again_in_ms"].as_u64().unwrap_or_else(|| panic!("when is the next? {line}"));
    assert!(again <= 12_000, "{line}");
}

fn applied(type_url: &str, version: &str, resources: &[(&str, &str, &Any)], removed: &[&str]) -> Value {
    let resources = resources
        .iter()
        .map(|(name, version, any)| json!({ "name": name, "version": version, "size": any.value.len() }));
    let resources: Vec<Value> = resources.collect();
    json!({ "apply": { "type_url": type_url, "version": version, "resources": resources, "removed": removed } })
}

#[tokio::test]
async fn the_first_requests_do_not_wait_for_headers() {
    let mut server = Rude::<Sotw>::start().await;
    let mut program = start(server.address, "--variant sotw --node n1 --subscribe cds --subscribe eds=b,a");
    let mut peer = server.stream().await;
    let first = peer.request().await;
    assert_eq!(first.node.as_ref().expect("the first names its node").id, "n1");
    assert_eq!(said(&first), (CLUSTER, vec![], "", "", None));
    let second = peer.request().await;
    assert_eq!((said(&second), second.node.as_ref()), ((ENDPOINT, vec!["a", "b"], "", "", None), None));
    peer.send_headers(Ok(()));
    assert_eq!(program.line().await, opened(1, &server));

    let (a, b) = (named("a", "x"), named("b", "yz"));
    peer.send(sotw(CLUSTER, "7", "n1", [b.clone(), a.clone()])).await;
    assert_eq!(program.line().await, applied(CLUSTER, "7", &[("a", "7", &a), ("b", "7", &b)], &[]));
    assert_eq!(said(&peer.request().await), (CLUSTER, vec![], "7", "n1", None));
    peer.send(sotw(CLUSTER, "8", "n2", [b.clone()])).await;
    assert_eq!(program.line().await, applied(CLUSTER, "8", &[("b", "8", &b)], &["a"]));
    assert_eq!(said(&peer.request().await), (CLUSTER, vec![], "8", "n2", None));

    // The stream breaks: the next one subscribes again, with the version of the accepted resources.
    peer.responses.send(Err(Status::aborted("enough"))).await.expect("the stream lives");
    assert_closed(&program.line().await, "Aborted: enough", server.address);
    let mut peer = server.accept().await;
    assert_eq!(program.line().await, opened(2, &server));
    assert_eq!(said(&peer.request().await), (CLUSTER, vec![], "8", "", None));
    assert_eq!(said(&peer.request().await), (ENDPOINT, vec!["a", "b"], "", "", None));
}

#[tokio::test]
async fn bad_resources_are_rejected_by_name_and_the_others_are_applied() {
    let mut server = Rude::<Delta>::start().await;
    let mut program = start(server.address, "--variant delta --subscribe cds=a,b,c,d");
    let mut peer = server.accept().await;
    assert_eq!(said_delta(&peer.request().await), (CLUSTER, vec!["a", "b", "c", "d"], vec![], "", None));
    assert_eq!(program.line().await, opened(1, &server));

    let (a, b) = (named("a", "x"), named("b", "x"));
    peer.send(delta(CLUSTER, "1", &[("a", "1", a.clone()), ("b", "1", b.clone())], &["c"])).await;
    assert_eq!(program.line().await, json!({ "missing": { "type_url": CLUSTER, "name": "c" } }));
    assert_eq!(program.line().await, applied(CLUSTER, "s", &[("a", "1", &a), ("b", "1", &b)], &[]));
    assert_eq!(said_delta(&peer.request().await), (CLUSTER, vec![], vec![], "1", None));

    // A resource that can't be decoded, a resource of another type, and a valid one.
    let broken = Any { type_url: CLUSTER.into(), value: b"\x0a\x01a\xff"[..].into() };
    let listener = json_resource(LISTENER, json!({ "name": "b" }));
    let d = named("d", "z");
    peer.send(delta(CLUSTER, "2", &[("a", "2", broken), ("b", "2", listener), ("d", "2", d.clone())], &[])).await;
    let wrong_type = format!("has the type {LISTENER}");
    assert_eq!(program.line().await, applied(CLUSTER, "s", &[("d", "2", &d)], &[]));
    // The faults found by the machine and by the program are in one line.
    let no_cluster = "is no envoy.config.cluster.v3.Cluster: failed to decode Protobuf message: invalid varint";
    let errors = json!([{ "name": "b", "message": wrong_type }, { "name": "a", "message": no_cluster }]);
    assert_eq!(program.line().await, json!({ "reject": { "type_url": CLUSTER, "errors": errors } }));
    let error = format!("b: {wrong_type}; a: {no_cluster}");
    assert_eq!(said_delta(&peer.request().await), (CLUSTER, vec![], vec![], "2", Some(error.as_str())));

    // Only accepted resources count as held.
    drop(peer);
    assert_closed(&program.line().await, "the server ended the stream", server.address);
    let mut peer = server.accept().await;
    let again = peer.request().await;
    let versions: Vec<_> = again.initial_versions.iter().collect();
    assert_eq!(versions, [("a", "1"), ("b", "1"), ("d", "2")]);
}

#[tokio::test]
async fn every_response_of_a_subscribed_type_is_answered_once_and_in_order() {
    let mut server = Rude::<Sotw>::start().await;
    let mut program = start(server.address, "--variant sotw --subscribe cds");
    let mut peer = server.accept().await;
    assert_eq!(said(&peer.request().await), (CLUSTER, vec![], "", "", None));
    let (a, b) = (named("a", "x"), named("b", "x"));
    // The same nonce three times, a duplicate name, types without a subscription, and no nonce at all.
    let twice = "resource a is in the response twice";
    assert_eq!(program.line().await, opened(1, &server));
    peer.send(sotw(CLUSTER, "1", "same", [a.clone()])).await;
    assert_eq!(said(&peer.request().await), (CLUSTER, vec![], "1", "same", None));
    assert_eq!(program.line().await, applied(CLUSTER, "1", &[("a", "1", &a)], &[]));
    peer.send(sotw(CLUSTER, "2", "same", [a.clone(), a.clone()])).await;
    assert_eq!(said(&peer.request().await), (CLUSTER, vec![], "1", "same", Some(twice)));
    let rejected = json!({ "type_url": CLUSTER, "errors": [{ "name": null, "message": twice }] });
    assert_eq!(program.line().await, json!({ "reject": rejected }));
    peer.send(sotw(ROUTE, "9", "other", [])).await;
    peer.send(sotw("", "9", "none", [])).await;
    peer.send(sotw(CLUSTER, "3", "same", [a.clone(), b.clone()])).await;
    assert_eq!(said(&peer.request().await), (CLUSTER, vec![], "3", "same", None));
    assert_eq!(program.line().await, applied(CLUSTER, "3", &[("a", "3", &a), ("b", "3", &b)], &[]));
    peer.send(sotw(CLUSTER, "4", "", [b.clone()])).await;
    assert_eq!(said(&peer.request().await), (CLUSTER, vec![], "4", "", None));
    assert_eq!(program.line().await, applied(CLUSTER, "4", &[("b", "4", &b)], &["a"]));
}

#[tokio::test]
async fn an_invalid_response_ends_the_stream_and_not_the_program() {
    let mut server = Rude::<Sotw>::start().await;
    let mut program = start(server.address, "--variant sotw --subscribe cds --for 30");
    let mut peer = server.accept().await;
    peer.request().await;
    assert_eq!(program.line().await, opened(1, &server));
    peer.send(&b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"[..]).await;
    let reason = "InvalidArgument: malformed DiscoveryResponse: failed to decode Protobuf message: invalid varint";
    assert_closed(&program.line().await, reason, server.address);
    let mut peer = server.accept().await;
    peer.request().await;
    assert_eq!(program.line().await, opened(2, &server));
    // A nonce that is too long to be echoed.
    peer.send(sotw(CLUSTER, "1", &"n".repeat(2000), [])).await;
    let reason = format!("peer misbehaved: nonce of 2000 bytes in a response for {CLUSTER}, limit 1024");
    assert_closed(&program.line().await, &reason, server.address);
    server.accept().await.request().await;
}

#[tokio::test]
async fn a_server_that_refuses_streams_is_retried_with_a_backoff() {
    let mut server = Rude::<Delta>::start().await;
    let program = start(server.address, "--variant delta --subscribe cds --for 5");
    let ended = tokio::spawn(rest(program));
    let mut streams = 0;
    while !ended.is_finished() {
        if let Ok(mut peer) = tokio::time::timeout(Duration::from_millis(200), server.stream()).await {
            peer.send_headers(Err(Status::unavailable("go away")));
            streams += 1;
        }
    }
    let (lines, status) = ended.await.expect("no panic");
    assert_eq!(status, Some(0));
    assert!((2..=15).contains(&streams), "{streams} streams");
    assert_eq!(lines.len(), streams);
    lines.iter().for_each(|line| assert_closed(line, "Unavailable: go away", server.address));
}

#[tokio::test]
async fn an_unreachable_server_is_retried_until_it_is_reachable() {
    // A separate address, because the program could otherwise connect to the server of another test.
    let away = TcpListener::bind("127.0.0.77:0").expect("a port").local_addr().expect("an address");
    let mut program = start(away, "--variant sotw --subscribe cds=a --for 30");
    let reason = program.line().await["close"]["reason"].as_str().expect("a reason").to_string();
    assert_eq!(reason, "transport error: Connection refused (os error 111)");
    let mut server = Rude::<Sotw>::at(away).await;
    let mut peer = server.accept().await;
    assert_eq!(said(&peer.request().await), (CLUSTER, vec!["a"], "", "", None));
    let opened = opened(1, &server);
    while program.line().await != opened {}
    drop(peer);
    server.stop().await;
    assert!(program.line().await["close"]["reason"].is_string());
    let (lines, status) = rest(start(away, "--variant sotw --subscribe cds --for 0.5")).await;
    assert_eq!(status, Some(0));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["close"]["reason"].as_str(), Some(reason.as_str()));
}

/// A SotW resource carries its name in its body. If the body can't be decoded, the name is recovered as far as
/// possible.
#[tokio::test]
async fn sotw_rejected_resources_are_named_in_the_nack() {
    let mut server = Rude::<Sotw>::start().await;
    let _program = start(server.address, "--variant sotw --subscribe cds");
    let mut peer = server.accept().await;
    peer.request().await;
    peer.send(sotw(CLUSTER, "1", "n1", [named("a", "x"), named("b", "x")])).await;
    assert_eq!(said(&peer.request().await), (CLUSTER, vec![], "1", "n1", None));
    let broken = |bytes: &'static [u8]| Any { type_url: CLUSTER.into(), value: bytes.into() };
    // `lb_policy` (field 6) as a message; a truncated message; a listener.
    let bad =
        [broken(b"\x0a\x01a\x32\x00"), broken(b"\x0a\x01b\x1a\x09"), json_resource(LISTENER, json!({ "name": "l" }))];
    peer.send(sotw(CLUSTER, "2", "n2", bad)).await;
    let request = peer.request().await;
    let (.., error) = said(&request);
    let error = error.expect("a NACK");
    let wrong_type =
        format!("resource 2 (l, it seems) has the type {LISTENER}; a: is no envoy.config.cluster.v3.Cluster: ");
    assert!(error.starts_with(&format!("resource 1 (b, it seems) can't be read; {wrong_type}")), "{error}");
    // The rejection lost nothing.
    peer.send(sotw(CLUSTER, "3", "n3", [named("b", "x")])).await;
    assert_eq!(said(&peer.request().await), (CLUSTER, vec![], "3", "n3", None));
}

/// The peer accepts connections and bytes, and sends nothing.
#[tokio::test]
async fn a_server_that_accepts_and_is_silent_is_disconnected_and_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (connected, connections) = mpsc::channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().map(|stream| stream.expect("a connection")) {
            connected.send(Instant::now()).expect("the test goes on");
            thread::spawn(move || stream.read_to_end(&mut Vec::new()));
        }
    });
    let mut program = start(address, "--variant delta --subscribe cds=a --for 60");
    assert_closed(&program.line().await, "the server accepts connections and is silent", address);
    let limit = Duration::from_secs(20);
    let first = connections.recv_timeout(limit).expect("a connection");
    assert!(connections.recv_timeout(limit).expect("another") - first < limit);
}

/// A server that sends no response is no black hole: a subscribed name that it never sends does not exist.
#[tokio::test]
async fn a_resource_that_is_not_sent_is_reported_missing_even_without_headers() {
    let mut server = Rude::<Sotw>::start().await;
    let mut program = start(server.address, "--variant sotw --subscribe eds=a");
    let mut peer = server.stream().await;
    peer.request().await;
    assert_eq!(program.line().await, json!({ "missing": { "type_url": ENDPOINT, "name": "a" } }));
}

fn listener(name: &str, route: &str) -> Any {
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "rds": { "configSource": { "ads": {} }, "routeConfigName": route },
    });
    json_resource(LISTENER, json!({ "name": name, "apiListener": { "apiListener": manager } }))
}

fn route(name: &str, clusters: &[&str]) -> Any {
    let weighted: Vec<Value> = clusters.iter().map(|name| json!({ "name": name, "weight": 1 })).collect();
    let route = json!({ "match": { "prefix": "/" }, "route": { "weightedClusters": { "clusters": weighted } } });
    json_resource(
        ROUTE,
        json!({ "name": name, "virtualHosts": [{ "name": "all", "domains": ["*"], "routes": [route] }] }),
    )
}

fn cluster(name: &str, service: Option<&str>) -> Any {
    let service = service.map_or(json!({}), |service| json!({ "serviceName": service }));
    json_resource(CLUSTER, json!({ "name": name, "type": "EDS", "edsClusterConfig": service }))
}

#[tokio::test]
async fn delta_referenced_resources_are_subscribed_and_later_unsubscribed() {
    let mut server = Rude::<Delta>::start().await;
    let _program = start(server.address, "--variant delta --subscribe lds=l --follow");
    let mut peer = server.accept().await;
    let mut talk = Talk { peer: &mut peer, nonces: 0 };
    assert_eq!(said_delta(&talk.peer.request().await), (LISTENER, vec!["l"], vec![], "", None));
    talk.give(LISTENER, &[("l", "1", listener("l", "r"))]).await;
    assert_eq!(said_delta(&talk.peer.request().await), (ROUTE, vec!["r"], vec![], "", None));
    talk.give(ROUTE, &[("r", "1", route("r", &["c1", "c2"]))]).await;
    assert_eq!(said_delta(&talk.peer.request().await), (CLUSTER, vec!["c1", "c2"], vec![], "", None));
    talk.give(CLUSTER, &[("c1", "1", cluster("c1", None)), ("c2", "1", cluster("c2", Some("e2")))]).await;
    assert_eq!(said_delta(&talk.peer.request().await), (ENDPOINT, vec!["c1", "e2"], vec![], "", None));
    // A cluster that is no longer referred to is unsubscribed from, and so are its endpoints.
    talk.give(ROUTE, &[("r", "2", route("r", &["c2"]))]).await;
    assert_eq!(said_delta(&talk.peer.request().await), (CLUSTER, vec![], vec!["c1"], "", None));
    assert_eq!(said_delta(&talk.peer.request().await), (ENDPOINT, vec![], vec!["c1"], "", None));
    // The listener is removed, and with it everything that it referred to.
    talk.peer.send(delta(LISTENER, "gone", &[], &["l"])).await;
    assert_eq!(said_delta(&talk.peer.request().await), (LISTENER, vec![], vec![], "gone", None));
    assert_eq!(said_delta(&talk.peer.request().await), (ROUTE, vec![], vec!["r"], "", None));
    assert_eq!(said_delta(&talk.peer.request().await), (CLUSTER, vec![], vec!["c2"], "", None));
    assert_eq!(said_delta(&talk.peer.request().await), (ENDPOINT, vec![], vec!["e2"], "", None));
}

struct Talk<'a> {
    peer: &'a mut Peer<Delta>,
    nonces: usize,
}

impl Talk<'_> {
    /// Sends resources and receives the ACK.
    async fn give(&mut self, type_url: &str, resources: &[(&str, &str, Any)]) {
        self.nonces += 1;
        let nonce = self.nonces.to_string();
        self.peer.send(delta(type_url, &nonce, resources, &[])).await;
        assert_eq!(said_delta(&self.peer.request().await), (type_url, vec![], vec![], nonce.as_str(), None));
    }
}

#[tokio::test]
async fn sotw_resources_referenced_from_the_wildcard_are_subscribed() {
    let mut server = Rude::<Sotw>::start().await;
    let _program = start(server.address, "--variant sotw --subscribe cds --subscribe lds --follow");
    let mut peer = server.accept().await;
    assert_eq!(said(&peer.request().await), (CLUSTER, vec![], "", "", None));
    assert_eq!(said(&peer.request().await), (LISTENER, vec![], "", "", None));
    peer.send(sotw(CLUSTER, "1", "c1", [cluster("c1", None), cluster("c2", None)])).await;
    assert_eq!(said(&peer.request().await), (CLUSTER, vec![], "1", "c1", None));
    assert_eq!(said(&peer.request().await), (ENDPOINT, vec!["c1", "c2"], "", "", None));
    peer.send(sotw(LISTENER, "1", "l1", [listener("l", "r")])).await;
    assert_eq!(said(&peer.request().await), (LISTENER, vec![], "1", "l1", None));
    assert_eq!(said(&peer.request().await), (ROUTE, vec!["r"], "", "", None));
    peer.send(sotw(CLUSTER, "2", "c2", [cluster("c2", None)])).await;
    assert_eq!(said(&peer.request().await), (CLUSTER, vec![], "2", "c2", None));
    assert_eq!(said(&peer.request().await), (ENDPOINT, vec!["c2"], "", "", None));
}

#[test]
fn invalid_arguments_are_an_error_whose_first_line_names_the_cause() {
    let good = "--subscribe cds --variant delta --server";
    let run = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xds_client"));
        let output = command.args(arguments.split_whitespace()).output().expect("the program starts");
        let text = String::from_utf8(output.stderr).expect("text");
        assert!(output.stdout.is_empty(), "{arguments}");
        (text.lines().next().unwrap_or_default().to_string(), output.status.code())
    };
    let invalid = |value: &str, flag: &str, why: &str| format!("invalid value '{value}' for '{flag}': {why}");
    for (arguments, error) in [
        ("", "the following required arguments were not provided:".to_string()),
        ("--subscribe", "a value is required for '--subscribe <TYPE[=NAME,..]>' but none was supplied".into()),
        ("--what", "unexpected argument '--what' found".into()),
        ("--variant soap", "invalid value 'soap' for '--variant <VARIANT>'".into()),
        (
            "--subscribe xyz",
            invalid("xyz", "--subscribe <TYPE[=NAME,..]>", "no type \"xyz\": give a type URL, or lds, cds, .."),
        ),
        ("--subscribe eds=a,,b", invalid("eds=a,,b", "--subscribe <TYPE[=NAME,..]>", "it has an empty name")),
        ("--server ftp://x", invalid("ftp://x", "--server <URL>", "it must be http://HOST:PORT or https://HOST:PORT")),
        ("--for ever", invalid("ever", "--for <TIME>", "it must be a number with ms, s or m")),
        ("--node-metadata x", invalid("x", "--node-metadata <KEY=VALUE>", "it must be KEY=VALUE")),
        (&format!("{good} http://x --tls-ca f"), "certificates need a --server of https://".into()),
        (
            "--server /d --variant file --subscribe eds --load-report",
            "--load-report needs a server, and --variant file has none".into(),
        ),
        (&format!("{good} https://x --tls-cert f"), "the following required arguments were not provided:".into()),
    ] {
        assert_eq!(run(arguments), (format!("error: {error}"), Some(2)), "{arguments}");
    }
    let missing = run(&format!("{good} https://x --tls-ca /nowhere/ca.pem"));
    assert_eq!(missing, ("xds_client: /nowhere/ca.pem: No such file or directory (os error 2)".into(), Some(1)));
    let no_pem = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let refused = run(&format!("{good} https://x --tls-ca {no_pem}"));
    assert_eq!(refused, (format!("xds_client: {no_pem}: no CERTIFICATE in PEM form"), Some(1)));
}

/// The node has the fields that the command line sets.
#[tokio::test]
async fn the_node_has_the_fields_that_the_command_line_sets() {
    let mut server = Rude::<Sotw>::start().await;
    let node = "--node n1 --node-cluster edge --node-metadata ZONE=a --node-metadata ENV=x=y";
    let _program = start(server.address, &format!("--variant sotw --subscribe cds {node}"));
    let node = server.accept().await.request().await.node.expect("the first names its node");
    assert_eq!((node.id.as_str(), node.cluster.as_str()), ("n1", "edge"));
    let pool = prost_reflect::DescriptorPool::decode(xds_api::FILE_DESCRIPTOR_SET).expect("descriptors");
    let kind = pool.get_message_by_name("envoy.config.core.v3.Node").expect("a known type");
    let rest = prost_reflect::DynamicMessage::decode(kind, node.rest.clone()).expect("a node");
    let rest = serde_json::to_value(&rest).expect("JSON");
    assert_eq!(rest["metadata"], json!({ "ENV": "x=y", "ZONE": "a" }));
}
