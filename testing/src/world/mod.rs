//! Machines of both sides, wires, applications, a store, and a reference that shares no code with the machines.
//!
//! One alphabet, [`Step`], drives all users of the world: the model check, proptest, the fuzz targets, the simulation
//! and the committed regressions. `ghost` has the checks after every step; `settled` has those of a state in which no
//! step is left.

pub mod apart;
mod application;
mod bug;
mod canonical;
mod gate;
mod ghost;
mod goal;
mod pair;
mod settled;
mod setup;
mod status;
mod step;
pub(crate) mod store;
mod time;
pub mod words;

use std::sync::Arc;

use xds_machine::server::{Server, State};
use xds_machine::{Instant, ResourceName};

pub use self::application::Application;
pub use self::bug::{Bug, Faulty};

use self::ghost::{Ghost, Told};
pub use self::goal::{Feature, Goal, Goals};
pub use self::pair::Pair;
pub use self::setup::{Made, Setup, Ttls};
pub use self::step::{Budget, Step};
pub use self::store::Store;
use self::store::{is_alias, is_resource, resource, stands_for};
pub use crate::variant::Both;

/// The complete state of a world.
#[derive(Clone, Debug)]
pub struct World<V: Both> {
    /// The immutable part.
    pub setup: Arc<Made>,
    /// The remaining events of the environment.
    pub budget: Budget,
    /// The time, the same for all parts.
    pub now: Instant,
    /// The store that the servers serve from.
    pub store: Store,
    /// The number of streams so far.
    pub streams: u64,
    /// The clients, each with its server and the wires between them.
    pub pairs: Vec<Pair<V>>,
}

impl<V: Both> World<V> {
    /// Makes a world without history.
    pub fn new(setup: Arc<Made>) -> Self {
        Self {
            budget: setup.budget,
            now: Instant::EPOCH,
            store: Store::new(&setup),
            streams: 0,
            pairs: (0..setup.clients).map(|c| Pair::new(&setup, c)).collect(),
            setup,
        }
    }

    /// Adds the steps that can be taken now.
    pub fn steps(&self, steps: &mut Vec<Step>) {
        self.protocol_steps(steps);
        let (types, names) = (self.setup.types.len(), self.setup.names.len());
        let mut add = |step| {
            if self.can(step) {
                steps.push(step);
            }
        };
        for c in 0..self.pairs.len() {
            add(Step::Cut { c });
            for t in 0..types {
                add(Step::Reject { c, t });
                add(Step::Pause { c, t });
                add(Step::Silence { c, t });
                for n in 0..names {
                    add(Step::RejectOne { c, t, n });
                    add(Step::Subscribe { c, t, n });
                    add(Step::Unsubscribe { c, t, n });
                    add(Step::Refetch { c, t, n });
                    add(Step::Forget { c, t, n });
                }
            }
        }
        for (t, n) in (0..types).flat_map(|t| (0..names).map(move |n| (t, n))) {
            add(Step::Put { t, n });
            add(Step::Delete { t, n });
            add(Step::Fail { t, n });
            add(Step::Doubt { t, n });
        }
        (0..types).for_each(|t| add(Step::Know { t }));
        add(Step::Beat);
        add(Step::Wait);
        add(Step::Pass);
    }

    /// Returns the steps that one client and its stream take without the environment, whether possible now or not.
    pub fn steps_of(&self, c: usize) -> impl Iterator<Item = Step> + use<V> {
        let own = [
            Step::Open { c },
            Step::ClientSends { c },
            Step::Sent { c },
            Step::ServerReads { c },
            Step::ServerSends { c },
            Step::ClientReads { c },
        ];
        let types = 0..self.setup.types.len();
        let accept = types.clone().map(move |t| Step::Accept { c, t });
        let resume = types.map(move |t| Step::Resume { c, t });
        own.into_iter().chain(accept).chain(resume)
    }

    /// Adds the steps that the protocol takes without the environment.
    pub fn protocol_steps(&self, steps: &mut Vec<Step>) {
        let before = steps.len();
        for c in 0..self.pairs.len() {
            steps.extend(self.steps_of(c).filter(|&step| self.can(step)));
        }
        // Time is slow: deadlines pass only when nothing else can happen.
        if steps.len() == before && self.can(Step::Tick) {
            steps.push(Step::Tick);
        }
    }

