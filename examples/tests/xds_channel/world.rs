//! The environment of the channel's tests: tonic servers, and `control_plane` with files.

use std::convert::Infallible;
use std::fs;
use std::future::{Future, Ready, ready};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use examples::raw::Raw;
use examples::xds_channel::{XdsChannel, supports};
use http::uri::PathAndQuery;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::server::{NamedService, UnaryService};
use tonic::{Request, Response, Status};
use tower::Service;
use xds_machine_grpc::bootstrap::{Bootstrap, Target};

/// The longest wait of a test.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A tonic server that answers each call with its name.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Backend {
    pub(crate) async fn start(name: &'static str) -> Self {
        Self::start_at(name, "127.0.0.1:0".parse().expect("an address")).await
    }

    pub(crate) async fn start_at(name: &'static str, address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (stop, stopped) = oneshot::channel();
        let server = tonic::transport::Server::builder().add_service(Name(name));
        let task = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            server.serve_with_incoming_shutdown(TcpListenerStream::new(listener), stopped).await.expect("served");
        });
        Self { address, stop, task }
    }

    /// Ends the server, after the calls under way.
    pub(crate) async fn stop(self) -> SocketAddr {
        drop(self.stop);
        self.task.await.expect("no panic");
        self.address
    }
}

#[derive(Clone)]
struct Name(&'static str);

impl NamedService for Name {
    const NAME: &'static str = "test.Name";
}

impl UnaryService<Bytes> for Name {
    type Response = Bytes;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, _: Request<Bytes>) -> Self::Future {
        ready(Ok(Response::new(Bytes::from_static(self.0.as_bytes()))))
    }
}

impl Service<http::Request<Body>> for Name {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let name = self.clone();
        Box::pin(async move { Ok(tonic::server::Grpc::new(Raw).unary(name, request).await) })
    }
}

/// `control_plane` with a folder of its own.
pub(crate) struct Plane {
    child: Child,
    pub(crate) address: String,
    dir: PathBuf,
}

impl Plane {
    pub(crate) fn start(name: &str) -> Self {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("xds-channel-{name}"));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_control_plane"));
        command.args(["--listen", "127.0.0.1:0", "--resources"]).arg(&dir);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let listening = lines.find_map(|line| Some(line.ok()?.strip_prefix("listening on ")?.to_owned()));
        std::thread::spawn(move || lines.for_each(drop)); // the pipe stays open
        Self { child, address: listening.expect("an address"), dir }
    }

    /// Replaces the resources of a type at once.
    pub(crate) fn put(&self, kind: &str, resources: impl IntoIterator<Item = Value>) {
        let typed = resources.into_iter().map(|mut resource| {
            resource["@type"] = format!("type.googleapis.com/envoy.config.{kind}").into();
            resource
        });
        let text = json!({ "resources": typed.collect::<Vec<_>>() }).to_string();
        let next = self.dir.with_extension("next");
        fs::write(&next, text).expect("room on the disk");
        fs::rename(next, self.dir.join(format!("{kind}.json"))).expect("a folder");
    }

    /// Serves a listener whose one route leads to the cluster `c`.
    pub(crate) fn serve(&self, listener: &str, clusters: Vec<Value>, assignments: Vec<Value>) {
        self.put(ENDPOINTS, assignments);
        self.put(CLUSTERS, clusters);
        self.put(LISTENERS, [routed(listener, "c")]);
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) const LISTENERS: &str = "listener.v3.Listener";
pub(crate) const CLUSTERS: &str = "cluster.v3.Cluster";
pub(crate) const ENDPOINTS: &str = "endpoint.v3.ClusterLoadAssignment";

/// Returns a listener with its routes inside, which lead to a cluster.
pub(crate) fn routed(name: &str, cluster: &str) -> Value {
    routed_by(name, &[("", cluster)])
}

