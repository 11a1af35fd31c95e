//! The news that the chain holds: for each target nothing yet, a value, or an error.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::net::SocketAddr;

use xds_machine::watch::News;
use xds_machine::{Code, ResourceName, Status};

use super::target::Target;
use crate::links::{ClusterLinks, HostPort, Links};

/// A decoded resource: the links that the chain follows, and the value that the chain passes on.
///
/// The watches of [`xds_machine::watch`] clone a resource for each watcher; the links are shared, and a value that is
/// large is best shared too.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Linked<T> {
    /// The links of the resource.
    pub links: Arc<Links>,
    /// The resource as the caller decoded it.
    pub value: T,
}

impl<T> Linked<T> {
    /// Joins a resource with its links.
    pub fn new(links: Links, value: T) -> Self {
        Self { links: Arc::new(links), value }
    }
}

/// The held state of one resource.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Held<T> {
    pub(super) content: Result<Linked<T>, Status>,
    /// The ambient error of a value (R-CHAIN-33).
    pub(super) note: Option<Status>,
}

impl<T> Held<T> {
    pub(super) fn view(&self) -> Option<&Linked<T>> {
        self.content.as_ref().ok()
    }

    pub(super) fn links(&self) -> Option<&Links> {
        Some(&*self.view()?.links)
    }
}

/// The addresses of a DNS name, or why there are none.
pub(super) type Resolved = Result<Arc<[SocketAddr]>, String>;

/// All held resources and addresses, and nothing else.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Store<T> {
    pub(super) listener: Option<Held<T>>,
    pub(super) routes: BTreeMap<ResourceName, Held<T>>,
    pub(super) clusters: BTreeMap<ResourceName, Held<T>>,
    pub(super) endpoints: BTreeMap<ResourceName, Held<T>>,
    pub(super) dns: BTreeMap<HostPort, Resolved>,
}

/// The extent of a change: how much of what follows from the store may change with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Touches {
    Nothing,
    /// The links are unchanged, so that the same targets are reached.
    Content,
    /// A first value (or an error in its place) of endpoints or addresses, which lead to no other targets.
    Arrival,
    /// A first value (or an error in its place) of a cluster that is no aggregate: at most one more target is wanted.
    Leaf,
    Links,
}

impl<T: Eq> Store<T> {
    pub(super) fn new() -> Self {
        let (routes, clusters, endpoints) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { listener: None, routes, clusters, endpoints, dns: BTreeMap::new() }
    }

    /// Takes news about a resource.
    pub(super) fn put(&mut self, target: &Target, news: News<Linked<T>>) -> Touches {
        match target {
            Target::Listener(_) => put(&mut self.listener, target, news),
            Target::Routes(name) => put_in(&mut self.routes, name, target, news),
            Target::Cluster(name) => put_in(&mut self.clusters, name, target, news),
            Target::Endpoints(name) => put_in(&mut self.endpoints, name, target, news),
            Target::Dns(_) => Touches::Nothing,
        }
    }

    /// Takes the result of a resolution. R-CHAIN-32: a failure after a success is ignored.
    pub(super) fn put_resolved(&mut self, host: &HostPort, result: Resolved) -> Touches {
        match (self.dns.get(host), &result) {
            (Some(before), _) if *before == result => return Touches::Nothing,
            (Some(Ok(_)), Err(_)) => return Touches::Nothing,
            _ => {}
        }
        let before = self.dns.insert(host.clone(), result);
        if before.is_none() { Touches::Arrival } else { Touches::Content }
    }

    pub(super) fn forget(&mut self, target: &Target) {
        match target {
            Target::Listener(_) => self.listener = None,
            Target::Routes(name) => _ = self.routes.remove(name),
            Target::Cluster(name) => _ = self.clusters.remove(name),
            Target::Endpoints(name) => _ = self.endpoints.remove(name),
            Target::Dns(host) => _ = self.dns.remove(host),
        }
    }
}

