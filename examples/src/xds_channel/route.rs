//! From the path of a call to the priorities that may serve the call, by a configuration of the chain.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use xds_machine::{ResourceName, message};
use xds_machine_grpc::chain::{Children, Config};
use xds_machine_grpc::endpoints::{Assignment, Drop, Endpoint, Health, Locality, Priority};
use xds_machine_grpc::resources::{Destination, Listener, PathMatch, RouteAction, Routes, Source, VirtualHost};

use crate::grpc::resource::Resource;

pub(super) type InUse = Config<Arc<Resource>>;

/// A priority of a cluster, or of a leaf of an aggregate.
pub(super) struct Level<'a> {
    /// The leaf, and the number of the priority among those of the leaf.
    pub(super) name: (ResourceName, usize),
    pub(super) priority: Priority,
    pub(super) drops: &'a [Drop],
}

/// Returns the cluster for a path.
///
/// # Errors
///
/// Why no cluster serves the path.
pub(super) fn cluster<'a>(config: &'a InUse, path: &str, random: u64) -> Result<&'a ResourceName, String> {
    let host = host(config).ok_or("no routes")?;
    let route = host.routes.iter().find(|route| match &route.path {
        PathMatch::Prefix(prefix) => path.starts_with(prefix.as_str()),
        PathMatch::Exact(exact) => path == exact,
        PathMatch::Regex(_) => false, // data path, which this channel lacks
    });
    match route.map(|route| &route.action) {
        None => Err("No matching route found in xDS route config".into()),
        Some(RouteAction::Forward { to: Destination::Cluster(name), .. }) => Ok(name),
        Some(RouteAction::Forward { to: Destination::Weighted(all), .. }) => {
            let sum: u64 = all.iter().map(|(_, weight)| u64::from(*weight)).sum();
            let mut left = random % sum.max(1);
            let hit = all.iter().find(|(_, weight)| {
                let is_hit = left < u64::from(*weight);
                left = left.saturating_sub(u64::from(*weight));
                is_hit
            });
            hit.map(|(name, _)| name).ok_or_else(|| "no weighted cluster".into())
        }
        Some(RouteAction::Forward { to: Destination::Plugin(_), .. } | RouteAction::Unsupported) => {
            Err("Matching route has inappropriate action".into())
        }
    }
}

fn host(config: &InUse) -> Option<&VirtualHost> {
    let routes: &Routes = match (&*config.listener, config.routes.as_ref().map(|(_, routes)| &**routes)) {
        (_, Some(Resource::Routes(view))) => view.value(),
        (Resource::Listener(view), _) => match view.value() {
            Listener::Api(Source::Inline(routes)) => routes,
            _ => return None,
        },
        _ => return None,
    };
    routes.hosts.get(config.virtual_host_index)
}

/// Returns the priorities of a cluster in order: those of each leaf, for an aggregate.
///
/// # Errors
///
/// Why the cluster can't be used.
pub(super) fn levels<'a>(config: &'a InUse, name: &ResourceName) -> Result<Vec<Level<'a>>, String> {
    let cluster = match config.clusters.get(name) {
        None => return Err(format!("no cluster {name}")),
        Some(Err(failure)) => return Err(failure.to_string()),
        Some(Ok(cluster)) => cluster,
    };
    let leaves = match &cluster.children {
        Children::Leaves(leaves) => leaves.to_vec(),
        _ => vec![name.clone()],
    };
    let levels: Vec<Level<'a>> = leaves.iter().flat_map(|leaf| of_leaf(config, leaf)).collect();
    if levels.is_empty() {
        let remark = |leaf| Some(config.clusters.get(leaf)?.as_ref().ok()?.children.remark());
        return Err(leaves.iter().filter_map(remark).collect::<Vec<_>>().join("; "));
    }
    Ok(levels)
}

fn of_leaf<'a>(config: &'a InUse, leaf: &ResourceName) -> Vec<Level<'a>> {
    let Some(Ok(cluster)) = config.clusters.get(leaf) else { return vec![] };
    match &cluster.children {
        Children::Resolved { addresses, .. } => {
            vec![Level { name: (leaf.clone(), 0), priority: resolved(addresses), drops: &[] }]
        }
        Children::Endpoints { value: Some(value), .. } => match value.assignment() {
            Some(Assignment { priorities, drops }) => {
                let level = |(number, priority): (usize, &Priority)| Level {
                    name: (leaf.clone(), number),
                    priority: for_calls(priority),
                    drops,
                };
                priorities.iter().enumerate().map(level).collect()
            }
            None => vec![],
        },
        _ => vec![],
    }
}

/// Leaves out what serves no new calls (R-EDS-09).
fn for_calls(priority: &Priority) -> Priority {
    let mut priority = priority.clone();
    for locality in &mut priority.localities {
        locality.endpoints.retain(|endpoint| endpoint.health != Health::Draining);
    }
    priority
}

/// R-CHAIN-32: the addresses of a name are one priority with one locality.
fn resolved(addresses: &[SocketAddr]) -> Priority {
    let endpoint = |address: &SocketAddr| Endpoint {
        address: *address,
        additional: vec![],
        weight: NonZeroU32::MIN,
        health: Health::Unknown,
    };
    let endpoints = addresses.iter().map(endpoint).collect();
    let name = message::Locality { region: String::new(), zone: String::new(), sub_zone: String::new() };
    Priority { localities: vec![Locality { name, weight: NonZeroU32::MIN, endpoints }] }
}