    /// Returns whether a step can be taken, except that time also waits for other steps.
    pub fn can(&self, step: Step) -> bool {
        let budget = &self.budget;
        let pair = |c: usize| &self.pairs[c];
        let name = |n: usize| &self.setup.names[n];
        match step {
            Step::Open { c } => pair(c).server.is_none() && pair(c).client.wants_stream(),
            Step::ClientSends { c } => pair(c).sending.is_none() && pair(c).client.wants_transmit(),
            Step::Sent { c } => pair(c).sending.is_some(),
            Step::ServerReads { c } => pair(c).server.is_some() && !pair(c).up.is_empty(),
            Step::ServerSends { c } => {
                let polls = || pair(c).server.as_ref().is_some_and(|server| self.polls(server));
                let kept = || pair(c).server.is_some() && pair(c).sends_kept(&self.setup, &self.store);
                pair(c).faulty.is_late() || kept() || (pair(c).may_send(&self.setup) && polls())
            }
            Step::ClientReads { c } => !pair(c).down.is_empty() && pair(c).may_read(&self.setup),
            Step::Accept { c, t } => pair(c).judges(&self.setup, t),
            Step::Resume { c, t } => pair(c).apps[t].paused > 0,
            Step::Pause { .. } => budget.pauses > 0,
            Step::Silence { c, t } => budget.silences > 0 && !pair(c).apps[t].silent,
            Step::Tick => self.ticks(),
            Step::Beat => budget.beats > 0 && self.beats(),
            Step::Cut { c } => budget.cuts > 0 && pair(c).server.is_some(),
            Step::Reject { c, t } => budget.rejects > 0 && pair(c).judges(&self.setup, t),
            Step::RejectOne { c, t, n } => {
                let update = pair(c).apps[t].judging.as_ref().filter(|update| update.resources().len() > 1);
                let judges = budget.rejects > 0 && pair(c).judges(&self.setup, t);
                judges && update.is_some_and(|update| update.resource(name(n).as_str()).is_some())
            }
            Step::Subscribe { c, t, n } => {
                let app = &pair(c).apps[t];
                let room = self.setup.limit.is_none_or(|limit| name(n).is_wildcard() || app.names().count() < limit);
                budget.subscribes > 0 && room && !app.wanted.contains(name(n))
            }
            Step::Unsubscribe { c, t, n } => budget.unsubscribes > 0 && pair(c).apps[t].wanted.contains(name(n)),
            Step::Refetch { c, t, n } => budget.refetches > 0 && pair(c).apps[t].wanted.contains(name(n)),
            Step::Forget { c, t, n } => budget.forgets > 0 && pair(c).apps[t].applied.contains_key(name(n)),
            Step::Put { n, .. } => budget.puts > 0 && is_resource(name(n)),
            Step::Delete { t, n } => {
                budget.deletes > 0 && is_resource(name(n)) && self.store.state(&self.setup, t, name(n)) != State::Absent
            }
            Step::Fail { n, .. } => budget.fails > 0 && is_resource(name(n)),
            Step::Doubt { t, n } => {
                let state = self.store.state(&self.setup, t, name(n));
                budget.doubts > 0 && is_resource(name(n)) && state != State::Unknown
            }
            Step::Know { t } => budget.doubts > 0 && !self.store.is_known(t),
            Step::Pass => budget.passes > 0,
            Step::Wait => budget.seconds > 0 && self.waits(),
        }
    }

    /// Returns whether polling the server has an effect: a response, or bookkeeping.
    pub(self) fn polls(&self, server: &Server<V>) -> bool {
        let mut polled = server.clone();
        polled.poll_transmit(self.now, &self.store.cache).is_some() || polled != *server
    }

