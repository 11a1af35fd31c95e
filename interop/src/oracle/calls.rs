//! The results of a call with a configuration of the chain: the part of a channel's data path.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use xds_machine::ResourceName;
use xds_machine_grpc::chain::{Children, Config, Failure};
use xds_machine_grpc::endpoints::{Assignment, Health};
use xds_machine_grpc::links::ClusterLinks;
use xds_machine_grpc::resources::{Destination, Listener, PathMatch, Route, RouteAction, Routes, Source};

use super::answer::Call;
use super::encode::path;
use super::ours::{Outcome, PORTS, Value};

/// The choice of the leaves of aggregates.
#[derive(Clone, Copy)]
pub enum Leaves {
    /// As the chain has them.
    OfEachRoot,
    /// As C-core has them (GB-01): a cluster counts for the first root, by name, that reaches the cluster.
    OfTheFirstRoot,
    /// As R-CHAIN-36 and R-CHAIN-37 have them, by a walk of this module's own.
    ByTheRule,
}

/// Returns all results that a call for the route of a number can have.
pub fn results(told: Option<&Outcome>, number: usize, leaves: Leaves) -> BTreeSet<Call> {
    match told {
        None => [Call::Waits].into(),
        Some(Err(Failure::NoVirtualHost { .. })) => [Call::NoHost].into(),
        Some(Err(_)) => [Call::Target].into(),
        Some(Ok(config)) => in_use(config, &path(number), leaves),
    }
}

fn in_use(config: &Config<Arc<Value>>, path: &str, leaves: Leaves) -> BTreeSet<Call> {
    let Value::Listener(listener) = &*config.listener else { return other("no listener") };
    let Some(host) = routes(config, listener.value()).and_then(|routes| routes.hosts.get(config.virtual_host_index))
    else {
        return other("no host");
    };
    let matches = |route: &&Route| match &route.path {
        PathMatch::Prefix(prefix) => path.starts_with(prefix.as_str()),
        PathMatch::Exact(exact) => path == exact,
        PathMatch::Regex(_) => false,
    };
    let Some(route) = host.routes.iter().find(matches) else { return [Call::NoRoute].into() };
    let to = match &route.action {
        RouteAction::Unsupported => return [Call::Action].into(),
        RouteAction::Forward { to, .. } => to,
    };
    if listener.raw().windows(b"fault.v3.HTTPFault".len()).any(|window| window == b"fault.v3.HTTPFault") {
        return [Call::Aborted].into();
    }
    match to {
        Destination::Cluster(name) => [root(config, name, leaves)].into(),
        Destination::Weighted(all) => all.iter().map(|(name, _)| root(config, name, leaves)).collect(),
        Destination::Plugin(_) => other("a plugin"),
    }
}

fn routes<'a>(config: &'a Config<Arc<Value>>, listener: &'a Listener) -> Option<&'a Routes> {
    match (listener, config.routes.as_ref().map(|(_, value)| &**value)) {
        (Listener::Api(Source::Inline(routes)), _) => Some(routes),
        (_, Some(Value::Routes(view))) => Some(view.value()),
        _ => None,
    }
}

fn root(config: &Config<Arc<Value>>, name: &ResourceName, leaves: Leaves) -> Call {
    let error = || Call::Cluster(name.as_str().to_owned());
    let walked = match leaves {
        Leaves::OfEachRoot => None,
        Leaves::OfTheFirstRoot => Some(first_come(config).remove(name).unwrap_or_default()),
        Leaves::ByTheRule => Some(visit(config, name, &mut BTreeMap::new())),
    };
    match walked {
        Some(leaves) if leaves.is_empty() => return error(),
        Some(leaves) => return leaves.iter().find_map(|leaf| reach(config, leaf)).unwrap_or(Call::Unreachable),
        None => {}
    }
    match config.clusters.get(name) {
        None => Call::Other(format!("no cluster {name}")),
        Some(Err(_)) => error(),
        Some(Ok(cluster)) => match &cluster.children {
            Children::Leaves(leaves) => leaves.iter().find_map(|leaf| reach(config, leaf)).unwrap_or(Call::Unreachable),
            _ => reach(config, name).unwrap_or(Call::Unreachable),
        },
    }
}

/// Returns the leaves of each cluster as C-core finds them: one set of visited clusters for all roots, in the order of
/// names.
fn first_come(config: &Config<Arc<Value>>) -> BTreeMap<ResourceName, Vec<ResourceName>> {
    let mut roots: Vec<&ResourceName> = config.virtual_host.clusters.iter().collect();
    roots.sort_unstable();
    let mut seen = BTreeMap::new();
    roots.into_iter().for_each(|root| drop(visit(config, root, &mut seen)));
    seen
}

fn visit(
    config: &Config<Arc<Value>>,
    name: &ResourceName,
    seen: &mut BTreeMap<ResourceName, Vec<ResourceName>>,
) -> Vec<ResourceName> {
    let Some(Ok(cluster)) = config.clusters.get(name) else {
        // An aggregate without leaves is an error of the chain's, and not yet one of C-core's.
        return vec![];
    };
    if seen.contains_key(name) {
        return vec![];
    }
    seen.insert(name.clone(), vec![]);
    let leaves = match &*cluster.value {
        Value::Cluster(view) => match &view.value().kind {
            ClusterLinks::Aggregate(children) => children.iter().flat_map(|child| visit(config, child, seen)).collect(),
            _ => vec![name.clone()],
        },
        _ => vec![],
    };
    seen.insert(name.clone(), leaves.clone());
    leaves
}

/// Returns the result of a call that is sent to a leaf; `None` if another leaf is tried.
fn reach(config: &Config<Arc<Value>>, leaf: &ResourceName) -> Option<Call> {
    match &config.clusters.get(leaf)?.as_ref().ok()?.children {
        Children::Resolved { addresses, .. } => answering(addresses.iter()),
        Children::Endpoints { value: Some(value), .. } => match &**value {
            Value::Endpoints(view) => assigned(view.value()),
            _ => Some(Call::Other("no endpoints".into())),
        },
        _ => None,
    }
}

fn assigned(assignment: &Assignment) -> Option<Call> {
    if assignment.drops.iter().any(|drop| drop.per_million == 1_000_000) {
        return Some(Call::Dropped);
    }
    assignment.priorities.iter().find_map(|priority| {
        let all = priority.localities.iter().flat_map(|locality| &locality.endpoints);
        answering(all.filter(|end| end.health != Health::Draining).map(|end| &end.address))
    })
}

/// Returns the backends that answer at some addresses.
fn answering<'a>(addresses: impl Iterator<Item = &'a SocketAddr>) -> Option<Call> {
    let number = |address: &SocketAddr| PORTS.iter().position(|port| *port == address.port());
    let backends: BTreeSet<u8> = addresses.filter_map(number).filter_map(|number| u8::try_from(number).ok()).collect();
    (!backends.is_empty()).then_some(Call::Ok(backends))
}

fn other(text: &str) -> BTreeSet<Call> {
    [Call::Other(text.into())].into()
}
