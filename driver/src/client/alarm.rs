//! A timer that follows the next time-out of a machine.

use std::pin::Pin;
use std::task::{Context, Poll};

use xds_machine::Instant;

use crate::Runtime;

/// Sleeps until the time-out of a machine, which may move at any time.
pub(super) struct Alarm<R: Runtime> {
    set: Option<(Instant, Pin<Box<R::Sleep>>)>,
}

impl<R: Runtime> Alarm<R> {
    pub(super) fn new() -> Self {
        Self { set: None }
    }

    /// Returns `Ready` if `due` has come, and otherwise wakes the task then.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, runtime: &R, due: Option<Instant>) -> Poll<()> {
        let Some(due) = due else {
            self.set = None;
            return Poll::Pending;
        };
        if due <= runtime.now() {
            return Poll::Ready(());
        }
        if self.set.as_ref().is_none_or(|(set, _)| *set != due) {
            self.set = Some((due, Box::pin(runtime.sleep_until(due))));
        }
        let Some((_, sleep)) = &mut self.set else { return Poll::Pending };
        let rings = sleep.as_mut().poll(cx);
        if rings.is_ready() {
            self.set = None;
        }
        rings
    }
}
