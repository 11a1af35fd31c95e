//! Decodes RouteConfigurations (R-RTE).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use xds_machine::ResourceName;

use super::any::extension;
use super::generated::{self, ClusterSpecifierPlugin, RouteConfiguration, RouteMatch, WeightedCluster, route};
use super::generated::{route_action, route_match};
use super::message::{NOT_PRESENT, decode};
use super::view::{Context, Destination, PathMatch, Route, RouteAction, Routes, View, VirtualHost};
use crate::domains::is_pattern;
use crate::faults::{Faults, Walk};

/// Decodes a RouteConfiguration (R-RTE).
///
/// # Errors
///
/// All faults of the core rules.
pub fn decode_routes(name: &ResourceName, body: &Bytes, context: &Context) -> Result<View<Routes>, Faults> {
    let (config, mut walk) = decode::<RouteConfiguration>("RouteConfiguration", name, body)?;
    let value = routes(&mut walk, config, context);
    View::judge(walk, Some(value), body)
}

/// Whether the caller supports a cluster specifier plugin, by the plugin's name.
type Plugins = BTreeMap<String, bool>;

/// Reads the routes of a RouteConfiguration, also of an inline one.
pub(super) fn routes(walk: &mut Walk, config: RouteConfiguration, context: &Context) -> Routes {
    let plugins = plugins(walk, &config.cluster_specifier_plugins, context);
    // R-RTE-01: All virtual hosts are validated, whichever is selected.
    let hosts = config.virtual_hosts.into_iter().enumerate();
    let hosts = hosts
        .map(|(at, one)| walk.within(format_args!("virtual_hosts[{at}]"), |walk| host(walk, one, &plugins, context)));
    Routes { hosts: hosts.collect() }
}

/// R-RTE-15: A plugin that is not supported is a fault, unless the plugin is optional.
fn plugins(walk: &mut Walk, all: &[ClusterSpecifierPlugin], context: &Context) -> Plugins {
    let mut plugins = Plugins::new();
    for (at, plugin) in all.iter().enumerate() {
        walk.within(format_args!("cluster_specifier_plugins[{at}].extension"), |walk| {
            let Some(config) = &plugin.extension else {
                walk.fault(NOT_PRESENT);
                return;
            };
            if plugins.contains_key(&config.name) {
                walk.fault_at("name", format!("duplicate name {:?}", config.name));
            }
            let extension = walk.within("typed_config", |walk| extension(walk, config.typed_config.as_ref()));
            let supported = extension.as_ref().is_none_or(|extension| context.plugins.contains(&extension.kind));
            if !supported && !plugin.is_optional {
                walk.fault_at("typed_config", "unsupported ClusterSpecifierPlugin type");
            }
            // A faulty plugin counts as supported, so that its routes are no further faults.
            plugins.insert(config.name.clone(), supported || !plugin.is_optional);
        });
    }
    plugins
}

fn host(walk: &mut Walk, host: generated::VirtualHost, plugins: &Plugins, context: &Context) -> VirtualHost {
    // R-RTE-02: A virtual host has domains: names, or patterns with an asterisk at an end.
    for (at, domain) in host.domains.iter().enumerate().filter(|(_, domain)| !is_pattern(domain)) {
        walk.fault_at(format_args!("domains[{at}]"), format!("invalid domain pattern {domain:?}"));
    }
    if host.domains.is_empty() {
        walk.fault_at("domains", "must be non-empty");
    }
    let routes = host.routes.into_iter().enumerate().filter_map(|(at, one)| {
        walk.within(format_args!("routes[{at}]"), |walk| self::route(walk, at, one, plugins, context))
    });
    VirtualHost { name: host.name, routes: routes.collect(), domains: host.domains }
}

