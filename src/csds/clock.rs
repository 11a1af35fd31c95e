//! Wall-clock times: the machines have none, so the caller says when its epoch was.

use core::time::Duration;

use crate::time::Instant;

/// A moment of the wall clock (`google.protobuf.Timestamp`), from 1970 on.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Timestamp {
    /// Seconds since 1970-01-01, 00:00 UTC.
    pub seconds: i64,
    /// The rest in nanoseconds, less than a second.
    pub nanos: i32,
}

/// Turns the moments of a machine into times of the wall clock. Made once and kept: with one clock, two dumps of one
/// state are the same (R-CSDS-17).
///
/// ```
/// use core::time::Duration;
/// use std::time::{SystemTime, UNIX_EPOCH};
/// use xds_machine::Instant;
/// use xds_machine::csds::{Clock, Timestamp};
///
/// let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH)?;
/// let clock = Clock::new(Instant::EPOCH, since_1970); // at the start of the program
/// assert!(clock.timestamp(Instant::EPOCH + Duration::from_secs(5)) > clock.timestamp(Instant::EPOCH));
///
/// let clock = Clock::new(Instant::EPOCH, Duration::from_millis(1_500));
/// assert_eq!(clock.timestamp(Instant::EPOCH), Timestamp { seconds: 1, nanos: 500_000_000 });
/// # Ok::<(), std::time::SystemTimeError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Clock {
    /// The wall clock at the epoch of the machine, or before it by as much as `now` was after it.
    epoch: Duration,
}

impl Clock {
    /// Makes a clock: `now` is `since_1970` of the wall clock. A moment before 1970 counts as 1970.
    pub fn new(now: Instant, since_1970: Duration) -> Self {
        Self { epoch: since_1970.saturating_sub(now.since_epoch()) }
    }

    /// Returns the wall-clock time of a moment.
    pub fn timestamp(&self, at: Instant) -> Timestamp {
        let since_1970 = self.epoch.saturating_add(at.since_epoch());
        Timestamp {
            seconds: i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(since_1970.subsec_nanos()).unwrap_or_default(),
        }
    }
}
