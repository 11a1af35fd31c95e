//! Remembers what follows from the state, so that a change costs as much as it affects, whatever the state's size.
//!
//! The memo is no part of the state: a chain without its memo behaves the same, and `state.rs` is the memo's oracle.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use xds_machine::ResourceName;

use super::config::{Config, above, build, leaf};
use super::failure::Failure;
use super::held::Touches;
use super::select::Unselected;
use super::state::State;
use super::target::{Target, Want};
use crate::links::ClusterLinks;

#[derive(Clone, Debug)]
pub(super) struct Memo<T> {
    plan: Option<Plan>,
    built: Option<Built<T>>,
}

/// The consequences of the links.
#[derive(Clone, Debug)]
struct Plan {
    /// The commands to the driver; watches come first, so that a replaced name is one request (R-CHAIN-03).
    wants: VecDeque<Want>,
    /// The targets that the configuration waits for.
    waits: BTreeSet<Target>,
    /// The targets that unresolved dynamic references wait for: when one arrives, clusters may join the configuration.
    dynamic: BTreeSet<Target>,
    /// The clusters that the virtual host names itself.
    roots: BTreeSet<ResourceName>,
}

/// The consequences of everything that is held.
#[derive(Clone, Debug)]
struct Built<T> {
    outcome: Result<Config<T>, Failure>,
    /// The entries that a cluster, endpoints or addresses occur in.
    users: BTreeMap<Target, Vec<usize>>,
    above: String,
}

impl<T: Clone + Eq> Memo<T> {
    pub(super) fn new() -> Self {
        Self { plan: None, built: None }
    }

    pub(super) fn forget_all(&mut self) {
        *self = Self::new();
    }

    /// Forgets the plan: the configuration in use has changed, and the wanted targets with it.
    pub(super) fn forget_plan(&mut self) {
        self.plan = None;
    }

    /// Returns whether a dynamic reference to the cluster makes no difference.
    pub(super) fn is_root(&self, cluster: &ResourceName) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.roots.contains(cluster))
    }

    /// Forgets or updates the parts of the memo that a change of a target affects.
    pub(super) fn touch(&mut self, state: &State<T>, target: &Target, touches: Touches) {
        match touches {
            Touches::Nothing => {}
            Touches::Links => self.forget_all(),
            Touches::Arrival => {
                let Some(plan) = &mut self.plan else { return };
                if plan.dynamic.contains(target) {
                    return self.forget_all();
                }
                plan.waits.remove(target);
            }
            Touches::Leaf => self.add(state, target),
            Touches::Content => self.change(state, target),
        }
    }

    /// Adds the target that a cluster leads to, once the cluster has arrived.
    fn add(&mut self, state: &State<T>, target: &Target) {
        let Target::Cluster(name) = target else { return self.forget_all() };
        let Some(plan) = &mut self.plan else { return };
        // A watch that is to end may be that of this cluster.
        if matches!(plan.wants.back(), Some(Want::Unwatch(_))) || plan.dynamic.contains(target) {
            return self.forget_all();
        }
        if plan.waits.remove(target) {
            plan.waits.extend(state.store.waits_for(name));
        }
        let new = state.store.source(name).filter(|source| !state.asked.contains(source));
        plan.wants.extend(new.map(Want::Watch));
    }

    fn change(&mut self, state: &State<T>, target: &Target) {
        let Some(Built { outcome: Ok(config), users, above }) = &mut self.built else {
            self.built = None;
            return;
        };
        let is_aggregate = |name| matches!(state.store.cluster_links(name), Some(ClusterLinks::Aggregate(_)));
        match target {
            Target::Listener(_) | Target::Routes(_) => self.built = None,
            Target::Cluster(name) if is_aggregate(name) => self.built = None,
            _ => {
                for &index in users.get(target).into_iter().flatten() {
                    config.clusters.replace(index, |name| leaf(&state.store, above, name));
                }
            }
        }
    }

    /// Returns the next difference between what is wanted and what the driver was asked for.
    pub(super) fn next_want(&mut self, state: &State<T>) -> Option<Want> {
        let wants = &mut self.plan.get_or_insert_with(|| plan(state)).wants;
        loop {
            match wants.pop_front()? {
                Want::Watch(target) if state.asked.contains(&target) => {} // two clusters led to it
                want => return Some(want),
            }
        }
    }

    /// Returns the configuration or the failure, if nothing is awaited.
    pub(super) fn outcome(&mut self, state: &State<T>) -> Option<&Result<Config<T>, Failure>> {
        if state.is_shut_down || !self.plan.get_or_insert_with(|| plan(state)).waits.is_empty() {
            return None;
        }
        if self.built.is_none() {
            self.built = built(state);
        }
        self.built.as_ref().map(|built| &built.outcome)
    }
}

fn plan<T: Clone + Eq>(state: &State<T>) -> Plan {
    let wanted = state.wanted();
    let new = wanted.iter().filter(|target| !state.asked.contains(target)).cloned().map(Want::Watch);
    let mut wants: VecDeque<Want> = new.collect();
    let wanted: BTreeSet<Target> = wanted.into_iter().collect();
    wants.extend(state.asked.difference(&wanted).cloned().map(Want::Unwatch));
    let (waits, dynamic, roots) = match state.select() {
        Ok(selected) => {
            let extent = state.extent(selected.host);
            (extent.waits, extent.dynamic, selected.host.clusters.iter().cloned().collect())
        }
        Err(Unselected::Waits(target)) => (BTreeSet::from([target]), BTreeSet::new(), BTreeSet::new()),
        Err(Unselected::Failed(_)) => Default::default(),
    };
    Plan { wants, waits, dynamic, roots }
}

fn built<T: Clone + Eq>(state: &State<T>) -> Option<Built<T>> {
    let selected = match state.select() {
        Ok(selected) => selected,
        Err(Unselected::Waits(_)) => return None,
        Err(Unselected::Failed(failure)) => {
            return Some(Built { outcome: Err(failure), users: BTreeMap::new(), above: String::new() });
        }
    };
    let extent = state.extent(selected.host);
    let config = build(&state.store, &state.listener, &selected, &extent.reached);
    let mut users: BTreeMap<Target, Vec<usize>> = BTreeMap::new();
    for (index, name) in extent.reached.sorted().enumerate() {
        let source = state.store.source(name);
        for target in source.into_iter().chain([Target::Cluster(name.clone())]) {
            users.entry(target).or_default().push(index);
        }
    }
    Some(Built { outcome: Ok(config), users, above: above(&state.store, &state.listener, &selected) })
}
