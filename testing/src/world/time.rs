//! Time, which passes without the environment when nothing is in flight, and otherwise as the environment decides.

use std::time::Duration;

use xds_machine::server::State;
use xds_machine::{Instant, ResourceName};

use super::setup::TTL;
use super::{Application, Both, Bug, Pair, Step, World, is_resource};

/// The time that passes at most while messages are in flight. A client may be late by this much and not more; otherwise
/// its resources may expire despite a timely heartbeat.
pub(super) const A_WHILE: Duration = Duration::from_secs(TTL.as_secs() / 6);

impl<V: Both> World<V> {
    fn next_due(&self) -> Option<Instant> {
        let servers = self.pairs.iter().filter_map(|pair| pair.server.as_ref()?.poll_timeout());
        self.pairs.iter().filter_map(|pair| pair.client.poll_timeout()).chain(servers).min()
    }

    /// Returns whether time passes without the environment. Time does not advance to a heartbeat, because heartbeats
    /// never end, unless something else waits for time: the renewed expiry at a client is later than the heartbeat.
    pub(super) fn ticks(&self) -> bool {
        let Some(due) = self.next_due() else { return false };
        if !self.setup.tells_ttls() {
            return true;
        }
        let waits = |pair: &Pair<V>| pair.client.poll_timeout().is_some_and(|due| due <= self.now + TTL / 3);
        // Something that waits for an ACK or NACK, or for another type: a removal that is deferred, though the client may
        // have it, as a store that forgot makes the server repeat it.
        let defers = |pair: &Pair<V>| pair.server.as_ref().is_some_and(|of| of.in_flight() == 0 && !of.is_settled());
        // A resource whose TTL ran out is sent again after its next heartbeat.
        let comes_back = |pair: &Pair<V>, (t, app): (usize, &Application)| {
            let content = |name: &ResourceName| self.store.content(&self.setup, t, name);
            let mut expired = app.expired.iter().filter(|name| !app.silent && app.wants(name, content(name)));
            expired.any(|name| content(name).is_some() && !pair.ghost.is_rejected(t, name))
        };
        let lapsed =
            |pair: &Pair<V>| pair.server.is_some() && pair.apps.iter().enumerate().any(|of| comes_back(pair, of));
        let holds = |pair: &Pair<V>| {
            let due = pair.server.as_ref().and_then(|of| of.poll_timeout());
            due.is_some_and(|due| due <= self.now + self.setup.answer_wait)
        };
        !self.is_of_servers(due)
            || self
                .pairs
                .iter()
                .any(|pair| waits(pair) || holds(pair) || defers(pair) || lapsed(pair) || self.owes_removal(pair))
    }

    /// Returns whether a server still owes a client the report that a resource does not exist. The server may only
    /// delay the report.
    fn owes_removal(&self, pair: &Pair<V>) -> bool {
        let may_be_told = |t: usize| (V::REMOVES || self.setup.full_state) && self.store.is_known(t);
        let gone = |t: usize, name: &ResourceName| self.store.state(&self.setup, t, name) == State::Absent;
        let owes = |(t, app): (usize, &Application)| {
            // In SotW a full-state response reports only by absence that a resource does not exist that the client
            // never had.
            let waits = |name: &&ResourceName| {
                let knows = app.missing.contains_key(*name) || app.expired.contains(*name);
                V::REMOVES && is_resource(name) && !knows && !app.rejected.contains_key(*name)
            };
            let mut names = app.applied.keys().chain(app.wanted.iter().filter(waits));
            may_be_told(t) && names.any(|name| gone(t, name))
        };
        pair.server.is_some()
            && pair.apps.iter().enumerate().filter(|(t, _)| !pair.is_silent(&self.setup, *t)).any(owes)
    }

    /// Returns whether the next deadline is a heartbeat or an expiry.
    pub(super) fn beats(&self) -> bool {
        let expires = |pair: &Pair<V>, due| pair.apps.iter().any(|app| app.until.values().any(|until| *until <= due));
        let is_of_ttl = |due| self.is_of_servers(due) || self.pairs.iter().any(|pair| expires(pair, due));
        self.setup.tells_ttls() && self.next_due().is_some_and(is_of_ttl)
    }

    fn is_of_servers(&self, due: Instant) -> bool {
        let mut servers = self.pairs.iter().filter_map(|pair| pair.server.as_ref()?.poll_timeout());
        servers.any(|other| other <= due)
    }

    /// Advances time to the next deadline.
    pub(super) fn pass(&mut self) {
        let due = self.next_due().expect("something is due");
        self.pass_until(self.now.max(due));
    }