    /// Takes a step. Panics if a check fails.
    pub fn take(&mut self, step: Step) {
        let setup = self.setup.clone();
        if setup.recorded {
            self.each_ghost(|ghost| ghost.note_cost_of_event(&setup, step));
        }
        match step {
            Step::Put { t, n } => {
                self.budget.puts -= 1;
                for (name, content) in self.store.put(&setup, t, &setup.names[n]) {
                    self.each_ghost(|ghost| ghost.changes(t, &name, Some(content)));
                    if setup.recorded {
                        self.each_ghost(|ghost| ghost.revises(t, &name));
                    }
                }
            }
            Step::Delete { t, n } => {
                self.budget.deletes -= 1;
                self.store.delete(&setup, t, &setup.names[n]);
                self.each_ghost(|ghost| ghost.changes(t, &setup.names[n], None));
                self.each_ghost(|ghost| ghost.is_gone(t, &setup.names[n]));
            }
            Step::Fail { t, n } => {
                self.budget.fails -= 1;
                self.store.fail(&setup, t, &setup.names[n]);
                self.each_ghost(|ghost| ghost.is_gone(t, &setup.names[n]));
                self.each_ghost(|ghost| ghost.fails(t, &setup.names[n]));
            }
            Step::Doubt { t, n } => {
                self.budget.doubts -= 1;
                self.store.doubt(&setup, t, &setup.names[n]);
                self.each_ghost(|ghost| ghost.is_gone(t, &setup.names[n]));
                self.each_ghost(|ghost| ghost.fails(t, &setup.names[n]));
            }
            Step::Know { t } => {
                self.budget.doubts -= 1;
                self.store.know(&setup, t);
            }
            Step::Tick => self.pass(),
            Step::Beat => {
                self.budget.beats -= 1;
                self.pass();
            }
            Step::Wait => self.wait(),
            Step::Pass => {
                self.budget.passes -= 1;
                self.pass_a_while();
            }
            Step::Open { c } => {
                self.streams += 1;
                self.pairs[c].open(&setup, self.now, &self.store, self.streams);
            }
            Step::ClientSends { c } => self.pairs[c].client_sends(&setup, self.now, &self.store),
            Step::Sent { c } => self.pairs[c].sent(&setup, self.now),
            Step::ServerReads { c } => self.pairs[c].server_reads(&setup, self.now, &self.store),
            Step::ServerSends { c } => self.pairs[c].server_sends(&setup, self.now, &self.store),
            Step::ClientReads { c } => self.pairs[c].client_reads(&setup, self.now),
            Step::Accept { c, t } => {
                let never = setup.bug == Some(Bug::NackLoop);
                self.pairs[c].judge(&setup, self.now, t, |_| never);
            }
            Step::Cut { c } => {
                self.budget.cuts -= 1;
                self.pairs[c].close(&setup);
            }
            Step::Reject { c, t } => {
                self.budget.rejects -= 1;
                self.pairs[c].judge(&setup, self.now, t, |_| true);
            }
            Step::RejectOne { c, t, n } => {
                self.budget.rejects -= 1;
                self.pairs[c].judge(&setup, self.now, t, |name| *name == setup.names[n]);
            }
            Step::Pause { c, t } => {
                self.budget.pauses -= 1;
                self.pairs[c].pause(&setup, t);
            }
            Step::Silence { c, t } => {
                self.budget.silences -= 1;
                self.pairs[c].apps[t].silent = true;
            }
            Step::Resume { c, t } => self.pairs[c].resume(&setup, t),
            Step::Subscribe { c, t, n } => {
                self.budget.subscribes -= 1;
                let pair = &mut self.pairs[c];
                if !pair.down.is_empty() && pair.apps[t].left.contains(&setup.names[n]) {
                    pair.goals.reach(Goal::CameBack);
                }
                self.pairs[c].subscribe(&setup, self.now, t, &setup.names[n]);
            }
            Step::Unsubscribe { c, t, n } => {
                self.budget.unsubscribes -= 1;
                self.pairs[c].unsubscribe(&setup, self.now, t, &setup.names[n]);
            }
            Step::Refetch { c, t, n } => {
                self.budget.refetches -= 1;
                self.pairs[c].ghost.mentions(t, &setup.names[n]);
                self.pairs[c].client.resources_mut(&setup.types[t]).refetch([setup.names[n].as_str()]);
                self.pairs[c].apps[t].missing.remove(&setup.names[n]);
                self.pairs[c].drain(&setup, self.now);
            }
            Step::Forget { c, t, n } => {
                self.budget.forgets -= 1;
                self.pairs[c].forget(&setup, self.now, t, &setup.names[n]);
            }
        }
        self.check_touched(step);
        if self.setup.bug.is_none() {
            self.check_deliveries(step);
            self.check_statuses(step);
        }
    }

    /// Checks what the client says of each resource, if a step may have changed it.
    fn check_statuses(&self, step: Step) {
        let of_server = matches!(step, Step::ServerReads { .. } | Step::ServerSends { .. });
        if let Some(c) = step.client().filter(|_| !of_server) {
            self.pairs[c].check_statuses(&self.setup.types, &self.setup.names);
        }
    }

    /// Checks the deliveries of the servers that a step may have changed.
    fn check_deliveries(&self, step: Step) {
        let touched = match step {
            Step::ServerReads { c } | Step::ServerSends { c } => &self.pairs[c..=c],
            _ if step.client().is_none() => &self.pairs[..],
            _ => &[],
        };
        for pair in touched {
            if let Some(server) = &pair.server {
                pair.ghost.check_deliveries(&self.setup, &self.store, server);
            }
        }
    }

    /// Checks the invariants of all machines.
    pub fn check_invariants(&self) {
        self.store.cache.check_invariants().unwrap_or_else(|what| panic!("invariant: {what}"));
        self.pairs.iter().for_each(Pair::check_invariants);
    }

    /// Checks the invariants of the machines that a step touched.
    fn check_touched(&self, step: Step) {
        match (step, step.client()) {
            (_, Some(c)) => self.pairs[c].check_invariants(),
            (Step::Tick | Step::Beat | Step::Wait | Step::Pass, None) => {
                self.pairs.iter().for_each(Pair::check_invariants)
            }
            _ => self.store.cache.check_invariants().unwrap_or_else(|what| panic!("invariant: {what}")),
        }
    }

    fn each_ghost(&mut self, mut change: impl FnMut(&mut Ghost)) {
        self.pairs.iter_mut().for_each(|pair| change(&mut pair.ghost));
    }

    /// Returns the content of a resource in the store.
    pub fn content(&self, t: usize, name: &ResourceName) -> Option<u8> {
        self.store.content(&self.setup, t, name)
    }
}
