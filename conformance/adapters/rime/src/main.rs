//! The adapter of `rime-xds` 0.1.0: `xds-conformance server --variants delta --control stdio -- rime-adapter`.
//!
//! rime decides what is new to a client and what is gone. Everything else is here: rime has no transport, no nonces, no
//! types and no names of a client. A type is a `Plane` of its own.

mod stream;
mod subscription;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rime_xds::{Plane, ResourceMap};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use xds_api::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::AggregatedDiscoveryServiceServer;

use crate::stream::Ads;

const TYPES: [&str; 4] = [
    "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
    "type.googleapis.com/envoy.config.listener.v3.Listener",
    "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
];

/// The plane of each type, and the channel that signals its changes.
pub struct Planes(BTreeMap<&'static str, Mutex<(Plane, watch::Receiver<()>)>>);

impl Planes {
    /// Looks at the plane of a type, if that type is served.
    fn with<T>(&self, of: &str, look: impl FnOnce(&mut (Plane, watch::Receiver<()>)) -> T) -> Option<T> {
        let plane = self.0.get(of)?;
        Some(look(&mut plane.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let planes = Arc::new(Planes(TYPES.map(|of| (of, Mutex::new(Plane::new()))).into()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let service = AggregatedDiscoveryServiceServer::new(Ads(planes.clone()));
    runtime.spawn(Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener)));
    say(&json!({"ready": {"address": address.to_string(), "features": ["delta"]}}))?;
    for line in stdin().lock().lines() {
        let done = apply(&planes, &serde_json::from_str(&line?)?);
        say(&done.map_or_else(|why| json!({"error": why}), |()| json!({})))?;
    }
    Ok(())
}

fn apply(planes: &Planes, op: &Value) -> Result<(), String> {
    let text = |key: &str| op[key].as_str().ok_or_else(|| format!("{key} is missing"));
    match text("op")? {
        "batch" => op["ops"].as_array().into_iter().flatten().try_for_each(|op| apply(planes, op))?,
        "clear" => TYPES.iter().for_each(|of| drop(planes.with(of, |(plane, _)| plane.reconcile(ResourceMap::new())))),
        "put" => {
            let value = STANDARD.decode(text("any")?).map_err(|error| error.to_string())?;
            let name = text("name")?;
            planes.with(text("type")?, |(plane, _)| plane.apply(name, value.into())).ok_or("the type is not served")?;
        }
        "delete" => {
            let name = text("name")?;
            planes.with(text("type")?, |(plane, _)| plane.remove(name)).ok_or("the type is not served")?;
        }
        other => return Err(format!("{other} is not supported")),
    }
    Ok(())
}

fn say(line: &Value) -> std::io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