    /// Advances time by a while, or to the next deadline if that is earlier.
    pub(super) fn pass_a_while(&mut self) {
        let end = self.now + A_WHILE;
        self.pass_until(self.next_due().map_or(end, |due| self.now.max(due).min(end)));
    }

    /// Returns whether nothing is left but verdicts, and time.
    pub(super) fn waits(&self) -> bool {
        let is_verdict = |step: &Step| matches!(step, Step::Accept { .. });
        let mut left = (0..self.pairs.len()).flat_map(|c| self.steps_of(c)).filter(|&step| self.can(step)).peekable();
        self.next_due().is_some_and(|due| due > self.now) && left.peek().is_some() && left.all(|step| is_verdict(&step))
    }

    /// Advances time to the next deadline, or as far as the budget allows.
    pub(super) fn wait(&mut self) {
        let due = self.next_due().expect("something is due");
        let passed = due.saturating_since(self.now).min(Duration::from_secs(self.budget.seconds.into()));
        self.budget.seconds -= passed.as_secs().max(1) as u16;
        self.pass_until(self.now + passed);
    }

    /// Returns whether messages of a stream are in flight, or the driver of the server did not poll it, or a portion
    /// of its answers waits behind another one.
    fn is_late(&self, c: usize) -> bool {
        let pair = &self.pairs[c];
        let polls = || pair.server.as_ref().is_some_and(|server| self.polls(server));
        let waits = || self.setup.response_limit.is_some() && pair.server.as_ref().is_some_and(|of| !of.is_settled());
        !pair.down.is_empty() || !pair.up.is_empty() || polls() || waits()
    }

    /// Returns whether the driver of a stream may do something for an answer, or the server has time left for it, or its
    /// transport has no room before an ACK.
    fn may_answer(&self, c: usize) -> bool {
        let waits = |due: Instant| due <= self.now + self.setup.answer_wait;
        let has_time = self.pairs[c].server.as_ref().and_then(|server| server.poll_timeout()).is_some_and(waits);
        let has_no_room = self.setup.room && self.pairs[c].ghost.is_any_out();
        has_time || has_no_room || self.can(Step::ServerSends { c }) || self.can(Step::ClientReads { c })
    }

    pub(super) fn pass_until(&mut self, now: Instant) {
        let setup = self.setup.clone();
        let passed = now.saturating_since(self.now);
        let late: Vec<bool> = (0..self.pairs.len()).map(|c| self.is_late(c)).collect();
        let answers: Vec<bool> = (0..self.pairs.len()).map(|c| self.may_answer(c)).collect();
        for c in 0..self.pairs.len() {
            self.pairs[c].ghost.time_passes(passed);
        }
        self.now = now;
        for (c, late) in late.into_iter().enumerate() {
            let pair = &mut self.pairs[c];
            let before: Vec<_> = pair.apps.iter().map(|app| (app.applied.clone(), app.rejected.clone())).collect();
            let forgets = setup.bug == Some(Bug::KeepsExpired) && pair.server.is_none();
            let known: Vec<_> = pair.apps.iter().map(|app| app.missing.clone()).collect();
            let promised = pair.ghost.promised();
            if !forgets {
                pair.client.handle_timeout(now);
            }
            if let Some(server) = &mut pair.server {
                pair.ghost.is_due();
                server.handle_timeout(now);
            }
            pair.drain(&setup, now);
            for (t, known) in known.iter().enumerate().filter(|_| !answers[c]) {
                let mut missing = pair.apps[t].missing.keys().filter(|name| !known.contains_key(*name));
                let absent = missing.find(|name| promised[t].contains(*name));
                assert_eq!(absent, None, "type {t}: the time of a name ran out, and the server has it");
            }
            for (t, (before, rejected)) in before.iter().enumerate() {
                let pair = &self.pairs[c];
                let overdue = pair.apps[t].until.iter().find(|(_, until)| **until <= now);
                assert_eq!(overdue, None, "type {t}: a TTL ran out, and the application does not know");
                for (name, content) in before.iter().filter(|(name, _)| !pair.apps[t].applied.contains_key(*name)) {
                    // Content that was rejected does not extend the TTL of the previous content.
                    let pending = rejected.contains_key(name);
                    let lives = self.content(t, name) == Some(*content) && !pending && pair.ghost.lives(t, name);
                    assert!(!lives || late, "type {t}: {name} expired, and the server has it");
                }
            }
        }
    }
}
