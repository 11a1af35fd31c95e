//! The lines of standard output.

use std::io::{Write, stdout};
use std::process::exit;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use xds_machine::client::Rejection;
use xds_machine::{ResourceName, TypeUrl};
use xds_machine_grpc::chain::{Children, Config, Entry};
use xds_machine_grpc::endpoints::{Assignment, Endpoint, Health, Locality};

use examples::grpc::resource::Resource;
use examples::printable;

pub(crate) fn print(line: &Value) {
    let mut out = stdout().lock();
    if writeln!(out, "{}", printable::json(&line.to_string())).and_then(|()| out.flush()).is_err() {
        exit(1); // standard output is closed
    }
}

pub(crate) fn config(listener: &ResourceName, config: &Config<Arc<Resource>>) -> Value {
    let clusters = config.clusters.iter().map(|(name, entry)| (name.to_string(), cluster(entry)));
    let host = &config.virtual_host;
    json!({ "config": {
        "listener": listener.as_str(),
        "routes": config.routes.as_ref().map(|(name, _)| name.as_str()),
        "virtual_host": { "name": host.name, "domains": host.domains },
        "clusters": clusters.collect::<Map<_, _>>(),
    } })
}

pub(crate) fn rejected(type_url: &TypeUrl, rejections: &[Rejection]) -> Value {
    let name = |rejection: &Rejection| rejection.name.as_ref().map(ToString::to_string);
    let errors = rejections.iter().map(|rejection| json!({ "name": name(rejection), "message": rejection.reason }));
    json!({ "reject": { "type_url": type_url.as_str(), "errors": errors.collect::<Vec<_>>() } })
}

fn cluster(entry: &Entry<Arc<Resource>>) -> Value {
    let children = match entry {
        Ok(cluster) => &cluster.children,
        Err(failure) => return json!({ "error": failure.to_string() }),
    };
    match children {
        Children::Endpoints { name, value, note, .. } => {
            let shown = assignment(value.as_ref().and_then(|value| value.assignment()));
            noted(json!({ "endpoints": shown, "service": name.as_str() }), note)
        }
        Children::Resolved { host, addresses, note } => {
            let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            noted(json!({ "dns": format!("{}:{}", host.host, host.port), "addresses": addresses }), note)
        }
        Children::Leaves(leaves) => json!({ "leaves": leaves.iter().map(ResourceName::as_str).collect::<Vec<_>>() }),
    }
}

fn noted(mut cluster: Value, note: &str) -> Value {
    if let (false, Value::Object(fields)) = (note.is_empty(), &mut cluster) {
        fields.insert("note".into(), note.into());
    }
    cluster
}

fn assignment(assignment: Option<&Assignment>) -> Value {
    let (priorities, drops) = assignment.map_or((&[][..], &[][..]), |of| (&of.priorities[..], &of.drops[..]));
    let priorities = priorities.iter().map(|priority| priority.localities.iter().map(locality).collect::<Vec<_>>());
    let drops = drops.iter().map(|drop| json!({ "category": drop.category, "per_million": drop.per_million }));
    json!({ "priorities": priorities.collect::<Vec<_>>(), "drops": drops.collect::<Vec<_>>() })
}

fn locality(locality: &Locality) -> Value {
    let name = [&locality.name.region, &locality.name.zone, &locality.name.sub_zone].map(String::as_str).join("/");
    let endpoints: Vec<_> = locality.endpoints.iter().map(endpoint).collect();
    json!({ "locality": name, "weight": locality.weight, "endpoints": endpoints })
}

fn endpoint(endpoint: &Endpoint) -> Value {
    let health = match endpoint.health {
        Health::Unknown => "UNKNOWN",
        Health::Healthy => "HEALTHY",
        Health::Draining => "DRAINING",
    };
    json!({
        "address": endpoint.address.ip().to_string(),
        "port": endpoint.address.port(),
        "weight": endpoint.weight,
        "health": health,
    })
}
