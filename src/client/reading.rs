//! When a stream is read, and when the time of existence time-outs stands still because it is not, or because an answer
//! may wait.

use core::time::Duration;

use super::Client;
use super::variant::{Of, Variant};
use crate::model::{Label, Relabel};
use crate::time::Instant;

/// Whether the stream is read although `Limits::responses_per_stream` responses wait for a verdict.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) enum Reading {
    /// The limit was not reached.
    #[default]
    Free,
    /// The next response is read from this time on.
    From(Instant),
    /// The next response may be read.
    Overdue,
}

/// The time after which a stream is read although as many responses wait for a verdict as configured: the verdict may
/// wait for a response that is unread.
pub(super) const READS_AGAIN: Duration = Duration::from_secs(1);

impl Reading {
    /// Returns the state after a response was read; `is_full`: as many wait for a verdict as configured.
    pub(super) fn after_response(now: Instant, is_full: bool) -> Self {
        if is_full { Self::From(now + READS_AGAIN) } else { Self::Free }
    }

    /// Returns the state after time has passed.
    pub(super) fn at(self, now: Instant, is_full: bool) -> Self {
        match self {
            _ if !is_full => Self::Free,
            Self::From(from) if from <= now => Self::Overdue,
            reading => reading,
        }
    }

    /// Returns the time from which the next response is read.
    pub(super) fn from(self) -> Option<Instant> {
        if let Self::From(from) = self { Some(from) } else { None }
    }
}

impl Relabel for Reading {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        if let Self::From(from) = self {
            from.relabel(by);
        }
    }
}

impl<V: Variant> Client<V> {
    /// Notes whether a layer above takes no responses now.
    pub(crate) fn set_unread(&mut self, now: Instant, unread: bool) {
        if let Some(stream) = self.stream.as_mut().filter(|stream| stream.unread != unread) {
            stream.unread = unread;
            self.let_time_stand(now);
        }
    }

    /// Returns whether as many responses of this stream wait for a verdict as the configuration allows.
    pub(super) fn is_full(&self) -> bool {
        self.unjudged() >= self.config.settings().limits.responses_per_stream
    }

    /// Returns whether the number of responses that wait for a verdict lets the stream be read.
    pub(super) fn is_read(&self) -> bool {
        !self.is_full() || self.stream.as_ref().is_some_and(|stream| stream.reading == Reading::Overdue)
    }

    /// Returns whether the time of existence time-outs stands still: the server may have answered, and the client can't
    /// see the answer, or the server may wait for an ACK before it answers.
    pub(super) fn stands(&self, of: &Of<V>) -> bool {
        let Some(stream) = &self.stream else { return false };
        let unread = stream.unread || !self.wants_response();
        unread || of.in_flight.unanswered() > 0 || of.timers.is_answering()
    }

    pub(super) fn let_time_stand(&mut self, now: Instant) {
        for at in 0..self.types.len() {
            let stands = self.stands(&self.types[at]);
            self.types[at].timers.stand(now, stands);
        }
    }
}
