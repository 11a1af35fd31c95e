//! The deadlines of one type: names whose existence is in doubt, and resources with a TTL.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use crate::ensure::ensure;
use crate::model::{Label, Relabel};
use crate::name::ResourceName;
use crate::time::Instant;

/// Names whose existence a request asks the server to settle.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Asked {
    /// All that are wanted when it is sent.
    All,
    These(Vec<ResourceName>),
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Timers {
    /// Names that a request asked for which the transport has not taken yet, by the request's number.
    asked: VecDeque<(u64, Asked)>,
    existence: Deadlines,
    expiry: Deadlines,
}

impl Timers {
    /// A request asks for these; their time starts when it is sent (gRFC A57, C-TIMER-02).
    pub(super) fn ask(&mut self, seq: u64, asked: Asked) {
        if !matches!(&asked, Asked::These(names) if names.is_empty()) {
            self.asked.push_back((seq, asked));
        }
    }

    /// What was asked for up to this request.
    pub(super) fn take_asked(&mut self, seq: u64) -> Option<Asked> {
        if self.asked.front()?.0 > seq {
            return None;
        }
        self.asked.pop_front().map(|(_, asked)| asked)
    }

    /// Starts a timer unless it runs (C-TIMER-05).
    pub(super) fn start(&mut self, name: ResourceName, deadline: Instant) {
        if !self.existence.at.contains_key(&name) {
            self.existence.set(&name, Some(deadline));
        }
    }

    pub(super) fn stop(&mut self, name: &ResourceName) {
        self.existence.set(name, None);
    }

    pub(super) fn stop_where(&mut self, stop: impl Fn(&str) -> bool) {
        self.existence.retain(|name| !stop(name.as_str()));
    }

    /// How many existence timers run.
    pub(super) fn running(&self) -> usize {
        self.existence.at.len()
    }

    /// The stream is gone, and with it the doubt: silence proves nothing now (C-TIMER-06).
    pub(super) fn stop_all(&mut self) {
        self.asked.clear();
        self.existence = Deadlines::default();
    }

    pub(super) fn set_expiry(&mut self, name: &ResourceName, deadline: Option<Instant>) {
        self.expiry.set(name, deadline);
    }

    pub(super) fn expiry(&self, name: &ResourceName) -> Option<Instant> {
        self.expiry.at.get(name).copied()
    }

    pub(super) fn retain_expiries(&mut self, keep: impl Fn(&ResourceName) -> bool) {
        self.expiry.retain(keep);
    }

    /// Whether nothing held has a TTL.
    pub(super) fn no_expiry(&self) -> bool {
        self.expiry.at.is_empty()
    }

    /// A name whose existence time-out has passed.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<ResourceName> {
        self.existence.take(now)
    }

    /// A name whose TTL has passed.
    pub(super) fn take_expired(&mut self, now: Instant) -> Option<ResourceName> {
        self.expiry.take(now)
    }

    pub(super) fn next(&self) -> Option<Instant> {
        let existence = self.existence.next();
        let expiry = self.expiry.next();
        existence.into_iter().chain(expiry).min()
    }
}

impl Timers {
    /// What must hold: existence is awaited of names that `may_be_awaited`, and what `is_held` may expire.
    pub(super) fn check(
        &self,
        may_be_awaited: impl Fn(&ResourceName) -> bool,
        is_held: impl Fn(&ResourceName) -> bool,
    ) -> Result<(), String> {
        ensure!(self.asked.iter().is_sorted_by(|a, b| a.0 < b.0), "requests are not in order");
        self.existence.check()?;
        self.expiry.check()?;
        let astray = self.existence.at.keys().find(|name| !may_be_awaited(name));
        ensure!(astray.is_none(), "{astray:?} is awaited, and held or not wanted");
        let astray = self.expiry.at.keys().find(|name| !is_held(name));
        ensure!(astray.is_none(), "{astray:?} is to expire and is not held");
        Ok(())
    }
}

/// Names by name, and by deadline.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Deadlines {
    at: BTreeMap<ResourceName, Instant>,
    order: BTreeSet<(Instant, ResourceName)>,
}

impl Deadlines {
    fn set(&mut self, name: &ResourceName, deadline: Option<Instant>) {
        let old = match deadline {
            Some(deadline) => {
                self.order.insert((deadline, name.clone()));
                self.at.insert(name.clone(), deadline).filter(|&old| old != deadline)
            }
            None => self.at.remove(name),
        };
        if let Some(old) = old {
            self.order.remove(&(old, name.clone()));
        }
    }

    fn retain(&mut self, keep: impl Fn(&ResourceName) -> bool) {
        if !self.at.is_empty() {
            self.at.retain(|name, _| keep(name));
            self.order.retain(|(_, name)| self.at.contains_key(name));
        }
    }

    fn take(&mut self, now: Instant) -> Option<ResourceName> {
        if self.next()? > now {
            return None;
        }
        let (_, name) = self.order.pop_first()?;
        self.at.remove(&name);
        Some(name)
    }

    fn check(&self) -> Result<(), String> {
        let same = self.at.len() == self.order.len()
            && self.order.iter().all(|(deadline, name)| self.at.get(name) == Some(deadline));
        ensure!(same, "deadlines by name and by time differ");
        Ok(())
    }

    fn next(&self) -> Option<Instant> {
        self.order.first().map(|&(deadline, _)| deadline)
    }
}

impl Relabel for Timers {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.asked.iter_mut().for_each(|(seq, _)| by(Label::Request(seq)));
        self.existence.relabel(by);
        self.expiry.relabel(by);
    }
}

impl Relabel for Deadlines {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.at.values_mut().for_each(|deadline| deadline.relabel(by));
        self.order = self.at.iter().map(|(name, &deadline)| (deadline, name.clone())).collect();
    }
}
