//! The choice of an endpoint for a call: the first priority that can be used, a locality by weight, and the endpoints of
//! the locality in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant as Clock;

use hyper::client::conn::http2::SendRequest;
use tokio::sync::watch;
use tonic::body::Body;
use xds_machine::{Instant, ResourceName};
use xds_machine_grpc::endpoints::{Child, Locality, Priority, State, choose, drop_category, pick_locality};

use super::backend::Backend;
use super::route::{self, InUse, Level};
use crate::grpc::dns::Again;

/// What becomes of a call.
pub(super) enum Pick {
    Send(SendRequest<Body>),
    /// A connection or the configuration is awaited.
    Wait,
    Fail(String),
}

pub(super) struct Balancer {
    start: Clock,
    changes: watch::Sender<()>,
    again: Again,
    /// The configuration, or why there is none; nothing before the first.
    config: Option<Result<InUse, String>>,
    backends: BTreeMap<SocketAddr, Backend>,
    /// The priorities that are in use, or were, of each cluster.
    children: BTreeMap<(ResourceName, usize), Child>,
    turn: usize,
}

impl Balancer {
    pub(super) fn new(changes: watch::Sender<()>, again: Again) -> Self {
        let (backends, children) = (BTreeMap::new(), BTreeMap::new());
        Self { start: Clock::now(), changes, again, config: None, backends, children, turn: 0 }
    }

    /// Applies a configuration: endpoints that are not in it get no new calls.
    pub(super) fn apply(&mut self, config: Result<InUse, String>) {
        let mut addresses = BTreeSet::new();
        let mut names = BTreeSet::new();
        if let Ok(config) = &config {
            for (name, _) in config.clusters.iter() {
                for level in route::levels(config, name).unwrap_or_default() {
                    addresses.extend(all(&level.priority));
                    names.insert(level.name);
                }
            }
            self.backends.retain(|address, _| addresses.contains(address));
            self.children.retain(|name, _| names.contains(name));
        }
        // An error leaves the connections as they are, for what comes after.
        self.config = Some(config);
        self.changes.send_replace(());
    }

    pub(super) fn pick(&mut self, path: &str) -> Pick {
        let config = match self.config.take() {
            None => return Pick::Wait,
            Some(config) => config,
        };
        let pick = match &config {
            Ok(config) => self.pick_of(config, path).unwrap_or_else(Pick::Fail),
            Err(failure) => Pick::Fail(failure.clone()),
        };
        self.config = Some(config);
        pick
    }

    fn pick_of(&mut self, config: &InUse, path: &str) -> Result<Pick, String> {
        let name = route::cluster(config, path, fastrand::u64(..))?;
        let levels = route::levels(config, name)?;
        let level = self.level(&levels).ok_or("no priorities")?;
        let usable = |locality: &Locality| locality.endpoints.iter().any(|end| self.sender(&end.address).is_some());
        let Priority { localities } = &level.priority;
        let Some(at) = pick_locality(&level.priority, fastrand::u64(..), |at| usable(&localities[at])) else {
            return match self.state(&level.priority) {
                State::TransientFailure => Err(self.why(&level.priority)),
                _ => Ok(Pick::Wait),
            };
        };
        if let Some(drop) = drop_category(level.drops, || fastrand::u64(..)) {
            return Err(format!("EDS-configured drop: {}", drop.category));
        }
        let ready: Vec<_> = localities[at].endpoints.iter().filter_map(|end| self.sender(&end.address)).collect();
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn % ready.len().max(1);
        Ok(ready.into_iter().nth(turn).map_or(Pick::Wait, Pick::Send))
    }

    /// Chooses the priority (gRFC A56), and begins to connect to what is to be tried.
    fn level<'l, 'c>(&mut self, levels: &'l [Level<'c>]) -> Option<&'l Level<'c>> {
        let now = Instant::from_epoch(self.start.elapsed());
        for level in levels {
            let state = self.state(&level.priority);
            if let Some(child) = self.children.get_mut(&level.name) {
                child.handle_timeout(now);
                child.handle_state(now, state);
                self.open(&level.priority);
            }
        }
        self.children.retain(|_, child| !child.is_expired(now));
        let children: Vec<Option<Child>> = levels.iter().map(|level| self.children.get(&level.name).copied()).collect();
        let choice = choose(&children)?;
        if choice.creates {
            self.open(&levels[choice.priority].priority);
            self.children.insert(levels[choice.priority].name.clone(), Child::new(now));
        }
        for (at, level) in levels.iter().enumerate() {
            let Some(child) = self.children.get_mut(&level.name) else { continue };
            match (at > choice.priority, choice.deactivates_lower) {
                (true, true) => child.deactivate(now),
                (true, false) => {}
                (false, _) => child.reactivate(),
            }
        }
        levels.get(choice.priority)
    }

    fn open(&mut self, priority: &Priority) {
        for address in all(priority) {
            let (changes, again) = (&self.changes, &self.again);
            self.backends.entry(address).or_insert_with(|| Backend::new(address, changes.clone(), again.clone()));
        }
    }

    /// The state of a priority: the best of its endpoints.
    fn state(&self, priority: &Priority) -> State {
        let states: Vec<State> = all(priority)
            .map(|address| self.backends.get(&address).map_or(State::Connecting, Backend::state))
            .collect();
        let best = [State::Ready, State::Connecting].into_iter().find(|state| states.contains(state));
        best.unwrap_or(State::TransientFailure)
    }

    fn sender(&self, address: &SocketAddr) -> Option<SendRequest<Body>> {
        self.backends.get(address)?.sender()
    }

    fn why(&self, priority: &Priority) -> String {
        let errors = all(priority).filter_map(|address| self.backends.get(&address)?.error());
        format!(
            "connections to all backends failing; last error: {}",
            errors.last().unwrap_or_else(|| "no endpoints".into())
        )
    }
}

fn all(priority: &Priority) -> impl Iterator<Item = SocketAddr> {
    priority.localities.iter().flat_map(|locality| &locality.endpoints).map(|endpoint| endpoint.address)
}
