//! The existence timers of one type: names that were asked for and of which nothing came.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::deadlines::Deadlines;
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
    pub(super) fn start(&mut self, name: &ResourceName, deadline: Instant) {
        if self.existence.get(name).is_none() {
            self.existence.set(name, Some(deadline));
        }
    }

    pub(super) fn stop(&mut self, name: &ResourceName) {
        self.existence.set(name, None);
    }

    pub(super) fn stop_where(&mut self, stop: impl Fn(&str) -> bool) {
        self.existence.retain(|name| !stop(name.as_str()));
    }

    /// How many timers run.
    pub(super) fn running(&self) -> usize {
        self.existence.len()
    }

    /// The stream is gone, and with it the doubt: silence proves nothing now (C-TIMER-06).
    pub(super) fn stop_all(&mut self) {
        *self = Self::default();
    }

    /// A name whose time-out has passed.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<ResourceName> {
        self.existence.take(now)
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.existence.next()
    }

    /// What must hold: existence is awaited of names that `may_be_awaited`.
    pub(super) fn check(&self, may_be_awaited: impl Fn(&ResourceName) -> bool) -> Result<(), String> {
        ensure!(self.asked.iter().is_sorted_by(|a, b| a.0 < b.0), "requests are not in order");
        self.existence.check()?;
        let astray = self.existence.names().find(|name| !may_be_awaited(name));
        ensure!(astray.is_none(), "{astray:?} is awaited, and held or not wanted");
        Ok(())
    }
}

impl Relabel for Timers {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.asked.iter_mut().for_each(|(seq, _)| by(Label::Request(seq)));
        self.existence.relabel(by);
    }
}