impl<T> Store<T> {
    /// Returns the target that a cluster's endpoints come from; `None` for an aggregate, or if the cluster is not held.
    pub(super) fn source(&self, cluster: &ResourceName) -> Option<Target> {
        match self.cluster_links(cluster)? {
            ClusterLinks::Eds(name) => Some(Target::Endpoints(name.clone())),
            ClusterLinks::Dns(host) => Some(Target::Dns(host.clone())),
            ClusterLinks::Aggregate(_) => None,
        }
    }

    /// Returns the children of an aggregate; of any other cluster none.
    pub(super) fn children(&self, cluster: &ResourceName) -> &[ResourceName] {
        match self.cluster_links(cluster) {
            Some(ClusterLinks::Aggregate(children)) => children,
            _ => &[],
        }
    }

    pub(super) fn cluster_links(&self, cluster: &ResourceName) -> Option<&ClusterLinks> {
        match self.clusters.get(cluster)?.links()? {
            Links::Cluster(links) => Some(links),
            _ => None,
        }
    }

    /// Returns the target that a cluster itself waits for. R-CHAIN-15: an error ends the wait, absence does not.
    pub(super) fn waits_for(&self, cluster: &ResourceName) -> Option<Target> {
        if !self.clusters.contains_key(cluster) {
            return Some(Target::Cluster(cluster.clone()));
        }
        self.source(cluster).filter(|source| match source {
            Target::Endpoints(name) => !self.endpoints.contains_key(name),
            Target::Dns(host) => !self.dns.contains_key(host),
            _ => false,
        })
    }
}

fn put_in<T: Eq>(
    map: &mut BTreeMap<ResourceName, Held<T>>,
    name: &ResourceName,
    target: &Target,
    news: News<Linked<T>>,
) -> Touches {
    let mut held = map.remove(name);
    let touches = put(&mut held, target, news);
    if let Some(held) = held {
        map.insert(name.clone(), held);
    }
    touches
}

fn put<T: Eq>(held: &mut Option<Held<T>>, target: &Target, news: News<Linked<T>>) -> Touches {
    match news {
        News::Changed(content) => {
            let content = content.and_then(|view| checked(target, view));
            let next = Held { content, note: None };
            let touches = match (&*held, &next) {
                (Some(before), next) if before == next => Touches::Nothing,
                (Some(before), next) if is_below_nothing(target) || before.links() == next.links() => Touches::Content,
                (None, _) if is_below_nothing(target) => Touches::Arrival,
                (None, next) if is_leaf(target, next) => Touches::Leaf,
                _ => Touches::Links,
            };
            *held = Some(next);
            touches
        }
        // R-CHAIN-33: an ambient error changes no data. An ambient error without a value is ignored.
        News::Ambient(note) => match held {
            Some(held) if held.content.is_ok() && held.note != note => {
                held.note = note;
                Touches::Content
            }
            _ => Touches::Nothing,
        },
        _ => Touches::Nothing,
    }
}

fn is_below_nothing(target: &Target) -> bool {
    matches!(target, Target::Endpoints(_) | Target::Dns(_))
}

fn is_leaf<T>(target: &Target, held: &Held<T>) -> bool {
    let is_aggregate = matches!(held.links(), Some(Links::Cluster(ClusterLinks::Aggregate(_))));
    matches!(target, Target::Cluster(_)) && !is_aggregate
}

/// Refuses the links of another type, which a decoder gave by mistake.
fn checked<T>(target: &Target, view: Linked<T>) -> Result<Linked<T>, Status> {
    let fits = matches!(
        (target, &*view.links),
        (Target::Listener(_), Links::Listener(_))
            | (Target::Routes(_), Links::Routes(_))
            | (Target::Cluster(_), Links::Cluster(_))
            | (Target::Endpoints(_), Links::Endpoints(_))
    );
    let other = || Status::new(Code::Internal, format!("the decoder gave the links of another type: {:?}", view.links));
    if fits { Ok(view) } else { Err(other()) }
}
