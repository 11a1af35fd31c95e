//! The clock and the timer of an executor.

use xds_machine::Instant;

/// A clock and its timer. The machines read no clock, so a driver asks a runtime.
///
/// Clones share the epoch of [`now`](Self::now). A test implements `Runtime` with a clock that it advances itself.
pub trait Runtime: Clone {
    /// A future that completes when its time has come.
    type Sleep: Future<Output = ()>;

    /// Returns the current time, since an epoch that the runtime chooses. Never goes back.
    fn now(&self) -> Instant;

    /// Returns a future that completes at `due`, or at once if that time has passed.
    fn sleep_until(&self, due: Instant) -> Self::Sleep;
}
