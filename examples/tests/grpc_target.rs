//! `grpc_target` against control planes in this process.

mod program;

use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use program::Program;
use serde_json::{Value, json};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;
use tonic::transport::Server;
use xds_machine::TypeUrl;
use xds_machine::server::Resource;
use xds_machine::type_url::{CLUSTER, ENDPOINT, LISTENER, ROUTE};
use xds_machine_tonic::server::{ControlPlane, Group};

const MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const AGGREGATE: &str = "type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig";

// Resources.

fn resource(type_url: &str, name: &str, content: Value) -> (TypeUrl, Resource) {
    let message = type_url.rsplit('/').next().expect("a name");
    let pool = prost_reflect::DescriptorPool::decode(xds_api::FILE_DESCRIPTOR_SET).expect("descriptors");
    let kind = pool.get_message_by_name(message).expect("a known type");
    let message = prost_reflect::DynamicMessage::deserialize(kind, content).expect("well formed");
    (type_url.into(), Resource::new(name, prost_reflect::prost::Message::encode_to_vec(&message)))
}

fn listener(name: &str, routes: &str) -> (TypeUrl, Resource) {
    let rds = json!({ "config_source": { "ads": {} }, "route_config_name": routes });
    let manager = json!({ "@type": MANAGER, "rds": rds });
    resource(LISTENER, name, json!({ "name": name, "api_listener": { "api_listener": manager } }))
}

fn routes(name: &str, clusters: &[&str]) -> (TypeUrl, Resource) {
    let route = |cluster: &&str| json!({ "match": { "prefix": "/" }, "route": { "cluster": cluster } });
    let routes: Vec<_> = clusters.iter().map(route).collect();
    let host = json!({ "name": "v", "domains": ["*"], "routes": routes });
    resource(ROUTE, name, json!({ "name": name, "virtual_hosts": [host] }))
}

fn cluster(name: &str) -> (TypeUrl, Resource) {
    let eds = json!({ "eds_config": { "ads": {} }, "service_name": "e" });
    resource(CLUSTER, name, json!({ "name": name, "type": "EDS", "eds_cluster_config": eds }))
}

fn aggregate(name: &str, clusters: &[&str]) -> (TypeUrl, Resource) {
    let config = json!({ "@type": AGGREGATE, "clusters": clusters });
    let kind = json!({ "name": "envoy.clusters.aggregate", "typed_config": config });
    resource(CLUSTER, name, json!({ "name": name, "lb_policy": "CLUSTER_PROVIDED", "cluster_type": kind }))
}

fn dns(name: &str, host: &str) -> (TypeUrl, Resource) {
    let address = json!({ "socket_address": { "address": host, "port_value": 80 } });
    let assignment = json!({ "endpoints": [{ "lb_endpoints": [{ "endpoint": { "address": address } }] }] });
    resource(CLUSTER, name, json!({ "name": name, "type": "LOGICAL_DNS", "load_assignment": assignment }))
}

fn endpoints(name: &str, port: u16) -> (TypeUrl, Resource) {
    let address = json!({ "socket_address": { "address": "1.2.3.4", "port_value": port } });
    let endpoint = json!({ "endpoint": { "address": address }, "health_status": "DRAINING" });
    let locality = json!({ "locality": { "region": "r" }, "load_balancing_weight": 3, "lb_endpoints": [endpoint] });
    let drop = json!({ "category": "c", "drop_percentage": { "numerator": 5, "denominator": "HUNDRED" } });
    let content = json!({ "cluster_name": name, "endpoints": [locality], "policy": { "drop_overloads": [drop] } });
    resource(ENDPOINT, name, content)
}

/// Returns the printed form of [`cluster`] with [`endpoints`].
fn shown(port: u16) -> Value {
    let endpoint = json!({ "address": "1.2.3.4", "port": port, "weight": 1, "health": "DRAINING" });
    let locality = json!({ "locality": "r//", "weight": 3, "endpoints": [endpoint] });
    let drop = json!({ "category": "c", "per_million": 50_000 });
    json!({ "endpoints": { "priorities": [[locality]], "drops": [drop] }, "service": "e" })
}

fn config(listener: &str, routes: &str, clusters: Value) -> Value {
    let host = json!({ "name": "v", "domains": ["*"] });
    json!({ "config": { "listener": listener, "routes": routes, "virtual_host": host, "clusters": clusters } })
}

