//! The delay between two attempts to open a stream.

use core::time::Duration;

/// The delay before the next stream. `Backoff` is not part of the machine, because the driver decides when to connect,
/// and to which server.
///
/// Call [`next_delay`](Self::next_delay) when a stream has ended, and [`reset`](Self::reset) when a response was
/// received: a response, not the connection, proves that the server works (gRFC A57).
///
/// ```
/// use core::time::Duration;
/// use xds_machine::client::Backoff;
///
/// let mut backoff = Backoff::grpc().with_max(Duration::from_secs(10));
/// let waits: Vec<u128> = (0..7).map(|_| backoff.next_delay(500).as_millis()).collect(); // 500: no jitter either way
/// assert_eq!(waits, [1000, 1600, 2560, 4096, 6553, 10_000, 10_000]);
/// backoff.reset();
/// assert_eq!(backoff.next_delay(0).as_millis(), 800);
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    /// Each delay in percent of the last.
    growth: u32,
    jitter: Jitter,
    /// The next delay, without jitter.
    wait: Duration,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Jitter {
    /// Up to this percentage more or less.
    Around(u32),
    /// Anything from zero to the full delay.
    Full,
}

impl Backoff {
    /// Creates the backoff of gRPC: 1 s at first, each delay 1.6 times the last, at most 120 s, 20 % more or less
    /// (gRPC's [connection-backoff.md]; gRFC A57).
    ///
    /// [connection-backoff.md]: https://github.com/grpc/grpc/blob/master/doc/connection-backoff.md
    pub const fn grpc() -> Self {
        let (first, max) = (Duration::from_secs(1), Duration::from_secs(120));
        Self { first, max, growth: 160, jitter: Jitter::Around(20), wait: first }
    }

    /// Creates the backoff of Envoy: anything from zero to 500 ms, doubled each time, at most 30 s.
    pub const fn envoy() -> Self {
        let (first, max) = (Duration::from_millis(500), Duration::from_secs(30));
        Self { first, max, growth: 200, jitter: Jitter::Full, wait: first }
    }

    /// Sets the upper limit.
    #[must_use]
    pub const fn with_max(mut self, max: Duration) -> Self {
        self.max = max;
        self
    }

    /// Returns the next delay. `random` is any evenly distributed number, because the machine has no source of
    /// randomness.
    pub fn next_delay(&mut self, random: u64) -> Duration {
        let wait = self.wait.min(self.max);
        self.wait = percent(wait, u64::from(self.growth)).min(self.max);
        let thousandths = random % 1001;
        match self.jitter {
            Jitter::Full => wait.saturating_mul(thousandths as u32) / 1000,
            Jitter::Around(range) => {
                let range = u64::from(range);
                wait.saturating_mul((1000 - 10 * range + 2 * range * thousandths / 100) as u32) / 1000
            }
        }
    }

    /// Returns to the first delay, because the server answered.
    pub fn reset(&mut self) {
        self.wait = self.first;
    }
}

fn percent(wait: Duration, percent: u64) -> Duration {
    wait.saturating_mul(percent as u32) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_stay_within_their_jitter() {
        for random in [0, 1, 500, 1000, 1001, u64::MAX] {
            let wait = Backoff::grpc().next_delay(random).as_millis();
            assert!((800..=1200).contains(&wait), "{wait}");
            assert!(Backoff::envoy().next_delay(random) <= Duration::from_millis(500));
        }
        assert_eq!(Backoff::grpc().next_delay(0), Duration::from_millis(800));
        assert_eq!(Backoff::grpc().next_delay(1000), Duration::from_millis(1200));
        assert_eq!(Backoff::envoy().next_delay(0), Duration::ZERO);
        assert_eq!(Backoff::envoy().next_delay(1000), Duration::from_millis(500));
    }

    #[test]
    fn waits_grow_up_to_the_limit_and_start_anew() {
        let mut backoff = Backoff::envoy();
        let waits: [u128; 9] = core::array::from_fn(|_| backoff.next_delay(1000).as_millis());
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
        backoff.reset();
        assert_eq!(backoff.next_delay(1000).as_millis(), 500);
    }
}
