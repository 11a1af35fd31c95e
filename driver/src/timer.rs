//! A timer that is set anew at each poll, and costs nothing while no time-out is running.

use std::pin::Pin;
use std::task::{Context, Poll};

use xds_machine::Instant;

use crate::Runtime;

/// At most one sleep, boxed only while a time-out is running: most streams have none.
pub(crate) struct Timer<R: Runtime>(Option<(Instant, Pin<Box<R::Sleep>>)>);

impl<R: Runtime> Timer<R> {
    pub(crate) fn new() -> Self {
        Self(None)
    }

    /// Returns `Ready` when `due` has come. `None` is never.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, runtime: &R, due: Option<Instant>) -> Poll<()> {
        let Some(due) = due else {
            self.0 = None;
            return Poll::Pending;
        };
        if self.0.as_ref().is_none_or(|(set, _)| *set != due) {
            self.0 = Some((due, Box::pin(runtime.sleep_until(due))));
        }
        let poll = self.0.as_mut().map_or(Poll::Pending, |(_, sleep)| sleep.as_mut().poll(cx));
        if poll.is_ready() {
            self.0 = None;
        }
        poll
    }
}
