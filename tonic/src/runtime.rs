//! The clock and the timer of tokio.

use tokio::time::{self, Sleep};
use xds_machine::Instant;
use xds_machine_driver::Runtime;

/// The [`Runtime`] of tokio. Its epoch is its creation; a paused clock of tokio pauses it too.
#[derive(Clone, Copy, Debug)]
pub struct TokioRuntime {
    start: time::Instant,
}

impl TokioRuntime {
    /// Creates a runtime whose epoch is now.
    pub fn new() -> Self {
        Self { start: time::Instant::now() }
    }
}

impl Default for TokioRuntime {
    fn default() -> Self {
        Self::new()
    }
}

impl Runtime for TokioRuntime {
    type Sleep = Sleep;

    fn now(&self) -> Instant {
        Instant::from_epoch(self.start.elapsed())
    }

    fn sleep_until(&self, due: Instant) -> Sleep {
        // A time that tokio can't represent is as good as never; tokio's own `sleep` caps it at 30 years.
        match self.start.checked_add(due.since_epoch()) {
            Some(due) => time::sleep_until(due),
            None => time::sleep(due.since_epoch()),
        }
    }
}