// The world around the program.

/// A control plane.
struct Plane {
    group: Group,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Plane {
    async fn start(resources: impl IntoIterator<Item = (TypeUrl, Resource)>) -> Self {
        let group = Group::new("all");
        let plane = ControlPlane::new(group.clone());
        let accepted = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = accepted.local_addr().expect("an address");
        let accepted = tokio_stream::wrappers::TcpListenerStream::new(accepted);
        let server = Server::builder().add_service(plane.service()).serve_with_incoming(plane.incoming(accepted));
        let task = tokio::spawn(async move { server.await.expect("serves") });
        let plane = Self { group, address, task };
        plane.put(resources);
        // Absent resources are known not to exist.
        plane.group.update(|cache| [LISTENER, ROUTE, CLUSTER, ENDPOINT].map(|of| cache.set_known(&of.into())));
        plane
    }

    fn put(&self, resources: impl IntoIterator<Item = (TypeUrl, Resource)>) {
        _ = self.group.update(|cache| resources.into_iter().for_each(|(of, new)| _ = cache.insert(&of, new)));
    }

    fn remove(&self, type_url: &str, name: &str) {
        _ = self.group.update(|cache| _ = cache.remove(&type_url.into(), name));
    }

    /// Serves on a socket too.
    fn on(&self, socket: UnixListener) -> JoinHandle<()> {
        let plane = ControlPlane::new(self.group.clone());
        let accepted = tokio_stream::wrappers::UnixListenerStream::new(socket);
        let server = Server::builder().add_service(plane.service()).serve_with_incoming(plane.incoming(accepted));
        tokio::spawn(async move { server.await.expect("serves") })
    }

    fn server(&self) -> Value {
        server(self.address)
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn server(address: SocketAddr) -> Value {
    json!({ "server_uri": address.to_string(), "channel_creds": [{ "type": "insecure" }] })
}

/// Writes a bootstrap file.
fn file(content: &str) -> PathBuf {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let name = format!("bootstrap-{}-{}.json", std::process::id(), FILES.fetch_add(1, Ordering::Relaxed));
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).expect("room on the disk");
    path
}

fn command(bootstrap: &Value) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grpc_target"));
    command.env_clear().arg("--bootstrap").arg(file(&bootstrap.to_string()));
    command
}

fn start(bootstrap: &Value, target: &str) -> Program {
    Program::start(command(bootstrap).arg(target))
}

/// Starts a program whose only server is this control plane.
fn program(plane: &Plane) -> Program {
    start(&json!({ "xds_servers": [plane.server()] }), "xds:///svc")
}

fn service() -> [(TypeUrl, Resource); 4] {
    [listener("svc", "r"), routes("r", &["a"]), cluster("a"), endpoints("e", 1)]
}

// Stories.

#[tokio::test]
async fn a_target_is_resolved_to_endpoints_and_their_changes() {
    let plane = Plane::start(service()).await;
    let mut program = program(&plane);
    assert_eq!(program.line().await, config("svc", "r", json!({ "a": shown(1) })));
    plane.put([endpoints("e", 2)]);
    assert_eq!(program.line().await, config("svc", "r", json!({ "a": shown(2) })));
}

#[tokio::test]
async fn a_configuration_is_printed_once() {
    let plane = Plane::start(service()).await;
    let mut program = program(&plane);
    assert_eq!(program.line().await, config("svc", "r", json!({ "a": shown(1) })));
    // Another cluster and other endpoints, which are shown as before.
    let (of, new) = cluster("a");
    plane.put([(of, Resource::new(new.name().clone(), [&new.body()[..], b"\xe2\x01\x01s"].concat()))]);
    plane.put([endpoints("e", 1)]);
    plane.put([endpoints("e", 2)]);
    assert_eq!(program.line().await, config("svc", "r", json!({ "a": shown(2) })));
}

#[tokio::test]
async fn a_server_is_reached_by_every_kind_of_name() {
    let plane = Plane::start(service()).await;
    let expected = config("svc", "r", json!({ "a": shown(1) }));
    let socket = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("target-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&socket);
    let unix = plane.on(UnixListener::bind(&socket).expect("a socket"));
    let name = format!("xds-target-{}", std::process::id());
    let address = <std::os::unix::net::SocketAddr as SocketAddrExt>::from_abstract_name(&name).expect("a name");
    let bound = std::os::unix::net::UnixListener::bind_addr(&address).expect("a name that is free");
    bound.set_nonblocking(true).expect("set");
    let hidden = plane.on(UnixListener::from_std(bound).expect("a socket"));
    let port = plane.address.port();
    for uri in [
        format!("dns:127.0.0.1:{port}"),
        format!("dns:///localhost:{port}"),
        format!("ipv4:127.0.0.1:1,127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}"),
        format!("unix:{}", socket.display()),
        format!("unix://{}", socket.display()),
        format!("unix-abstract:{name}"),
    ] {
        let server = json!({ "server_uri": uri, "channel_creds": [{ "type": "insecure" }] });
        assert_eq!(start(&json!({ "xds_servers": [server] }), "xds:///svc").line().await, expected, "{uri}");
    }
    [unix, hidden].iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn a_rejected_resource_keeps_the_previous_endpoints_with_a_note() {
    let plane = Plane::start(service()).await;
    let mut program = program(&plane);
    program.line().await;
    plane.put([resource(
        ENDPOINT,
        "e",
        json!({ "cluster_name": "e", "endpoints": [
        { "load_balancing_weight": 1, "lb_endpoints": [] }
    ] }),
    )]);
    let reject = program.line().await;
    assert_eq!(
        (&reject["reject"]["type_url"], &reject["reject"]["errors"][0]["name"]),
        (&json!(ENDPOINT), &json!("e"))
    );
    let why = reject["reject"]["errors"][0]["message"].as_str().expect("a message");
    assert!(why.contains("endpoints[0].locality"), "{why}");
    let mut noted = shown(1);
    noted["note"] = format!("EDS resource e: {why}").into();
    assert_eq!(program.line().await, config("svc", "r", json!({ "a": noted })));
    plane.put([endpoints("e", 2)]);
    assert_eq!(program.line().await, config("svc", "r", json!({ "a": shown(2) })));
}

#[tokio::test]
async fn a_removed_listener_is_an_error_until_it_is_added_again() {
    let plane = Plane::start(service()).await;
    let mut program = program(&plane);
    let told = program.line().await;
    plane.remove(LISTENER, "svc");
    assert_eq!(program.line().await, json!({ "error": "LDS resource svc: the server removed the resource" }));
    plane.put([listener("svc", "r")]);
    assert_eq!(program.line().await, told);
}

#[tokio::test]
async fn an_aggregate_lists_its_leaves_and_its_failed_children() {
    let all = [listener("svc", "r"), routes("r", &["g"]), aggregate("g", &["d", "h"]), aggregate("h", &["a"])];
    let plane = Plane::start(all.into_iter().chain([dns("d", "127.0.0.1"), cluster("a"), endpoints("e", 1)])).await;
    let mut program = program(&plane);
    let resolved = json!({ "dns": "127.0.0.1:80", "addresses": ["127.0.0.1:80"] });
    let (g, h) = (json!({ "leaves": ["d", "a"] }), json!({ "leaves": ["a"] }));
    let whole = json!({ "g": g, "h": h, "d": resolved, "a": shown(1) });
    assert_eq!(program.line().await, config("svc", "r", whole));
    plane.remove(CLUSTER, "a");
    let gone = json!({ "error": "CDS resource a: the server removed the resource" });
    let none = json!({ "error": "aggregate cluster dependency graph for h has no leaf clusters" });
    let rest = json!({ "g": { "leaves": ["d"] }, "h": none, "d": resolved, "a": gone });
    assert_eq!(program.line().await, config("svc", "r", rest));
}

#[tokio::test]
async fn a_dns_name_that_does_not_resolve_is_reported_in_a_note() {
    let plane = Plane::start([listener("svc", "r"), routes("r", &["d"]), dns("d", "name.invalid")]).await;
    let line = program(&plane).line().await;
    let shown = &line["config"]["clusters"]["d"];
    assert_eq!((&shown["dns"], &shown["addresses"]), (&json!("name.invalid:80"), &json!([])));
    let note = shown["note"].as_str().expect("a note");
    assert!(note.starts_with("DNS resolution failed for name.invalid:80: "), "{note}");
}

#[tokio::test]
async fn a_listener_switches_to_other_routes_without_an_error_in_between() {
    // R-CHAIN-03, R-CHAIN-22
    let plane = Plane::start(service()).await;
    let mut program = program(&plane);
    program.line().await;
    plane.put([listener("svc", "r2")]);
    plane.put([routes("r2", &["b"]), cluster("b")]);
    assert_eq!(program.line().await, config("svc", "r2", json!({ "b": shown(1) })));
}

#[tokio::test]
async fn two_authorities_have_their_own_servers() {
    let (one, other) =
        ("xdstp://x/envoy.config.listener.v3.Listener/svc", "xdstp://y/envoy.config.route.v3.RouteConfiguration/r");
    let cluster_name = "xdstp://z/envoy.config.cluster.v3.Cluster/c";
    let x = Plane::start([listener(one, other)]).await;
    let y = Plane::start([routes(other, &["a", cluster_name]), cluster("a"), endpoints("e", 1)]).await;
    let bootstrap = json!({
        "xds_servers": [y.server()],
        "authorities": { "x": { "xds_servers": [x.server()] }, "y": {} },
    });
    let line = start(&bootstrap, "xds://x/svc").line().await;
    let error = format!("CDS resource {cluster_name}: no server is configured for {cluster_name}");
    assert_eq!(line, config(one, other, json!({ "a": shown(1), cluster_name: { "error": error } })));
}

#[tokio::test]
async fn an_unreachable_server_is_replaced_by_the_next() {
    let plane = Plane::start(service()).await;
    // No program listens there: the port was released.
    let away = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let bootstrap = json!({ "xds_servers": [server(away), plane.server()] });
    let line = start(&bootstrap, "xds:///svc").line().await;
    assert_eq!(line, config("svc", "r", json!({ "a": shown(1) })));
}

#[tokio::test]
async fn a_server_that_can_not_be_reached_is_an_error() {
    let away = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let line = start(&json!({ "xds_servers": [server(away)] }), "xds:///svc").line().await;
    assert_eq!(line, json!({ "error": "LDS resource svc: server 0 can't be reached" }));
}

#[tokio::test]
async fn a_name_without_a_server_is_an_error_and_shown_by_check() {
    // R-BOOT-36
    let name = "xdstp://q/envoy.config.listener.v3.Listener/svc";
    let bootstrap = json!({
        "xds_servers": [server(([127, 0, 0, 1], 1).into())],
        "client_default_listener_resource_name_template": "xdstp://q/envoy.config.listener.v3.Listener/%s",
    });
    let line = start(&bootstrap, "xds:///svc").line().await;
    assert_eq!(line, json!({ "error": format!("LDS resource {name}: no server is configured for {name}") }));
    let (line, code) = ended(command(&bootstrap).args(["--check", "xds:///svc"]).output());
    assert_eq!((line["listener"].as_str(), code), (Some(name), 0));
}

// The command line.

/// Returns the only line, and the status.
fn ended(output: std::io::Result<Output>) -> (Value, i32) {
    let output = output.expect("the program starts");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text.lines().count(), 1, "{text}");
    (serde_json::from_str(&text).expect("JSON"), output.status.code().expect("an end"))
}

#[test]
fn check_prints_the_effective_bootstrap_configuration() {
    let bootstrap = json!({
        "xds_servers": [{
            "server_uri": "cp:1",
            "channel_creds": [{ "type": "magic" }, { "type": "tls", "config": {} }],
            "server_features": ["xds_v3", 7, "ignore_resource_deletion"],
        }],
        "node": { "id": "n", "user_agent_name": "x", "locality": { "zone": "z" }, "metadata": { "k": [1] } },
        "authorities": { "a b": { "xds_servers": [{ "server_uri": "cp:2", "channel_creds": [{ "type": "insecure" }] }] } },
    });
    let (line, code) = ended(command(&bootstrap).args(["--check", "xds:///svc%20x"]).output());
    let first = json!({ "uri": "cp:1", "features": line["servers"][0]["features"], "credentials": "tls" });
    let features = first["features"].as_array().expect("a list");
    assert!(features.contains(&json!("ignore_resource_deletion")), "{line}");
    let second = json!({ "uri": "cp:2", "features": [], "credentials": "insecure" });
    let template = "xdstp://a%20b/envoy.config.listener.v3.Listener/%s";
    let expected = json!({
        "node": { "id": "n", "locality": { "zone": "z" }, "metadata": { "k": [1.0] } },
        "servers": [first],
        "authorities": { "a b": { "listener": template, "servers": [second] } },
        "listener": "svc x",
    });
    assert_eq!(line["authorities"], expected["authorities"]);
    assert_eq!((&line["servers"], &line["listener"]), (&expected["servers"], &expected["listener"]));
    assert_eq!((line["node"]["id"].as_str(), line["node"]["locality"]["zone"].as_str()), (Some("n"), Some("z")));
    assert_eq!((line["node"]["metadata"]["k"][0].as_f64(), code), (Some(1.0), 0));
}

#[test]
fn every_fault_of_the_bootstrap_file_is_named() {
    let bootstrap =
        json!({ "xds_servers": [{ "channel_creds": [{ "type": "insecure" }, { "type": "tls", "config": 7 }] }] });
    let expected = json!({ "bootstrap_error": [
        "xds_servers[0].channel_creds[1].config: is not an object",
        "xds_servers[0].server_uri: field not present",
    ] });
    assert_eq!(ended(command(&bootstrap).arg("xds:///svc").output()), (expected, 2));
    let good = json!({ "xds_servers": [server(([127, 0, 0, 1], 1).into())] });
    let name = json!({ "server_uri": "dns://1.1.1.1/cp", "channel_creds": [{ "type": "insecure" }] });
    let error = "xds_servers[0].server_uri: an authority is not supported";
    let expected = json!({ "bootstrap_error": [error] });
    assert_eq!(ended(command(&json!({ "xds_servers": [name] })).arg("xds:///svc").output()), (expected, 2));
    let expected = json!({ "bootstrap_error": ["authorities[\"x\"]: field not present"] });
    assert_eq!(ended(command(&good).arg("xds://x/svc").output()), (expected, 2));
}

#[test]
fn the_bootstrap_comes_from_environment_variables_and_the_path_takes_precedence() {
    // R-BOOT-01
    let run = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grpc_target"));
        ended(command.env_clear().envs(variables.iter().copied()).args(["--check", "xds:///svc"]).output())
    };
    let good = json!({ "xds_servers": [server(([127, 0, 0, 1], 1).into())] }).to_string();
    let none = "neither --bootstrap nor GRPC_XDS_BOOTSTRAP nor GRPC_XDS_BOOTSTRAP_CONFIG is set";
    assert_eq!(run(&[]), (json!({ "bootstrap_error": [none] }), 2));
    assert_eq!(run(&[("GRPC_XDS_BOOTSTRAP_CONFIG", &good)]).1, 0);
    let path = file(&good);
    assert_eq!(run(&[("GRPC_XDS_BOOTSTRAP", path.to_str().expect("text")), ("GRPC_XDS_BOOTSTRAP_CONFIG", "{")]).1, 0);
    let (line, code) = run(&[("GRPC_XDS_BOOTSTRAP", "no/such/file"), ("GRPC_XDS_BOOTSTRAP_CONFIG", &good)]);
    let why = line["bootstrap_error"][0].as_str().expect("a fault");
    assert!(why.starts_with("no/such/file: ") && code == 2, "{line}");
}

#[test]
fn an_invalid_command_line_is_a_usage_error() {
    for (arguments, why) in [
        (&["dns:///svc"][..], "a target begins with xds:"),
        (&["xds:///"], "the target names no service"),
        (&[], "<TARGET>"),
        (&["--for", "soon", "xds:///svc"], "it must be a number with ms, s or m"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grpc_target"));
        let output = command.env_clear().args(arguments).output().expect("the program starts");
        let (text, code) = (String::from_utf8(output.stderr).expect("text"), output.status.code());
        assert!(text.contains(why) && code == Some(2) && output.stdout.is_empty(), "{arguments:?}: {text}");
    }
}

#[test]
fn the_program_ends_after_the_given_time() {
    let bootstrap = json!({ "xds_servers": [server(([127, 0, 0, 1], 1).into())] });
    let status = command(&bootstrap).args(["--for", "10ms", "xds:///svc"]).stdout(Stdio::null()).status();
    assert_eq!(status.expect("the program starts").code(), Some(0));
}
