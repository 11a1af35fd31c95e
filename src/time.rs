//! Time as a value: the machines read no clock.

use core::ops::Add;
use core::time::Duration;

/// A moment, as the time since an epoch that the caller chooses. The machines only compare and add moments.
///
/// ```
/// use core::time::Duration;
/// use xds_machine::Instant;
///
/// let start = std::time::Instant::now(); // the driver's epoch
/// let now = Instant::from_epoch(start.elapsed());
/// assert_eq!((now + Duration::from_secs(15)).saturating_since(now), Duration::from_secs(15));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Instant(Duration);

impl Instant {
    /// The epoch itself, for callers that need no time.
    pub const EPOCH: Self = Self(Duration::ZERO);

    /// Returns the moment `elapsed` after the epoch.
    pub const fn from_epoch(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// Returns the time from the epoch to this moment.
    pub const fn since_epoch(self) -> Duration {
        self.0
    }

    /// Returns the time from `earlier` to this moment, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates: a timeout of [`Duration::MAX`] never expires.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}
