//! The configuration of a poll: its times, and the content of its requests.

use core::time::Duration;

use crate::client;
use crate::error::Misuse;

/// The configuration of a [`Poll`](super::Poll).
///
/// ```
/// use core::time::Duration;
/// use xds_machine::Misuse;
/// use xds_machine::client;
/// use xds_machine::message::Node;
/// use xds_machine::poll::Config;
///
/// let client = client::Config::new(Node::new("me"));
/// let config = Config::new(client.clone(), Duration::from_secs(1))?.with_request_timeout(Duration::from_secs(5))?;
///
/// let none = Config::new(client, Duration::ZERO);
/// assert_eq!(none.unwrap_err(), Misuse::RefreshDelay { delay: Duration::ZERO });
/// # Ok::<(), Misuse>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Config {
    pub(super) client: client::Config,
    pub(super) refresh_delay: Duration,
    pub(super) request_timeout: Duration,
    pub(super) initial_fetch_timeout: Option<Duration>,
    pub(super) report_rejection: bool,
    pub(super) poll_on_change: bool,
}

impl Config {
    /// The shortest delay between two polls.
    pub const MIN_REFRESH_DELAY: Duration = Duration::from_millis(1);

    /// Creates a configuration: the node, types, limits and data errors of a client, and the delay between the answer
    /// to a poll and the next poll. A random part of up to the same length is added to the delay, which has no default
    /// (R-REST-08). The existence time-out of the client is not used: see
    /// [`with_initial_fetch_timeout`](Self::with_initial_fetch_timeout).
    ///
    /// # Errors
    ///
    /// [`Misuse::RefreshDelay`] if the delay is less than 1 ms (R-REST-07).
    pub fn new(client: client::Config, refresh_delay: Duration) -> Result<Self, Misuse> {
        if refresh_delay < Self::MIN_REFRESH_DELAY {
            return Err(Misuse::RefreshDelay { delay: refresh_delay });
        }
        Ok(Self {
            client,
            refresh_delay,
            request_timeout: Duration::from_secs(1),
            initial_fetch_timeout: Some(Duration::from_secs(15)),
            report_rejection: true,
            poll_on_change: false,
        })
    }

    /// Sets the time after which a poll is given up, counted from its request (R-REST-09). A server that holds polls
    /// has to answer earlier. Default: 1 s.
    ///
    /// # Errors
    ///
    /// [`Misuse::RequestTimeout`] if it is zero (R-REST-08).
    pub fn with_request_timeout(self, request_timeout: Duration) -> Result<Self, Misuse> {
        if request_timeout.is_zero() {
            return Err(Misuse::RequestTimeout);
        }
        Ok(Self { request_timeout, ..self })
    }

    /// Sets the time after which an application need not wait any longer for its first resources, counted from the
    /// first poll for them. Only a response ends the wait earlier, even if it is rejected; neither "not modified" nor a
    /// failure does (R-REST-11, R-REST-12). `None` disables it. Default: 15 s.
    #[must_use]
    pub fn with_initial_fetch_timeout(self, initial_fetch_timeout: Option<Duration>) -> Self {
        Self { initial_fetch_timeout, ..self }
    }

    /// Sets whether polls report why the last response was rejected (`error_detail`), until a response is accepted
    /// (R-REST-16). Envoy never reports it. Default: true.
    #[must_use]
    pub fn with_report_rejection(self, report_rejection: bool) -> Self {
        Self { report_rejection, ..self }
    }

    /// Sets whether new names bring the next poll forward (R-REST-18). Default: false.
    #[must_use]
    pub fn with_poll_on_change(self, poll_on_change: bool) -> Self {
        Self { poll_on_change, ..self }
    }

    /// Returns the time after which a poll is given up, which the transport sends to the server
    /// (`x-envoy-expected-rq-timeout-ms`).
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// Returns the delay until the next poll, of which `random` picks the random part (R-REST-06).
    pub(super) fn delay(&self, random: u64) -> Duration {
        let nanos = u64::try_from(self.refresh_delay.as_nanos()).unwrap_or(u64::MAX);
        // The delay is at least 1 ms by construction, so the remainder exists. No real delay reaches the upper bound.
        let part = random.checked_rem(nanos).unwrap_or_default();
        self.refresh_delay.saturating_add(Duration::from_nanos(part))
    }
}
