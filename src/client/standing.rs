//! When the time of existence time-outs stands still: the stream is not read, or an answer may wait.

use super::Client;
use super::reading::Reading;
use super::variant::{Of, Variant};
use crate::time::Instant;

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
