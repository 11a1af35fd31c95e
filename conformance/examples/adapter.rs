//! The adapter of this project's control plane: `xds-conformance server --control stdio -- adapter`.

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use xds_machine::server::{Cache, Resource, Source, State};
use xds_machine::{ResourceName, Status, TypeUrl, type_url};
use xds_machine_tonic::server::{ControlPlane, Group};

const FEATURES: [&str; 11] =
    ["sotw", "delta", "per-type", "ads-order", "ttl", "alias", "vhds", "glob", "error", "unknown", "restart"];

const TYPES: [&str; 5] =
    [type_url::CLUSTER, type_url::ENDPOINT, type_url::LISTENER, type_url::ROUTE, type_url::VIRTUAL_HOST];

fn main() -> Result<(), Box<dyn Error>> {
    let mut server = Running::start("127.0.0.1:0".parse()?)?;
    say(&json!({"ready": {"address": server.address.to_string(), "features": FEATURES}}))?;
    // The end of the input ends the adapter.
    for line in stdin().lock().lines() {
        let op: Value = serde_json::from_str(&line?)?;
        let done = if op["op"] == "restart" {
            let address = server.address;
            server.runtime.shutdown_background();
            server = Running::start(address)?;
            Ok(())
        } else {
            server.group.update(|cache| apply(cache, &op)).0
        };
        say(&done.map_or_else(|why| json!({"error": why}), |()| json!({})))?;
    }
    Ok(())
}

/// The server: a restart forgets the store, and begins with other versions.
struct Running {
    runtime: Runtime,
    address: SocketAddr,
    group: Group,
}

impl Running {
    fn start(address: SocketAddr) -> std::io::Result<Self> {
        let group = Group::new("kit");
        TYPES.iter().for_each(|known| drop(group.replace(&(*known).into(), []))); // all absent, none unknown
        let runtime = Runtime::new()?;
        let _in_runtime = runtime.enter();
        let listener = runtime.block_on(async {
            // The streams of the server before this one may still be closing.
            for _ in 0..100 {
                match TcpListener::bind(address).await {
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                    bound => return bound,
                }
            }
            TcpListener::bind(address).await
        })?;
        let address = listener.local_addr()?;
        let plane = ControlPlane::new(group.clone());
        let server = Server::builder().add_service(plane.service());
        runtime.spawn(server.serve_with_incoming(plane.incoming(TcpIncoming::from(listener))));
        drop(_in_runtime);
        Ok(Self { runtime, address, group })
    }
}

/// Applies an operation to the store.
fn apply(cache: &mut Cache, op: &Value) -> Result<(), String> {
    let text = |key: &str| op[key].as_str().ok_or_else(|| format!("{key} is missing"));
    if op["op"] == "batch" {
        return op["ops"].as_array().into_iter().flatten().try_for_each(|op| apply(cache, op));
    }
    if op["op"] == "clear" {
        TYPES.iter().for_each(|known| cache.replace(&(*known).into(), []));
        return Ok(());
    }
    let (of, name) = (TypeUrl::from(text("type")?), ResourceName::from(text("name")?));
    let present = match cache.get(&of, &name).state {
        State::Present(resource) => Some(resource.clone()),
        State::Absent | State::Unknown => None,
    };
    let present = || present.clone().ok_or_else(|| format!("there is no {name}"));
    match text("op")? {
        "put" => {
            let body = STANDARD.decode(text("any")?).map_err(|error| error.to_string())?;
            cache.insert(&of, Resource::new(name, body));
        }
        "delete" => _ = cache.remove(&of, name),
        "unknown" => _ = cache.set_unknown(&of, name),
        "alias" => _ = cache.insert(&of, present()?.with_aliases([text("alias")?])),
        "ttl" => {
            let ttl = op["ms"].as_u64().ok_or("ms is missing")?;
            cache.insert(&of, present()?.with_ttl(Duration::from_millis(ttl)));
        }
        "error" => {
            let code = op["code"].as_i64().and_then(|code| i32::try_from(code).ok()).ok_or("code is missing")?;
            cache.set_error(&of, name, Status { code, message: text("message")?.into() });
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
