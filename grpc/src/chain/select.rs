//! From the Listener to the virtual host.

use xds_machine::ResourceName;

use super::failure::Failure;
use super::held::Store;
use super::target::Target;
use crate::domains::best_host;
use crate::links::{Links, ListenerLinks, RouteSource, VirtualHost};

/// The virtual host that the Listener leads to.
pub(super) struct Selected<'a, T> {
    pub(super) listener: &'a T,
    pub(super) routes: Option<(&'a ResourceName, &'a T)>,
    pub(super) index: usize,
    pub(super) host: &'a VirtualHost,
}

/// The reason why there is no virtual host.
pub(super) enum Unselected {
    Waits(Target),
    Failed(Failure),
}

/// Returns the route source of the held Listener, if it is a client's.
pub(super) fn route_source<T>(store: &Store<T>) -> Option<&RouteSource> {
    match store.listener.as_ref()?.links()? {
        Links::Listener(ListenerLinks::Api(source)) => Some(source),
        _ => None,
    }
}

/// Follows the Listener to the virtual host.
///
/// R-CHAIN-22: the routes are those that the held Listener names, whatever other routes are held. R-CHAIN-23: while
/// these are missing, nothing is selected.
pub(super) fn select<'a, T>(
    store: &'a Store<T>,
    listener: &ResourceName,
    authority: &str,
) -> Result<Selected<'a, T>, Unselected> {
    let of_listener = || Target::Listener(listener.clone());
    let view = match store.listener.as_ref().map(|held| &held.content) {
        None => return Err(Unselected::Waits(of_listener())),
        // R-CHAIN-17
        Some(Err(status)) => return Err(failed(of_listener(), status)),
        Some(Ok(view)) => view,
    };
    let (routes, hosts, target) = match route_source(store) {
        // R-CHAIN-18
        None => return Err(Unselected::Failed(Failure::NotApiListener { listener: listener.clone() })),
        Some(RouteSource::Inline(hosts)) => (None, &hosts[..], of_listener()),
        Some(RouteSource::Rds(name)) => {
            let target = Target::Routes(name.clone());
            match store.routes.get(name).map(|held| &held.content) {
                None => return Err(Unselected::Waits(target)),
                Some(Err(status)) => return Err(failed(target, status)),
                Some(Ok(view)) => match &*view.links {
                    Links::Routes(hosts) => (Some((name, &view.value)), &hosts[..], target),
                    _ => (Some((name, &view.value)), &[][..], target),
                },
            }
        }
    };
    let found = best_host(hosts, authority).and_then(|index| Some((index, hosts.get(index)?)));
    match found {
        Some((index, host)) => Ok(Selected { listener: &view.value, routes, index, host }),
        // R-CHAIN-19
        None => Err(Unselected::Failed(Failure::NoVirtualHost { target, authority: authority.into() })),
    }
}

fn failed(target: Target, status: &xds_machine::Status) -> Unselected {
    Unselected::Failed(Failure::Resource { target, status: status.clone() })
}
