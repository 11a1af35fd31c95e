//! A complete configuration: what a channel needs to use a target.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use xds_machine::{ResourceName, Status};

use super::cluster::{Children, Cluster, Entry, join};
use super::clusters::Clusters;
use super::failure::Failure;
use super::held::{Held, Store};
use super::select::Selected;
use super::target::Target;
use super::walk::{Reached, leaves};
use crate::links::{ClusterLinks, HostPort, Links, VirtualHost};

/// A complete configuration of a target (gRFC A74). All parts are of one moment: the Listener names these routes, the
/// virtual host is theirs, and the clusters are those that the virtual host reaches (R-CHAIN-22).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Config<T> {
    /// The Listener.
    pub listener: T,
    /// The RouteConfiguration and its name; `None` if the routes are inside the Listener.
    pub routes: Option<(ResourceName, T)>,
    /// The index of the virtual host among those of the RouteConfiguration.
    pub virtual_host_index: usize,
    /// The virtual host that matches the data plane authority.
    pub virtual_host: Arc<VirtualHost>,
    /// Each cluster that the virtual host, an aggregate or a dynamic reference reaches, including those that failed
    /// (R-CHAIN-16).
    pub clusters: Clusters<T>,
}

/// Makes the configuration of a selected virtual host, whose clusters are all resolved.
pub(super) fn build<T: Clone>(
    store: &Store<T>,
    listener: &ResourceName,
    selected: &Selected<'_, T>,
    reached: &Reached<'_>,
) -> Config<T> {
    let makes = Makes { store, reached, above: above(store, listener, selected) };
    let names: Arc<[ResourceName]> = reached.sorted().cloned().collect();
    let entries = names.iter().map(|name| makes.entry(name)).collect();
    let host = Arc::new(selected.host.clone());
    Config {
        listener: selected.listener.clone(),
        routes: selected.routes.map(|(name, held)| (name.clone(), held.clone())),
        virtual_host_index: selected.index,
        virtual_host: host,
        clusters: Clusters::new(names, entries),
    }
}

/// Returns the ambient errors of the Listener and of the routes.
pub(super) fn above<T>(store: &Store<T>, listener: &ResourceName, selected: &Selected<'_, T>) -> String {
    let of_listener = note(&Target::Listener(listener.clone()), store.listener.as_ref());
    let routes = selected.routes.map(|(name, _)| note(&Target::Routes(name.clone()), store.routes.get(name)));
    join([of_listener, routes.unwrap_or_default()])
}

/// Makes single entries.
pub(super) struct Makes<'a, 'r, T> {
    pub(super) store: &'a Store<T>,
    pub(super) reached: &'r Reached<'a>,
    pub(super) above: String,
}

impl<T: Clone> Makes<'_, '_, T> {
    /// Makes the entry of a cluster that is resolved.
    fn entry(&self, name: &ResourceName) -> Entry<T> {
        match self.store.cluster_links(name) {
            Some(ClusterLinks::Aggregate(_)) => {
                let leaves = leaves(self.store, self.reached, name)?;
                let value = value(self.store, name)?;
                Ok(Cluster { value, children: Children::Leaves(leaves) })
            }
            _ => leaf(self.store, &self.above, name),
        }
    }
}

/// Makes the entry of a cluster that is no aggregate: a function of the cluster and its endpoints alone.
pub(super) fn leaf<T: Clone>(store: &Store<T>, above: &str, name: &ResourceName) -> Entry<T> {
    let value = value(store, name)?;
    let own = note(&Target::Cluster(name.clone()), store.clusters.get(name));
    let above = join([above.to_string(), own]);
    let children = match store.cluster_links(name) {
        Some(ClusterLinks::Eds(eds)) => endpoints(store, above, eds),
        Some(ClusterLinks::Dns(host)) => addresses(store, above, host),
        Some(ClusterLinks::Aggregate(_)) | None => Children::Leaves(Arc::new([])),
    };
    Ok(Cluster { value, children })
}

/// R-CHAIN-26: the error of a cluster is that of this cluster alone.
fn value<T: Clone>(store: &Store<T>, name: &ResourceName) -> Result<T, Failure> {
    let failed = |status: &Status| Failure::Resource { target: Target::Cluster(name.clone()), status: status.clone() };
    match store.clusters.get(name).map(|held| &held.content) {
        Some(Ok(view)) => Ok(view.value.clone()),
        Some(Err(status)) => Err(failed(status)),
        None => Err(failed(&Status::new(xds_machine::Code::Unavailable, "not known yet"))),
    }
}

fn endpoints<T: Clone>(store: &Store<T>, above: String, name: &ResourceName) -> Children<T> {
    let target = Target::Endpoints(name.clone());
    let held = store.endpoints.get(name);
    let (value, lacks, own) = match held.map(|held| &held.content) {
        Some(Ok(view)) => {
            let lacks = match &*view.links {
                Links::Endpoints(Some(lacks)) => format!("{target}: {lacks}"),
                _ => String::new(),
            };
            (Some(view.value.clone()), lacks, note(&target, held))
        }
        Some(Err(status)) => (None, String::new(), format!("{target}: {}", status.message)),
        None => (None, String::new(), String::new()),
    };
    Children::Endpoints { name: name.clone(), value, lacks, note: join([above, own]) }
}

fn addresses<T, U>(store: &Store<T>, above: String, host: &HostPort) -> Children<U> {
    let (addresses, own) = match store.dns.get(host) {
        Some(Ok(addresses)) => (addresses.clone(), String::new()),
        Some(Err(why)) => {
            let own = format!("DNS resolution failed for {}:{}: {why}", host.host, host.port);
            (Arc::from([]), own)
        }
        None => (Arc::from([]), String::new()),
    };
    Children::Resolved { host: host.clone(), addresses, note: join([above, own]) }
}

fn note<T>(target: &Target, held: Option<&Held<T>>) -> String {
    let note = held.and_then(|held| held.note.as_ref());
    note.map(|status| format!("{target}: {}", status.message)).unwrap_or_default()
}
