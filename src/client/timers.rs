//! The existence timers of one type: names that were requested and not received.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::deadlines::Deadlines;
use crate::ensure::ensure;
use crate::model::{Label, Relabel};
use crate::name::ResourceName;
use crate::time::Instant;

/// Names whose existence a request asks the server to settle.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Asked {
    /// All names that are subscribed to when the request is sent.
    All,
    These(Vec<ResourceName>),
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Timers {
    /// Names in requests that the transport has not taken yet, by the number of the request.
    asked: VecDeque<(u64, Asked)>,
    /// When the name of a running timer counts as missing, if time never stood still.
    existence: Deadlines,
    /// How long time has stood still since the first of these timers started. All deadlines are later by this, so that
    /// none has to be moved.
    stood: Duration,
    /// Since when time stands still: the server may have answered, and the client can't see it.
    stands_since: Option<Instant>,
    /// The number of the last request with an ACK or NACK, until the transport has taken it.
    answering: Option<u64>,
}

impl Timers {
    /// Records the names in a request; their timers start when the request is sent (gRFC A57, C-TIMER-02).
    pub(super) fn ask(&mut self, seq: u64, asked: Asked) {
        if !matches!(&asked, Asked::These(names) if names.is_empty()) {
            self.asked.push_back((seq, asked));
        }
    }

    /// Records a request that has an ACK or NACK.
    pub(super) fn answer(&mut self, seq: u64) {
        self.answering = Some(seq);
    }

    /// Notes that the transport has taken this request and all before it.
    pub(super) fn note_sent(&mut self, seq: u64) {
        self.answering.take_if(|answering| *answering <= seq);
    }

    /// Returns whether an ACK or NACK is on its way to the transport.
    pub(super) fn is_answering(&self) -> bool {
        self.answering.is_some()
    }

    /// Lets time stand still for the timers, or go on: then each has as much time left as before.
    pub(super) fn stand(&mut self, now: Instant, stands: bool) {
        match self.stands_since {
            None if stands => self.stands_since = Some(now),
            Some(since) if !stands => {
                self.stands_since = None;
                self.stood = self.stood.saturating_add(now.saturating_since(since));
                self.tidy();
            }
            _ => {}
        }
    }

    /// Returns since when time stands still.
    pub(super) fn stands_since(&self) -> Option<Instant> {
        self.stands_since
    }

    /// Takes the names of the oldest recorded request that is not newer than `seq`.
    pub(super) fn take_asked(&mut self, seq: u64) -> Option<Asked> {
        if self.asked.front()?.0 > seq {
            return None;
        }
        self.asked.pop_front().map(|(_, asked)| asked)
    }

    /// Starts a timer unless it already runs (C-TIMER-05).
    pub(super) fn start(&mut self, name: &ResourceName, now: Instant, timeout: Duration) {
        if self.existence.get(name).is_none() {
            self.existence.set(name, Some(self.unstood(self.stands_since.unwrap_or(now) + timeout)));
        }
    }

    pub(super) fn stop(&mut self, name: &ResourceName) {
        self.existence.set(name, None);
        self.tidy();
    }

    pub(super) fn stop_where(&mut self, stop: impl Fn(&str) -> bool) {
        self.existence.retain(|name| !stop(name.as_str()));
        self.tidy();
    }

    fn tidy(&mut self) {
        if self.existence.is_empty() {
            self.stood = Duration::ZERO;
        }
    }

    /// Returns the number of running timers.
    pub(super) fn running(&self) -> usize {
        self.existence.len()
    }

    /// Stops all timers at the end of the stream: silence proves nothing without a stream (C-TIMER-06).
    pub(super) fn stop_all(&mut self) {
        *self = Self::default();
    }

    /// Takes a name whose time-out has passed.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<ResourceName> {
        if self.stands_since.is_some() {
            return None;
        }
        let name = self.existence.take(self.unstood(now));
        self.tidy();
        name
    }

    /// Returns a moment as it would be if time had never stood still.
    fn unstood(&self, moment: Instant) -> Instant {
        Instant::from_epoch(moment.since_epoch().saturating_sub(self.stood))
    }

    pub(super) fn next(&self) -> Option<Instant> {
        if self.stands_since.is_some() { None } else { Some(self.existence.next()? + self.stood) }
    }

    /// Checks the invariants: timers run only for names that `may_be_awaited`.
    pub(super) fn check(&self, may_be_awaited: impl Fn(&ResourceName) -> bool) -> Result<(), String> {
        ensure!(self.asked.iter().is_sorted_by(|a, b| a.0 < b.0), "requests are not in order");
        self.existence.check()?;
        ensure!(!self.existence.is_empty() || self.stood.is_zero(), "no timer runs, and time stood still for one");
        let astray = self.existence.names().find(|name| !may_be_awaited(name));
        ensure!(astray.is_none(), "{astray:?} is awaited, and held or not wanted");
        Ok(())
    }
}

impl Relabel for Timers {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.asked.iter_mut().for_each(|(seq, _)| by(Label::Request(seq)));
        // While time stands still, the time that is left counts from the moment since when, and not from now.
        let (since, stood) = (self.stands_since, core::mem::take(&mut self.stood));
        self.stands_since.relabel(by);
        let stands = since.zip(self.stands_since);
        self.existence.change_all(|due| {
            *due = *due + stood;
            match stands {
                Some((before, after)) => *due = after + due.saturating_since(before),
                None => due.relabel(by),
            }
        });
        self.answering.iter_mut().for_each(|seq| by(Label::Request(seq)));
    }
}
