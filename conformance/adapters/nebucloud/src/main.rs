//! The adapter of nebucloud's `xds-server` 0.1.0, whose snapshots are of one node:
//! `xds-conformance server --node kit --control stdio -- nebucloud-adapter`.

use std::any::Any;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use xds_cache::{Cache, ShardedCache, Snapshot};
use xds_core::{BoxResource, NodeHash, Resource};
use xds_server::XdsServerBuilder;

/// The resources of a type, and the number of their changes.
#[derive(Default)]
struct OfType {
    version: u64,
    resources: BTreeMap<String, BoxResource>,
}

type Store = BTreeMap<String, OfType>;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let cache = Arc::new(ShardedCache::new());
    let server = XdsServerBuilder::new().cache(cache.clone()).build()?;
    // The server takes an address, and does not report which port it got.
    let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut store = Store::new();
    runtime.spawn(server.serve(address));
    while std::net::TcpStream::connect(address).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    say(&json!({"ready": {"address": address.to_string(), "features": ["sotw", "delta"]}}))?;
    for line in stdin().lock().lines() {
        let op: Value = serde_json::from_str(&line?)?;
        let done = apply(&mut store, &op);
        let changes: u64 = store.values().map(|of| of.version).sum();
        let mut builder = Snapshot::builder().version(changes.to_string());
        for (of, OfType { version, resources }) in &store {
            let resources: Vec<BoxResource> = resources.values().cloned().collect();
            builder = builder.resources_with_version(of.clone().into(), version.to_string(), resources);
        }
        cache.set_snapshot(NodeHash::from_id("kit"), builder.build());
        say(&done.map_or_else(|why| json!({"error": why}), |()| json!({})))?;
    }
    Ok(())
}

fn apply(store: &mut Store, op: &Value) -> Result<(), String> {
    let text = |key: &str| op[key].as_str().map(str::to_owned).ok_or_else(|| format!("{key} is missing"));
    match op["op"].as_str() {
        Some("batch") => op["ops"].as_array().into_iter().flatten().try_for_each(|op| apply(store, op)),
        Some("clear") => {
            for of in store.values_mut().filter(|of| !of.resources.is_empty()) {
                of.version += 1;
                of.resources.clear();
            }
            Ok(())
        }
        Some("put") => {
            let (of, name) = (text("type")?, text("name")?);
            let value = STANDARD.decode(text("any")?).map_err(|error| error.to_string())?;
            let any = prost_types::Any { type_url: of.clone(), value };
            let of = store.entry(of).or_default();
            of.version += 1;
            of.resources.insert(name.clone(), Arc::new(Encoded { name, any }));
            Ok(())
        }
        Some("delete") => {
            let of = store.entry(text("type")?).or_default();
            if of.resources.remove(&text("name")?).is_some() {
                of.version += 1;
            }
            Ok(())
        }
        _ => Err(format!("{} is not supported", op["op"])),
    }
}

/// A resource as it is on the wire.
#[derive(Debug)]
struct Encoded {
    name: String,
    any: prost_types::Any,
}

impl Resource for Encoded {
    fn type_url(&self) -> &str {
        &self.any.type_url
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn encode(&self) -> Result<prost_types::Any, Box<dyn Error + Send + Sync>> {
        Ok(self.any.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn say(line: &Value) -> std::io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
