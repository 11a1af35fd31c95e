//! Wall-clock times: the machines have none, so the caller provides the time of a machine's epoch.

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

/// Converts the moments of a machine to times of the wall clock. Make a clock once and keep it: with one clock, two
/// dumps of one state are the same (R-CSDS-17).
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
    /// The time of the wall clock at the epoch of the machine, from 1970 on.
    epoch: Duration,
}

impl Clock {
    /// Makes a clock whose moment `now` is `since_1970` of the wall clock. An epoch before 1970 counts as 1970.
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
