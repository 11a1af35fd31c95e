//! The priorities of the clusters: their names, which stay over updates, and the children of those that are tried.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use xds_machine::{Instant, ResourceName, message};
use xds_machine_grpc::chain::Children;
use xds_machine_grpc::endpoints::{
    Assignment, Child, ChildNames, Drop, Endpoint, Health, Locality, Priority, State, choose,
};

use super::backend::Backends;
use super::route::InUse;
use crate::grpc::resource::Resource;

/// The endpoints of a leaf.
#[derive(Clone, Eq, PartialEq)]
enum Source {
    Assigned(Arc<Resource>),
    Resolved(Arc<Assignment>),
}

impl Source {
    fn of(children: &Children<Arc<Resource>>) -> Option<Self> {
        match children {
            Children::Endpoints { value, .. } => value.clone().map(Self::Assigned),
            Children::Resolved { addresses, .. } => Some(Self::Resolved(Arc::new(resolved(addresses)))),
            Children::Leaves(_) => None,
        }
    }

    fn assignment(&self) -> Option<&Assignment> {
        match self {
            Self::Assigned(resource) => resource.assignment(),
            Self::Resolved(assignment) => Some(assignment),
        }
    }

    fn priorities(&self) -> &[Priority] {
        self.assignment().map_or(&[], |assignment| &assignment.priorities)
    }
}

/// R-CHAIN-32: the addresses of a name are one priority with one locality.
fn resolved(addresses: &[SocketAddr]) -> Assignment {
    let endpoint = |address: &SocketAddr| Endpoint {
        address: *address,
        additional: vec![],
        weight: NonZeroU32::MIN,
        health: Health::Unknown,
    };
    let endpoints = addresses.iter().map(endpoint).collect();
    let locality = Locality { name: message::Locality::default(), weight: NonZeroU32::MIN, endpoints };
    Assignment { priorities: vec![Priority { localities: vec![locality] }], drops: vec![] }
}

/// A leaf, with the names of its priorities (R-EDS-22).
struct Leaf {
    source: Source,
    names: ChildNames,
}

/// The leaves of a configuration.
#[derive(Default)]
pub(super) struct Leaves(BTreeMap<ResourceName, Leaf>);

impl Leaves {
    /// Applies a configuration: the priorities of leaves that changed are named anew.
    pub(super) fn update(&mut self, config: &InUse) {
        let mut former = std::mem::take(&mut self.0);
        for (name, cluster) in config.clusters.iter() {
            let Some(source) = cluster.as_ref().ok().and_then(|cluster| Source::of(&cluster.children)) else {
                continue;
            };
            let leaf = match former.remove(name) {
                Some(leaf) if leaf.source == source => leaf,
                changed => {
                    let mut names = changed.map(|leaf| leaf.names).unwrap_or_default();
                    names.update(source.priorities());
                    Leaf { source, names }
                }
            };
            self.0.insert(name.clone(), leaf);
        }
    }

    /// Returns the priorities of a cluster in order: those of each leaf, for an aggregate.
    ///
    /// # Errors
    ///
    /// Why the cluster can't be used.
    pub(super) fn levels(&self, config: &InUse, name: &ResourceName) -> Result<Vec<Level>, String> {
        let cluster = match config.clusters.get(name) {
            None => return Err(format!("no cluster {name}")),
            Some(Err(failure)) => return Err(failure.to_string()),
            Some(Ok(cluster)) => cluster,
        };
        let leaves = match &cluster.children {
            Children::Leaves(leaves) => leaves,
            _ => std::slice::from_ref(name),
        };
        let levels: Vec<Level> = leaves.iter().flat_map(|leaf| self.of_leaf(leaf)).collect();
        if levels.is_empty() {
            let remark = |leaf| Some(config.clusters.get(leaf)?.as_ref().ok()?.children.remark());
            return Err(leaves.iter().filter_map(remark).collect::<Vec<_>>().join("; "));
        }
        Ok(levels)
    }

    fn of_leaf(&self, name: &ResourceName) -> impl Iterator<Item = Level> {
        self.0.get(name).into_iter().flat_map(|leaf| {
            let level =
                |(at, child): (usize, &u64)| Level { name: (name.clone(), *child), source: leaf.source.clone(), at };
            leaf.names.names().iter().enumerate().map(level)
        })
    }
}