/// Reads a route. Returns `None` for a route that is ignored or faulty.
fn route(
    walk: &mut Walk,
    index: usize,
    route: generated::Route,
    plugins: &Plugins,
    context: &Context,
) -> Option<Route> {
    let Some(conditions) = route.r#match else {
        walk.fault_at("match", NOT_PRESENT);
        return None;
    };
    // R-RTE-09: A route that depends on query parameters is ignored, faults included.
    if !conditions.query_parameters.is_empty() {
        return None;
    }
    let ignore_case = conditions.case_sensitive.as_ref().is_some_and(|sensitive| !sensitive.value);
    let path = walk.within("match", |walk| path(walk, conditions))?;
    let action = match route.action {
        Some(route::Action::Route(action)) => walk.within("route", |walk| forward(walk, action, plugins, context))?,
        // R-RTE-12: A route with another action, or without one, matches; its calls fail.
        _ => RouteAction::Unsupported,
    };
    Some(Route { index, path, ignore_case, action })
}

fn path(walk: &mut Walk, conditions: RouteMatch) -> Option<PathMatch> {
    use route_match::PathSpecifier::{Path, Prefix, SafeRegex};
    match conditions.path_specifier {
        Some(Prefix(prefix)) => Some(PathMatch::Prefix(prefix)),
        Some(Path(path)) => Some(PathMatch::Exact(path)),
        Some(SafeRegex(regex)) => Some(PathMatch::Regex(regex.regex)),
        // R-RTE-07: A path specifier that gRPC does not know counts as none.
        _ => {
            walk.fault("invalid path specifier");
            None
        }
    }
}

fn forward(
    walk: &mut Walk,
    action: generated::RouteAction,
    plugins: &Plugins,
    context: &Context,
) -> Option<RouteAction> {
    use route_action::ClusterSpecifier::{Cluster, ClusterSpecifierPlugin, WeightedClusters};
    let to = match action.cluster_specifier {
        Some(Cluster(name)) => {
            // R-RTE-13: No Cluster has an empty name.
            if name.is_empty() {
                walk.fault_at("cluster", "must be non-empty");
            }
            Destination::Cluster(name.into())
        }
        Some(WeightedClusters(weighted)) => {
            Destination::Weighted(walk.within("weighted_clusters", |walk| self::weighted(walk, weighted)))
        }
        Some(ClusterSpecifierPlugin(name)) => {
            let supported = walk.within("cluster_specifier_plugin", |walk| self::plugin(walk, &name, plugins));
            // R-RTE-15: The routes to an optional plugin that is not supported are ignored.
            return supported.then_some(self::to(Destination::Plugin(name), &action.host_rewrite_specifier, context));
        }
        // R-RTE-11: A route is ignored if its cluster can't be known.
        _ => return None,
    };
    Some(self::to(to, &action.host_rewrite_specifier, context))
}

/// R-RTE-23: The host name is rewritten only by resources of a trusted server (gRFC A81).
fn to(to: Destination, rewrite: &Option<route_action::HostRewriteSpecifier>, context: &Context) -> RouteAction {
    use route_action::HostRewriteSpecifier::AutoHostRewrite;
    let rewrites = matches!(rewrite, Some(AutoHostRewrite(rewrite)) if rewrite.value);
    RouteAction::Forward { to, auto_host_rewrite: rewrites && context.trusted }
}

/// Returns whether the plugin of a route is supported. A faulty plugin counts as supported.
fn plugin(walk: &mut Walk, name: &str, plugins: &Plugins) -> bool {
    match plugins.get(name) {
        _ if name.is_empty() => walk.fault("must be non-empty"),
        Some(supported) => return *supported,
        None => walk.fault(format!("unknown cluster specifier plugin name {name:?}")),
    }
    true
}

/// R-RTE-14: The clusters of a route with their weights, without clusters of weight 0. A missing weight is 0.
fn weighted(walk: &mut Walk, weighted: WeightedCluster) -> Vec<(ResourceName, u32)> {
    let mut clusters = Vec::new();
    for (at, cluster) in weighted.clusters.into_iter().enumerate() {
        if cluster.name.is_empty() {
            walk.fault_at(format_args!("clusters[{at}].name"), "must be non-empty");
        }
        let weight = cluster.weight.map_or(0, |weight| weight.value);
        if weight > 0 {
            clusters.push((cluster.name.into(), weight));
        }
    }
    if clusters.is_empty() {
        walk.fault("no valid clusters specified");
    }
    let sum: u64 = clusters.iter().map(|(_, weight)| u64::from(*weight)).sum();
    if sum > u64::from(u32::MAX) {
        walk.fault("sum of cluster weights exceeds uint32 max");
    }
    clusters
}
