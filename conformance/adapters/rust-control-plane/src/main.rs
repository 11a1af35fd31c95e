//! The adapter of `rust-control-plane` 0.1.2, whose snapshots are of one node:
//! `xds-conformance server --node kit --control stdio -- rust-control-plane-adapter`. With the argument `ads` the cache
//! is made by `Cache::new(true)`.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use data_plane_api::envoy::config::cluster::v3::Cluster;
use data_plane_api::envoy::config::endpoint::v3::ClusterLoadAssignment;
use data_plane_api::envoy::config::listener::v3::Listener;
use data_plane_api::envoy::config::route::v3::RouteConfiguration;
use data_plane_api::envoy::service::cluster::v3::cluster_discovery_service_server::ClusterDiscoveryServiceServer;
use data_plane_api::envoy::service::discovery::v3::aggregated_discovery_service_server::AggregatedDiscoveryServiceServer;
use data_plane_api::envoy::service::endpoint::v3::endpoint_discovery_service_server::EndpointDiscoveryServiceServer;
use data_plane_api::envoy::service::listener::v3::listener_discovery_service_server::ListenerDiscoveryServiceServer;
use data_plane_api::envoy::service::route::v3::route_discovery_service_server::RouteDiscoveryServiceServer;
use prost::Message;
use rust_control_plane::cache::Cache;
use rust_control_plane::service::common::Service;
use rust_control_plane::snapshot::{Resource, Resources, Snapshot, type_url};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;

const TYPES: [&str; 4] = [type_url::CLUSTER, type_url::ENDPOINT, type_url::LISTENER, type_url::ROUTE];

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::new()?;
    let cache = Arc::new(Cache::new(std::env::args().nth(1).as_deref() == Some("ads")));
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let service = || Service::new(cache.clone());
    let server = Server::builder()
        .add_service(AggregatedDiscoveryServiceServer::new(service()))
        .add_service(ClusterDiscoveryServiceServer::new(service()))
        .add_service(EndpointDiscoveryServiceServer::new(service()))
        .add_service(ListenerDiscoveryServiceServer::new(service()))
        .add_service(RouteDiscoveryServiceServer::new(service()));
    let mut store = Store::new();
    publish(&runtime, &cache, &store);
    runtime.spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    say(&json!({"ready": {"address": address.to_string(), "features": ["sotw", "per-type"]}}))?;
    for line in stdin().lock().lines() {
        let op: Value = serde_json::from_str(&line?)?;
        let done = apply(&mut store, &op);
        publish(&runtime, &cache, &store);
        say(&done.map_or_else(|why| json!({"error": why}), |()| json!({})))?;
    }
    Ok(())
}

/// The resources of a type, and the number of their changes.
#[derive(Default)]
struct OfType {
    version: u64,
    resources: BTreeMap<String, Resource>,
}

type Store = BTreeMap<&'static str, OfType>;

/// Gives the cache a snapshot. The cache panics if it wakes the watch of a stream that has just ended; by then that
/// watch is gone and the snapshot is in place, so that a further try reaches the other streams.
fn publish(runtime: &Runtime, cache: &Arc<Cache>, store: &Store) {
    let mut snapshot = Snapshot::new();
    for of in TYPES {
        let (version, items) = match store.get(of) {
            Some(known) => (known.version, known.resources.clone().into_iter().collect()),
            None => Default::default(),
        };
        snapshot.insert(of.to_owned(), Resources { version: version.to_string(), items });
    }
    loop {
        let (cache, snapshot) = (cache.clone(), snapshot.clone());
        let done = runtime.spawn(async move { cache.set_snapshot("kit", snapshot).await });
        if runtime.block_on(done).is_ok() {
            return;
        }
    }
}

fn apply(store: &mut Store, op: &Value) -> Result<(), String> {
    let text = |key: &str| op[key].as_str().ok_or_else(|| format!("{key} is missing"));
    match text("op")? {
        "batch" => return op["ops"].as_array().into_iter().flatten().try_for_each(|op| apply(store, op)),
        "clear" => {
            for of in store.values_mut().filter(|of| !of.resources.is_empty()) {
                of.version += 1;
                of.resources.clear();
            }
            return Ok(());
        }
        _ => {}
    }
    let (url, name) = (text("type")?, text("name")?.to_owned());
    let url = TYPES.into_iter().find(|known| *known == url).ok_or_else(|| format!("{url} is not served"))?;
    let of = store.entry(url).or_default();
    match text("op")? {
        "put" => {
            let value = STANDARD.decode(text("any")?).map_err(|error| error.to_string())?;
            let resource = decode(url, &value).map_err(|error| error.to_string())?;
            of.resources.insert(name, resource);
        }
        "delete" if of.resources.remove(&name).is_none() => return Ok(()),
        "delete" => {}
        other => return Err(format!("{other} is not supported")),
    }
    of.version += 1;
    Ok(())
}

fn decode(url: &str, value: &[u8]) -> Result<Resource, prost::DecodeError> {
    Ok(match url {
        type_url::CLUSTER => Resource::Cluster(Cluster::decode(value)?),
        type_url::ENDPOINT => Resource::Endpoint(ClusterLoadAssignment::decode(value)?),
        type_url::LISTENER => Resource::Listener(Listener::decode(value)?),
        _ => Resource::Route(RouteConfiguration::decode(value)?),
    })
}

fn say(line: &Value) -> std::io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
