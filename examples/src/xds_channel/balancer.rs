//! The choice of an endpoint for a call: the first priority that can be used, a locality by weight, and the endpoints
//! of the locality in turn.

use std::collections::{BTreeMap, BTreeSet};

use hyper::client::conn::http2::SendRequest;
use tokio::sync::watch;
use tokio::time::Instant as Clock;
use tonic::body::Body;
use xds_machine::{Instant, ResourceName};
use xds_machine_grpc::endpoints::{State, drop_category, pick_locality};

use super::backend::Backends;
use super::priorities::{Leaves, Root, for_calls};
use super::route::{self, InUse};
use crate::grpc::dns::Again;

/// The outcome of the choice for a call.
pub(super) enum Pick {
    Send(SendRequest<Body>),
    /// A connection, a timer or the configuration is awaited.
    Wait,
    Fail(String),
}

pub(super) struct Balancer {
    start: Clock,
    /// Notifies calls of each change that they may wait for.
    changes: watch::Sender<()>,
    /// The changes that the choice of priorities has seen.
    seen: watch::Receiver<()>,
    /// The configuration, or why there is none; `None` before the first.
    config: Option<Result<InUse, String>>,
    backends: Backends,
    leaves: Leaves,
    roots: BTreeMap<ResourceName, Root>,
    /// When the next timer of a priority ends.
    timeout: Option<Instant>,
    turn: usize,
}

impl Balancer {
    pub(super) fn new(changes: watch::Sender<()>, again: Again) -> Self {
        let backends = Backends::new(changes.clone(), again);
        let seen = changes.subscribe();
        let (leaves, roots) = (Leaves::default(), BTreeMap::new());
        Self { start: Clock::now(), changes, seen, config: None, backends, leaves, roots, timeout: None, turn: 0 }
    }

    /// Applies a configuration: endpoints that are not in it get no new calls.
    pub(super) fn apply(&mut self, config: Result<InUse, String>) {
        if let Ok(config) = &config {
            self.leaves.update(config);
            let mut former = std::mem::take(&mut self.roots);
            for (name, _) in config.clusters.iter() {
                let root = Root::new(self.leaves.levels(config, name), former.remove(name));
                self.backends.open(root.addresses());
                self.roots.insert(name.clone(), root);
            }
            self.look(self.now());
            self.close();
        }
        // An error leaves the connections as they are, for a later configuration.
        self.config = Some(config);
        self.changes.send_replace(());
    }

    /// Follows the changes of connections and the timers.
    pub(super) fn handle_changes(&mut self) {
        let now = self.now();
        let is_due = self.timeout.is_some_and(|at| at <= now);
        if !is_due && !self.seen.has_changed().unwrap_or_default() {
            return;
        }
        self.look(now);
        if is_due {
            self.close();
            // Waiting calls have to choose again.
            self.changes.send_replace(());
        }
    }

    /// Returns when [`handle_changes`](Self::handle_changes) is to be called, if nothing changes before.
    pub(super) fn poll_timeout(&self) -> Option<Clock> {
        self.timeout.map(|at| self.start + at.since_epoch())
    }

    pub(super) fn pick(&mut self, path: &str) -> Pick {
        self.handle_changes();
        self.pick_now(path).unwrap_or_else(Pick::Fail)
    }

    fn pick_now(&mut self, path: &str) -> Result<Pick, String> {
        let config = match &self.config {
            None => return Ok(Pick::Wait),
            Some(config) => config.as_ref().map_err(Clone::clone)?,
        };
        let now = self.now();
        let name = route::cluster(config, path, fastrand::u64(..))?;
        let root = self.roots.get_mut(name).ok_or_else(|| format!("no cluster {name}"))?;
        if root.use_it() {
            root.look(now, &mut self.backends);
            self.timeout = self.timeout.into_iter().chain(root.poll_timeout()).min();
            self.changes.send_replace(()); // for the timer
        }
        let (level, state) = root.chosen()?;
        let (localities, backends) = (level.localities(), &self.backends);
        let usable = |at: usize| for_calls(&localities[at]).any(|address| backends.is_ready(&address));
        let Some(at) = pick_locality(level.priority(), fastrand::u64(..), usable) else {
            return match state {
                State::TransientFailure => Err(backends.why(level.addresses())),
                _ => Ok(Pick::Wait),
            };
        };
        if let Some(drop) = drop_category(level.drops(), || fastrand::u64(..)) {
            return Err(format!("EDS-configured drop: {}", drop.category));
        }
        let ready = for_calls(&localities[at]).filter(|address| backends.is_ready(address));
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn % ready.clone().count().max(1);
        let sender = ready.skip(turn).find_map(|address| backends.sender(&address));
        Ok(sender.map_or(Pick::Wait, Pick::Send))
    }

    fn now(&self) -> Instant {
        Instant::from_epoch(self.start.elapsed())
    }

    fn look(&mut self, now: Instant) {
        self.seen.mark_unchanged();
        self.roots.values_mut().for_each(|root| root.look(now, &mut self.backends));
        self.timeout = self.roots.values().filter_map(Root::poll_timeout).min();
    }

    /// Closes the connections that no priority wants.
    fn close(&mut self) {
        let wanted: BTreeSet<_> = self.roots.values().flat_map(Root::addresses).collect();
        self.backends.retain(|address| wanted.contains(address));
    }
}
