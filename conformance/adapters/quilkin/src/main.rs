//! The adapter of `quilkin-xds` 0.10.1, which uses delta:
//! `xds-conformance server --variants delta --control stdio -- quilkin-adapter`.

mod store;

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;
use std::time::Duration;

use quilkin_xds::net::TcpListener;
use quilkin_xds::server::ControlPlane;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::store::Store;

fn main() -> Result<(), Box<dyn Error>> {
    quilkin_xds::metrics::set_registry(Box::leak(Box::default()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let _in_runtime = runtime.enter();
    let (_shutdown, ends) = watch::channel(());
    let store = Arc::new(Store::default());
    let plane = ControlPlane::from_arc(store.clone(), Duration::from_secs(30), ends);
    let listener = TcpListener::bind(None)?;
    let address = format!("127.0.0.1:{}", listener.port());
    runtime.spawn(plane.clone().management_server(listener, None)?);
    say(&json!({"ready": {"address": address, "features": ["delta"]}}))?;
    for line in stdin().lock().lines() {
        let op: Value = serde_json::from_str(&line?)?;
        let done = store.apply(&op).map(|changed| changed.into_iter().for_each(|of| plane.push_update(of)));
        say(&done.map_or_else(|why| json!({"error": why}), |()| json!({})))?;
    }
    Ok(())
}

fn say(line: &Value) -> std::io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