/// A priority of a cluster, or of a leaf of an aggregate.
pub(super) struct Level {
    /// The leaf, and the name of the priority among those of the leaf.
    name: (ResourceName, u64),
    source: Source,
    at: usize,
}

impl Level {
    pub(super) fn localities(&self) -> &[Locality] {
        &self.priority().localities
    }

    pub(super) fn priority(&self) -> &Priority {
        &self.source.priorities()[self.at]
    }

    pub(super) fn drops(&self) -> &[Drop] {
        self.source.assignment().map_or(&[], |assignment| &assignment.drops)
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.localities().iter().flat_map(for_calls)
    }
}

/// Returns the addresses that new calls may go to: of endpoints that are not drained (R-EDS-09).
pub(super) fn for_calls(locality: &Locality) -> impl Iterator<Item = SocketAddr> + Clone {
    let serving = locality.endpoints.iter().filter(|endpoint| endpoint.health != Health::Draining);
    serving.map(|endpoint| endpoint.address)
}

/// A cluster that calls are routed to: its priorities, and the children of those that are tried or were (gRFC A56).
pub(super) struct Root {
    levels: Result<Vec<Level>, String>,
    /// One for each level.
    children: Vec<Option<Child>>,
    /// Whether there was a call.
    is_used: bool,
    chosen: usize,
}

impl Root {
    /// Makes the cluster anew. Children stay if their priorities do; those of other priorities end (gRFC A115).
    pub(super) fn new(levels: Result<Vec<Level>, String>, former: Option<Root>) -> Self {
        let is_used = former.as_ref().is_some_and(|root| root.is_used);
        let former: BTreeMap<_, _> = former
            .into_iter()
            .flat_map(|root| root.levels.into_iter().flatten().map(|level| level.name).zip(root.children))
            .collect();
        let of_level = |level: &Level| former.get(&level.name).copied().flatten();
        let children = levels.iter().flatten().map(of_level).collect();
        Self { levels, children, is_used, chosen: 0 }
    }

    /// Records a call. Returns whether it is the first one.
    pub(super) fn use_it(&mut self) -> bool {
        !std::mem::replace(&mut self.is_used, true)
    }

    /// Chooses the priority by the states of connections and the timers, and begins to connect to the endpoints of
    /// those that are to be tried. Does nothing before the first call.
    pub(super) fn look(&mut self, now: Instant, backends: &mut Backends) {
        let (true, Ok(levels)) = (self.is_used, &self.levels) else { return };
        let choice = loop {
            for (level, child) in levels.iter().zip(&mut self.children) {
                if let Some(known) = child {
                    known.handle_timeout(now);
                    known.handle_state(now, backends.state(level.addresses()));
                    *child = Some(*known).filter(|known| !known.is_expired(now));
                }
            }
            let Some(choice) = choose(&self.children) else { return };
            if !choice.creates {
                break choice;
            }
            backends.open(levels[choice.priority].addresses());
            self.children[choice.priority] = Some(Child::new(now));
        };
        self.chosen = choice.priority;
        for (at, child) in self.children.iter_mut().enumerate() {
            let Some(child) = child else { continue };
            match (at > choice.priority, choice.deactivates_lower) {
                (true, true) => child.deactivate(now),
                (true, false) => {}
                (false, _) => child.reactivate(),
            }
        }
    }

    /// Returns the priority that calls go to, and its state when that was chosen.
    ///
    /// # Errors
    ///
    /// Why the cluster can't be used.
    pub(super) fn chosen(&self) -> Result<(&Level, State), String> {
        let level = self.levels.as_ref().map_err(Clone::clone)?.get(self.chosen);
        let child = self.children.get(self.chosen).copied().flatten();
        level.zip(child).map(|(level, child)| (level, child.state())).ok_or_else(|| "no priorities".into())
    }

    /// Returns the addresses that need connections.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let levels = self.levels.iter().flatten().zip(&self.children);
        levels.filter(|(_, child)| child.is_some()).flat_map(|(level, _)| level.addresses())
    }

    /// Returns when the next timer of a child ends.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.children.iter().flatten().filter_map(Child::poll_timeout).min()
    }
}
