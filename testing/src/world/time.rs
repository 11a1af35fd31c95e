//! Time: it passes by itself when all is quiet, and otherwise as the environment says.

use std::time::Duration;

use xds_machine::Instant;

use super::setup::TTL;
use super::{Both, Bug, Pair, Step, World};

/// How much time passes at most while something is under way. A client may be late by that much and not more, or what it
/// has may expire though the server says in time that it lives on.
pub(super) const A_WHILE: Duration = Duration::from_secs(TTL.as_secs() / 6);

impl<V: Both> World<V> {
    fn next_due(&self) -> Option<Instant> {
        let servers = self.pairs.iter().filter_map(|pair| pair.server.as_ref()?.poll_timeout());
        self.pairs.iter().filter_map(|pair| pair.client.poll_timeout()).chain(servers).min()
    }

    /// Whether time passes by itself. Not as far as a heartbeat, for these never end, unless something else waits for time:
    /// what lives on at a client is due later than a heartbeat.
    pub(super) fn ticks(&self) -> bool {
        let Some(due) = self.next_due() else { return false };
        if !self.setup.tells_ttls() {
            return true;
        }
        let waits = |pair: &Pair<V>| pair.client.poll_timeout().is_some_and(|due| due <= self.now + TTL / 3);
        !self.is_of_servers(due) || self.pairs.iter().any(waits)
    }

    /// Whether a heartbeat is due next, or the end of a TTL.
    pub(super) fn beats(&self) -> bool {
        let expires = |pair: &Pair<V>, due| pair.apps.iter().any(|app| app.until.values().any(|until| *until <= due));
        let is_of_ttl = |due| self.is_of_servers(due) || self.pairs.iter().any(|pair| expires(pair, due));
        self.setup.tells_ttls() && self.next_due().is_some_and(is_of_ttl)
    }

    fn is_of_servers(&self, due: Instant) -> bool {
        let mut servers = self.pairs.iter().filter_map(|pair| pair.server.as_ref()?.poll_timeout());
        servers.any(|other| other <= due)
    }

    /// Whether a client has a stream and nothing is under way on it.
    fn is_idle(&self, c: usize) -> bool {
        let pair = &self.pairs[c];
        let own = [
            Step::ClientSends { c },
            Step::Sent { c },
            Step::ServerReads { c },
            Step::ServerSends { c },
            Step::ClientReads { c },
        ];
        let judging = pair.apps.iter().any(|app| app.judging.is_some() || app.paused > 0);
        pair.server.is_some() && !judging && !own.into_iter().any(|step| self.can(step))
    }

    /// Time passes until the next thing due.
    pub(super) fn pass(&mut self) {
        let due = self.next_due().expect("something is due");
        self.pass_until(self.now.max(due));
    }

    /// A while passes, or less if something is due before.
    pub(super) fn pass_a_while(&mut self) {
        let end = self.now + A_WHILE;
        self.pass_until(self.next_due().map_or(end, |due| self.now.max(due).min(end)));
    }

    fn pass_until(&mut self, now: Instant) {
        let setup = self.setup.clone();
        let passed = now.saturating_since(self.now);
        for c in 0..self.pairs.len() {
            let idle = self.is_idle(c);
            self.pairs[c].ghost.time_passes(passed, idle);
        }
        self.now = now;
        for c in 0..self.pairs.len() {
            let pair = &mut self.pairs[c];
            let before: Vec<_> = pair.apps.iter().map(|app| app.applied.clone()).collect();
            let forgets = setup.bug == Some(Bug::KeepsExpired) && pair.server.is_none();
            if !forgets {
                pair.client.handle_timeout(now);
            }
            if let Some(server) = &mut pair.server {
                pair.ghost.is_due();
                server.handle_timeout(now);
            }
            pair.drain(&setup, now);
            for (t, before) in before.iter().enumerate() {
                let pair = &self.pairs[c];
                let overdue = pair.apps[t].until.iter().find(|(_, until)| **until <= now);
                assert_eq!(overdue, None, "type {t}: a TTL ran out, and the application does not know");
                for (name, content) in before.iter().filter(|(name, _)| !pair.apps[t].applied.contains_key(*name)) {
                    // What came last and was rejected did not prolong what was there before.
                    let rejected = pair.apps[t].rejected.contains_key(name);
                    let lives = self.content(t, name) == Some(*content) && !rejected && pair.ghost.lives(t, name);
                    assert!(!lives, "type {t}: {name} expired, and the server has it");
                }
            }
        }
    }
}
