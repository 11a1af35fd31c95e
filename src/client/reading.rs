//! Whether a stream is read although many of its responses wait for a verdict.

use core::time::Duration;

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
