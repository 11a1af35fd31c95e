//! The adapter of this project's client:
//! `xds-conformance client -- client_adapter {port} {variant} [envoy|grpc|istio|separate]`.

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};

use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tonic::transport::Endpoint;
use xds_conformance::resource::decodes;
use xds_machine::client::{Action, Config, Dialect, Update, Verdict};
use xds_machine::message::Node;
use xds_machine::servers;
use xds_machine::service::Variant;
use xds_machine_tonic::client::{Report, Updates, XdsClient, dial};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().ok_or("the port is missing")?;
    let is_delta = arguments.next().is_some_and(|variant| variant == "delta");
    let kind = arguments.next().unwrap_or_default();
    let dialect = match kind.as_str() {
        "envoy" => Dialect::Envoy,
        "grpc" => Dialect::Grpc,
        "istio" => Dialect::Istio,
        _ => Dialect::Spec,
    };
    let config = Config::new(Node::new("client-adapter")).with_dialect(dialect);
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))?;
    let builder = XdsClient::builder(config).server(dial(endpoint));
    let builder = builder.variant(if is_delta { Variant::Delta } else { Variant::Sotw });
    let client = if kind == "separate" { builder.separate_streams() } else { builder }.start()?;
    let mut updates = client.updates().await?;
    let mut features = vec!["wildcard", "names", "ondemand", if is_delta { "delta" } else { "sotw" }];
    features.extend((dialect != Dialect::Grpc).then_some("ttl"));
    say(&json!({"ready": {"features": features}}))?;
    let (sender, mut lines) = unbounded_channel();
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    loop {
        tokio::select! {
            line = lines.recv() => {
                let Some(line) = line else { return Ok(()) }; // the end of the input ends the adapter
                say(&match tell(&updates, &line).await {
                    Ok(()) => json!({}),
                    Err(why) => json!({"error": why}),
                })?;
            }
            report = updates.next() => {
                let report = report.ok_or("the client has ended")?;
                if let Report::Action(servers::Action::Client { action, .. }) = report {
                    act(&updates, action).await?;
                }
            }
        }
    }
}

/// Subscribes or unsubscribes.
async fn tell(updates: &Updates, line: &str) -> Result<(), String> {
    let op: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let type_url = op["type"].as_str().ok_or("the type is missing")?.to_owned();
    let names = op["names"].as_array().ok_or("the names are missing")?;
    let names: Vec<String> = names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
    match op["op"].as_str() {
        Some("subscribe") => updates.subscribe(type_url, names).await.map_err(|error| error.to_string()),
        Some("unsubscribe") => {
            updates.unsubscribe(type_url, names);
            Ok(())
        }
        _ => Err(format!("{} is not supported", op["op"])),
    }
}

/// Applies an action of the client, and reports it.
async fn act(updates: &Updates, action: Action) -> Result<(), Box<dyn Error>> {
    match action {
        Action::Apply(update) => {
            let (verdict, event) = judge(update);
            updates.verdict(verdict).await?;
            event.iter().try_for_each(say)?;
        }
        Action::DoesNotExist { type_url, names } => {
            for name in names {
                say(&json!({"event": "missing", "type": type_url.as_str(), "name": name.as_str()}))?;
            }
        }
        Action::Expired { type_url, names } => {
            let removed: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            say(&json!({"event": "apply", "type": type_url.as_str(), "names": [], "removed": removed}))?;
        }
        _ => {}
    }
    Ok(())
}

/// Takes the resources whose bytes are a message, and rejects the others.
fn judge(update: Update) -> (Verdict, Option<Value>) {
    let good = update.resources().filter(|resource| decodes(resource.body()));
    let names: Vec<String> = good.map(|resource| resource.name().to_string()).collect();
    let removed: Vec<String> = update.removed().iter().map(ToString::to_string).collect();
    let (type_url, version) = (update.type_url().to_string(), update.version().to_string());
    let event = (!names.is_empty() || !removed.is_empty())
        .then(|| json!({"event": "apply", "type": type_url, "names": names, "removed": removed, "version": version}));
    let bytes = |body: &[u8]| if decodes(body) { Ok(()) } else { Err("the bytes are no resource") };
    (update.check(|resource| bytes(resource.body())), event)
}

fn say(line: &Value) -> std::io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
