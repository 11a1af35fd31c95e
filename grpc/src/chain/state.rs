//! The state of a chain, and everything that follows from the state, computed from scratch.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use xds_machine::ResourceName;

use super::config::{Config, build};
use super::failure::Failure;
use super::held::Store;
use super::references::References;
use super::select::{Selected, Unselected, route_source, select};
use super::target::Target;
use super::walk::{Reached, walk};
use crate::links::{RouteSource, VirtualHost};

/// The memory of a chain. Everything else is a function of it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct State<T> {
    pub(super) listener: ResourceName,
    pub(super) authority: String,
    pub(super) store: Store<T>,
    pub(super) references: References,
    kept: Kept,
    /// The targets that the driver was asked to watch.
    pub(super) asked: BTreeSet<Target>,
    /// The last outcome that the driver received.
    pub(super) told: Option<Result<Config<T>, Failure>>,
    pub(super) is_shut_down: bool,
}

/// The targets that stay wanted although the held resources do not lead to them (now).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Kept {
    /// The RouteConfiguration that the last good Listener named. R-CHAIN-20: an error of the Listener ends no watch.
    routes: Option<ResourceName>,
    /// The virtual host that was selected last. R-CHAIN-20: an error of the routes ends no watch.
    selected: Option<Arc<VirtualHost>>,
    /// The virtual host of the configuration in use. R-CHAIN-27: its clusters are wanted until the next is complete.
    used: Option<Arc<VirtualHost>>,
}

/// The clusters of a configuration, and what they wait for.
pub(super) struct Extent<'a> {
    /// The clusters of the virtual host and of the dynamic references that are resolved.
    pub(super) reached: Reached<'a>,
    pub(super) waits: BTreeSet<Target>,
    /// The targets that unresolved dynamic references wait for.
    pub(super) dynamic: BTreeSet<Target>,
}

impl<T: Clone + Eq> State<T> {
    pub(super) fn new(listener: ResourceName, authority: &str) -> Self {
        Self {
            listener,
            authority: authority.into(),
            store: Store::new(),
            references: References::default(),
            kept: Kept::default(),
            asked: BTreeSet::new(),
            told: None,
            is_shut_down: false,
        }
    }

    pub(super) fn shut_down(&mut self) {
        self.is_shut_down = true;
        (self.store, self.references, self.kept) = (Store::new(), References::default(), Kept::default());
    }

    /// Notes where a new Listener or new routes lead.
    pub(super) fn follow(&mut self) {
        match route_source(&self.store) {
            Some(RouteSource::Rds(name)) => self.kept.routes = Some(name.clone()),
            Some(RouteSource::Inline(_)) => self.kept.routes = None,
            None => {}
        }
        let selected = self.select().ok().map(|selected| selected.host);
        if let Some(host) = selected.filter(|host| self.kept.selected.as_deref() != Some(*host)) {
            self.kept.selected = Some(Arc::new(host.clone()));
        }
    }

    /// Notes the outcome that the driver receives. Returns whether other clusters are in use from now on.
    pub(super) fn tell(&mut self, outcome: Result<Config<T>, Failure>) -> bool {
        let used = outcome.as_ref().ok().map(|config| config.virtual_host.clone());
        self.told = Some(outcome);
        let Some(used) = used else { return false };
        let is_same = |before: &Arc<VirtualHost>| Arc::ptr_eq(before, &used) || before.clusters == used.clusters;
        let changes = !self.kept.used.as_ref().is_some_and(is_same);
        self.kept.used = Some(used);
        changes
    }

    pub(super) fn select(&self) -> Result<Selected<'_, T>, Unselected> {
        select(&self.store, &self.listener, &self.authority)
    }

    /// Returns all wanted targets: those that the roots reach through the held resources. Parents come before their
    /// children, and the types are in the order of the chain.
    pub(super) fn wanted(&self) -> Vec<Target> {
        if self.is_shut_down {
            return Vec::new();
        }
        let mut wanted = Vec::from([Target::Listener(self.listener.clone())]);
        wanted.extend(self.kept.routes.iter().cloned().map(Target::Routes)); // R-CHAIN-02
        let hosts = self.kept.selected.iter().chain(&self.kept.used);
        let roots = hosts.flat_map(|host| &host.clusters).chain(self.references.clusters());
        let reached = walk(&self.store, roots);
        wanted.extend(reached.clusters.iter().map(|&name| Target::Cluster(name.clone())));
        let mut seen = BTreeSet::new();
        for source in reached.clusters.iter().filter_map(|name| self.store.source(name)) {
            if seen.insert(source.clone()) {
                wanted.push(source); // R-CHAIN-07, R-CHAIN-08: one for all clusters that share the name
            }
        }
        wanted.sort_by_key(|target| matches!(target, Target::Dns(_)));
        wanted
    }

    /// Returns the clusters that a virtual host and the dynamic references lead to.
    pub(super) fn extent<'a>(&'a self, host: &'a VirtualHost) -> Extent<'a> {
        let store = &self.store;
        let fixed = walk(store, &host.clusters);
        let waits = fixed.clusters.iter().filter_map(|name| store.waits_for(name)).collect();
        let mut dynamic = BTreeSet::new();
        let mut roots: Vec<&ResourceName> = host.clusters.iter().collect();
        for root in self.references.clusters() {
            // R-CHAIN-47: a dynamic reference that is not resolved delays nothing, and is left out.
            let of_root = walk(store, [root]);
            let waits: Vec<Target> = of_root.clusters.iter().filter_map(|name| store.waits_for(name)).collect();
            let is_resolved = waits.is_empty();
            dynamic.extend(waits);
            if is_resolved {
                roots.push(root);
            }
        }
        let reached = if self.references.is_empty() { fixed } else { walk(store, roots) };
        Extent { reached, waits, dynamic }
    }

    /// Returns the targets that the next configuration waits for.
    pub(super) fn waits_for(&self) -> BTreeSet<Target> {
        match self.select() {
            _ if self.is_shut_down => BTreeSet::new(),
            Ok(selected) => self.extent(selected.host).waits,
            Err(Unselected::Waits(target)) => BTreeSet::from([target]),
            Err(Unselected::Failed(_)) => BTreeSet::new(),
        }
    }

    /// Returns the configuration, or why there is none; `None` while something is awaited (R-CHAIN-14).
    pub(super) fn outcome(&self) -> Option<Result<Config<T>, Failure>> {
        if self.is_shut_down {
            return None;
        }
        let selected = match self.select() {
            Ok(selected) => selected,
            Err(Unselected::Waits(_)) => return None,
            Err(Unselected::Failed(failure)) => return Some(Err(failure)),
        };
        let extent = self.extent(selected.host);
        extent.waits.is_empty().then(|| Ok(build(&self.store, &self.listener, &selected, &extent.reached)))
    }
}
