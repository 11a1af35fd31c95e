//! Makes the plan and the control of a run from the options.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use xds_conformance::client;
use xds_conformance::control::{Adapter, Directory, Exec, Grpc, Nothing};
use xds_conformance::message::Variant;
use xds_conformance::mode::Plan;
use xds_conformance::net::SharedControl;
use xds_conformance::report::{Glob, Implementation};

use crate::arguments::{Options, VariantName};

/// Returns the plan for a client.
pub(crate) fn client(options: &Options, command: &[String]) -> Result<client::mode::Plan, String> {
    let reference = match options.induced.as_str() {
        "stdio" => false,
        "reference" => true,
        other => return Err(format!("--induced {other}: it is stdio or reference")),
    };
    let starts = match &options.envoy[..] {
        [] => options.variants.iter().map(|name| (variant(name), String::new())).collect(),
        names => names.iter().map(|name| Ok((envoy(name)?, name.clone()))).collect::<Result<_, String>>()?,
    };
    let details =
        json!({"command": command, "induced": options.induced, "features": options.features, "types": options.types});
    Ok(client::mode::Plan {
        command: command.to_vec(),
        implementation: implementation(command.join(" "), options, &details),
        starts,
        reference,
        features: options.features.iter().cloned().collect(),
        unsupported: options.unsupported.iter().cloned().collect(),
        types: options.types.clone(),
        wildcard: options.wildcard.clone(),
        filter: options.filter.clone().map(Glob::new),
        patience: options.patience,
        strict: options.strict,
    })
}

/// Returns the description of the peer in the report: the facts that the user gave, and how the kit reached the peer.
fn implementation(target: String, options: &Options, how: &Value) -> Implementation {
    let mut details: Map<String, Value> =
        options.about.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    details.extend(how.as_object().cloned().unwrap_or_default());
    Implementation { target, details }
}

fn variant(name: &VariantName) -> Variant {
    match name {
        VariantName::Sotw => Variant::Sotw,
        VariantName::Delta => Variant::Delta,
    }
}

/// Returns the variant of a bootstrap of Envoy.
fn envoy(name: &str) -> Result<Variant, String> {
    let known = || format!("--envoy {name}: it is one of {}", client::launch::envoys().collect::<Vec<_>>().join(", "));
    client::launch::variant_of_envoy(name).ok_or_else(known)
}

/// A server under test.
pub(crate) struct Setup {
    pub(crate) plan: Plan,
    pub(crate) control: SharedControl,
}

impl Setup {
    /// Starts the control that the options choose.
    pub(crate) fn new(options: &Options, command: &[String]) -> Result<Self, String> {
        let mut features: BTreeSet<String> = options.features.iter().cloned().collect();
        let mut address = options.address.clone();
        let mut target = address.clone().unwrap_or_default();
        let (control, has_control): (SharedControl, bool) = match options.control.split_once(':') {
            _ if options.control == "none" => (Arc::new(Mutex::new(Nothing)), false),
            _ if options.control == "stdio" => {
                let adapter = Adapter::start(command).map_err(|trouble| trouble.0)?;
                features.extend(adapter.ready().features.iter().cloned());
                address.get_or_insert_with(|| adapter.ready().address.clone());
                target = command.join(" ");
                (Arc::new(Mutex::new(adapter)), true)
            }
            _ if options.control == "exec" => {
                let commands = options.put.clone().zip(options.delete.clone());
                let (put, delete) = commands.ok_or("--control exec needs --put CMD and --delete CMD")?;
                (Arc::new(Mutex::new(Exec::new(put, delete).map_err(|error| error.to_string())?)), true)
            }
            Some(("grpc", control)) => (Arc::new(Mutex::new(Grpc::new(control).map_err(|trouble| trouble.0)?)), true),
            Some(("dir", path)) => {
                let directory = Directory::new(path).map_err(|error| format!("{path}: {error}"))?;
                (Arc::new(Mutex::new(directory)), true)
            }
            _ => {
                return Err(format!(
                    "--control {}: it is none, stdio, dir:DIR, exec or grpc:HOST:PORT",
                    options.control
                ));
            }
        };
        let address = address.ok_or("--address is missing")?;
        let details = json!({
            "address": address,
            "control": options.control,
            "command": command,
            "features": features,
            "unsupported": options.unsupported.iter().cloned().collect::<BTreeMap<_, _>>(),
            "types": options.types,
            "wildcard": options.wildcard,
        });
        let plan = Plan {
            address,
            implementation: implementation(target, options, &details),
            has_control,
            has_batches: control.lock().is_ok_and(|control| control.is_atomic()),
            variants: options.variants.iter().map(variant).collect(),
            features,
            unsupported: options.unsupported.iter().cloned().collect::<BTreeMap<_, _>>(),
            types: options.types.clone(),
            wildcard: options.wildcard.clone(),
            filter: options.filter.clone().map(Glob::new),
            patience: options.patience,
            v2: options.transport == "v2",
            node: options.node.clone(),
            strict: options.strict,
        };
        Ok(Self { plan, control })
    }
}
