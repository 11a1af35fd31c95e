//! Finds the cluster that serves a call, by the path of the call and a configuration of the chain.

use std::sync::Arc;

use xds_machine::ResourceName;
use xds_machine_grpc::chain::Config;
use xds_machine_grpc::resources::{Destination, Listener, PathMatch, RouteAction, Routes, Source, VirtualHost};

use crate::grpc::resource::Resource;

pub(super) type InUse = Config<Arc<Resource>>;

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
