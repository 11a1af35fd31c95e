//! What else is on the port: services about the program, Unix sockets, and refusals.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use hyper_util::rt::TokioIo;
use serde_json::json;
use tonic::Status;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use xds_machine::message::delta::Response;
use xds_machine::{Delta, type_url};

use crate::messages::*;
use crate::support::{ControlPlane, Dir, LONG, Peer, command};

/// Sends a request of HTTP/1.1, and returns the status line and the body.
fn answer(address: &str, method: &str, path: &str, kind: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(LONG)).expect("set");
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{kind}Content-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

#[test]
fn only_calls_of_grpc_are_taken_at_the_path_of_a_method() {
    let dir = Dir::new("cp-no-call");
    dir.put("clusters.json", clusters(&[("c1", 1)]));
    let control_plane = ControlPlane::start(&dir);
    let get = ("HTTP/1.1 405 Method Not Allowed".to_owned(), "calls are posted\n".to_owned());
    let other = "HTTP/1.1 415 Unsupported Media Type".to_owned();
    let other = (other, "the content type of a call is application/grpc\n".to_owned());
    let grpc = "Content-Type: application/grpc\r\n";
    for path in [ADS_DELTA, "/grpc.health.v1.Health/Check", "/a.B/C"] {
        assert_eq!(answer(&control_plane.address, "GET", path, grpc), get, "{path}");
        for kind in ["", "Content-Type: application/json\r\n", "Content-Type: application/grpc-web\r\n"] {
            assert_eq!(answer(&control_plane.address, "POST", path, kind), other, "{path} {kind}");
        }
    }
    let (status, _) = answer(&control_plane.address, "POST", "/a.B/C", "Content-Type: application/grpc+proto\r\n");
    assert_eq!(status, "HTTP/1.1 200 OK", "its status is one of gRPC");
    let (status, _) = answer(&control_plane.address, "GET", "/a", "");
    assert_eq!(status, "HTTP/1.1 404 Not Found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_health_service_says_what_readyz_says() {
    let dir = Dir::new("cp-health");
    dir.put("broken.json", "{");
    let control_plane = ControlPlane::start(&dir);
    let mut health = HealthClient::new(control_plane.channel());
    let of = |service: &str| HealthCheckRequest { service: service.into() };
    let ads = "envoy.service.discovery.v3.AggregatedDiscoveryService";
    let mut watch = health.watch(of("")).await.expect("a stream").into_inner();
    assert_eq!(watch.message().await.expect("no error").expect("a status").status().as_str_name(), "NOT_SERVING");
    dir.put("broken.json", clusters(&[("c1", 1)]));
    assert_eq!(watch.message().await.expect("no error").expect("a status").status().as_str_name(), "SERVING");
    control_plane.news(1);
    let status = health.check(of("")).await.expect("a status").into_inner();
    assert_eq!(status.status().as_str_name(), "SERVING");
    assert_eq!(health.check(of("a.B")).await.expect_err("no such service").code(), tonic::Code::NotFound);
    drop(watch);
    assert!(health.check(of(ads)).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_lists_the_services_and_describes_them() {
    let dir = Dir::new("cp-reflection");
    dir.put("clusters.json", clusters(&[("c1", 1)]));
    let control_plane = ControlPlane::start(&dir);
    let mut reflection = ServerReflectionClient::new(control_plane.channel()).max_decoding_message_size(64 << 20);
    let mut ask = async |message: MessageRequest| {
        let request = ServerReflectionRequest { host: String::new(), message_request: Some(message) };
        let call = reflection.server_reflection_info(tokio_stream::iter([request]));
        let answer = call.await.expect("a stream").into_inner().message().await.expect("no error");
        answer.expect("an answer").message_response.expect("a kind")
    };
    let MessageResponse::ListServicesResponse(list) = ask(MessageRequest::ListServices(String::new())).await else {
        panic!("no list");
    };
    let mut names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    names.sort_unstable();
    for name in [
        "envoy.service.cluster.v3.ClusterDiscoveryService",
        "envoy.service.discovery.v3.AggregatedDiscoveryService",
        "envoy.service.load_stats.v3.LoadReportingService",
        "envoy.service.status.v3.ClientStatusDiscoveryService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
    ] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    for symbol in ["envoy.service.discovery.v3.AggregatedDiscoveryService", "envoy.config.cluster.v3.Cluster"] {
        let described = ask(MessageRequest::FileContainingSymbol(symbol.into())).await;
        assert!(matches!(described, MessageResponse::FileDescriptorResponse(_)), "{described:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_is_served_replaced_and_removed() {
    let dir = Dir::new("cp-unix");
    dir.put("clusters.json", clusters(&[("c1", 1)]));
    let path = dir.0.join(".socket");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("left behind by another program"));
    let listen = format!("unix:{}", path.display());
    let start = || {
        let mut command = command();
        command.args(["--listen", &listen, "--log", "json", "--resources"]).arg(&dir.0);
        command
    };
    let mut control_plane = ControlPlane::run(start());
    assert_eq!(control_plane.address, listen);
    let connector = {
        let path = path.clone();
        tower::service_fn(move |_: Uri| {
            let path = path.clone();
            async move { tokio::net::UnixStream::connect(path).await.map(TokioIo::new) }
        })
    };
    let channel: Channel =
        Endpoint::from_static("http://localhost").connect_with_connector(connector).await.expect("a channel");
    let mut peer = Peer::<Delta>::open(channel, ADS_DELTA).await;
    peer.send(delta_request(type_url::CLUSTER, &[])).await;
    assert_eq!(names(&peer.next().await), ["c1"]);

    // Another program does not take the socket of one that lives.
    let output = start().output().expect("started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let error = std::os::unix::net::UnixListener::bind(&path).expect_err("taken");
    assert_eq!(said, format!("control_plane: can't listen on {listen}: {error}\n"));
    assert!(UnixStream::connect(&path).is_ok());
    drop(peer);
    let id = control_plane.id().to_string();
    assert!(std::process::Command::new("kill").arg(id).status().expect("kill").success());
    assert_eq!(control_plane.ended(), Some(0));
    assert!(!path.exists());
}

#[test]
fn a_port_alone_is_all_addresses() {
    let dir = Dir::new("cp-all");
    let mut command = command();
    command.args(["--listen", ":0", "--log", "json", "--resources"]).arg(&dir.0);
    let control_plane = ControlPlane::run(command);
    let (_, port) = control_plane.address.rsplit_once(':').expect("a port");
    assert!(TcpStream::connect(format!("127.0.0.1:{port}")).is_ok(), "{}", control_plane.address);
}

#[test]
fn a_request_that_http2_refuses_is_one_line() {
    let dir = Dir::new("cp-authority");
    let control_plane = ControlPlane::start(&dir);
    let mut stream = TcpStream::connect(&control_plane.address).expect("connected");
    let field = |index: u8, value: &str| [&[0x40 | index, value.len() as u8], value.as_bytes()].concat();
    // The authority that gRPC sends for the target unix:/run/x.sock.
    let block = [vec![0x83, 0x86], field(1, "%2Frun%2Fx.sock"), field(4, ADS_DELTA)].concat();
    let head = [0, 0, block.len() as u8, 1, 4, 0, 0, 0, 1];
    let preface = &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"[..];
    stream.write_all(&[preface, &head, &block].concat()).expect("sent");
    let why = control_plane.said("a request is refused, its stream is reset: ");
    assert!(why.contains("authority") && why.contains("%2Frun%2Fx.sock"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_is_one_line_and_goes_in_portions_on_request() {
    let dir = Dir::new("cp-large");
    let stat_name = "s".repeat(100_000);
    let cluster = |at| json!({"@type": type_url::CLUSTER, "name": format!("c{at}"), "altStatName": stat_name});
    dir.put("clusters.json", json!({"resources": (0..50).map(cluster).collect::<Vec<_>>()}).to_string());
    let first = async |arguments: &[&str]| -> (ControlPlane, Result<Option<Response>, Status>) {
        let control_plane = ControlPlane::start_with(&dir, arguments);
        control_plane.news(1);
        let mut peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
        peer.send(delta_request(type_url::CLUSTER, &[])).await;
        let first = peer.message().await;
        (control_plane, first)
    };
    let (whole, response) = first(&[]).await;
    assert_eq!(response.expect_err("the client has the default limit").code(), tonic::Code::OutOfRange);
    let said = whole.said("a response of Cluster has ");
    let what = "a gRPC client with the default limit of 4 MiB ends the stream with RESOURCE_EXHAUSTED and gets none of \
                it (--max-response-bytes sends delta responses in portions)";
    assert_eq!(said.split_once(" bytes: ").map(|(_, what)| what), Some(what), "{said}");
    let (portions, response) = first(&["--max-response-bytes", "4194304"]).await;
    assert_eq!(response.expect("no error").expect("a response").resources.len(), 41);
    portions.events(3);
    assert!(!portions.complaints().iter().any(|line| line.contains("RESOURCE_EXHAUSTED")));
}