/// Prefixes of paths, and the clusters that they lead to.
pub(crate) type Routes<'a> = &'a [(&'a str, &'a str)];

/// Returns a listener with its routes inside.
pub(crate) fn routed_by(name: &str, routes: Routes<'_>) -> Value {
    const HTTP: &str = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    let route = |(prefix, cluster): &(&str, &str)| json!({"match": {"prefix": prefix}, "route": {"cluster": cluster}});
    let routes: Vec<Value> = routes.iter().map(route).collect();
    let router = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
    json!({"name": name, "apiListener": {"apiListener": {
        "@type": format!("type.googleapis.com/{HTTP}"),
        "routeConfig": {"name": "r", "virtualHosts": [{"name": "h", "domains": ["*"], "routes": routes}]},
        "httpFilters": [{"name": "router", "typedConfig": {"@type": router}}],
    }}})
}

pub(crate) fn eds(name: &str) -> Value {
    json!({"name": name, "type": "EDS", "edsClusterConfig": {"edsConfig": {"ads": {}}}})
}

/// Returns endpoints of one locality, one list for each priority.
pub(crate) fn assignment(name: &str, priorities: &[&[SocketAddr]]) -> Value {
    localities(name, &priorities.iter().map(|&ends| ("r", ends)).collect::<Vec<_>>())
}

/// Returns endpoints: each priority has one locality, with this region.
pub(crate) fn localities(name: &str, priorities: &[(&str, &[SocketAddr])]) -> Value {
    let end = |address: &SocketAddr| {
        let socket = json!({"address": address.ip().to_string(), "portValue": address.port()});
        json!({"endpoint": {"address": {"socketAddress": socket}}})
    };
    let locality = |(priority, (region, ends)): (usize, &(&str, &[SocketAddr]))| {
        let ends: Vec<Value> = ends.iter().map(end).collect();
        json!({"locality": {"region": region}, "loadBalancingWeight": 1, "priority": priority, "lbEndpoints": ends})
    };
    let localities: Vec<Value> = priorities.iter().enumerate().map(locality).collect();
    json!({"clusterName": name, "endpoints": localities})
}

/// Creates a channel by a bootstrap file.
pub(crate) fn channel(bootstrap: &Value, target: &str) -> XdsChannel {
    let bootstrap = Bootstrap::parse(&bootstrap.to_string(), supports).expect("a bootstrap file");
    XdsChannel::connect(bootstrap, &Target::parse(target).expect("a target")).expect("a channel")
}

pub(crate) fn servers(addresses: &[&str]) -> Value {
    let server = |address: &&str| json!({"server_uri": address, "channel_creds": [{"type": "insecure"}]});
    addresses.iter().map(server).collect()
}

/// Returns the answer to a call: the name of the backend, or the message of the error.
pub(crate) async fn call(channel: &XdsChannel) -> Result<String, String> {
    call_to(channel, "/test.Name/Get").await
}

pub(crate) async fn call_to(channel: &XdsChannel, path: &'static str) -> Result<String, String> {
    let mut client = Grpc::new(channel.clone());
    let path = PathAndQuery::from_static(path);
    let call = async {
        client.ready().await?;
        client.unary(Request::new(Bytes::new()), path, Raw).await
    };
    let answer = tokio::time::timeout(LIMIT, call).await.expect("an answer");
    let text = |answer: Response<Bytes>| String::from_utf8_lossy(&answer.into_inner()).into_owned();
    answer.map(text).map_err(|status| status.message().to_owned())
}

/// Calls until the answer is the expected one.
pub(crate) async fn until(channel: &XdsChannel, expected: Result<&str, &str>) {
    let end = Instant::now() + LIMIT;
    loop {
        let answer = call(channel).await;
        if answer.as_deref().map_err(String::as_str) == expected {
            return;
        }
        assert!(Instant::now() < end, "{answer:?}, not {expected:?}");
        tokio::task::yield_now().await;
    }
}
