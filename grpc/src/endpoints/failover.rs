//! The choice among priorities, and its timers (gRFC A56, A115).

use core::time::Duration;

use xds_machine::Instant;

/// How long a priority may take to connect before the next one is tried as well.
const FAILOVER: Duration = Duration::from_secs(10);

/// How long a priority that is not used is kept.
const RETENTION: Duration = Duration::from_secs(15 * 60);

/// The connectivity of a priority.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum State {
    /// No connection; the next call makes one.
    Idle,
    /// A connection is being made.
    Connecting,
    /// There is a connection.
    Ready,
    /// No connection could be made.
    TransientFailure,
}

/// A priority that is connected or may be: its state, and its timers (R-EDS-21).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Child {
    state: State,
    /// Whether the child was ready or idle since its last failure; true for a new child. The end of the failover timer
    /// is a failure, so that a child that still connects does not start the timer again.
    worked: bool,
    failover: Option<Instant>,
    expires: Option<Instant>,
}

impl Child {
    /// Makes a child, which begins to connect; its failover timer starts.
    pub fn new(now: Instant) -> Self {
        Self { state: State::Connecting, worked: true, failover: Some(now + FAILOVER), expires: None }
    }

    /// Returns the state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns whether the failover timer runs.
    pub fn has_time(&self) -> bool {
        self.failover.is_some()
    }

    /// Records the state. The failover timer starts when a child connects that was ready or idle since its last
    /// failure, and stops in every other state.
    pub fn handle_state(&mut self, now: Instant, state: State) {
        match state {
            State::Connecting if self.worked => self.failover = self.failover.or(Some(now + FAILOVER)),
            State::Connecting => {}
            State::Ready | State::Idle | State::TransientFailure => {
                self.failover = None;
                self.worked = state != State::TransientFailure;
            }
        }
        self.state = state;
    }

    /// Records that a higher priority is used; the child is kept for 15 min.
    pub fn deactivate(&mut self, now: Instant) {
        self.expires = self.expires.or(Some(now + RETENTION));
    }

    /// Records that the child is among those that are tried again.
    pub fn reactivate(&mut self) {
        self.expires = None;
    }

    /// Handles the time of [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Instant) {
        let is_over = self.failover.is_some_and(|at| at <= now);
        self.failover = self.failover.filter(|_| !is_over);
        self.worked &= !is_over;
    }

    /// Returns whether the child is to be dropped: it was not used for 15 min. A child whose priority left the
    /// configuration is dropped at once (gRFC A115).
    pub fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// Returns when the next timer ends.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.failover.into_iter().chain(self.expires).min()
    }
}

/// The priority that calls are sent to.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Choice {
    /// The index of the priority.
    pub priority: usize,
    /// Whether its child is to be made now ([`Child::new`]), because there is none yet.
    pub creates: bool,
    /// Whether the lower priorities are to be [deactivated](Child::deactivate); those up to this one are to be
    /// [reactivated](Child::reactivate).
    pub deactivates_lower: bool,
}

/// Returns the priority to use; `None` without priorities, so that calls fail. R-EDS-20: This is the first child that
/// is missing, ready or idle, or whose failover timer runs; if there is none, the first one that connects, or else the
/// last one. No child is made while a higher one is used.
pub fn choose(children: &[Option<Child>]) -> Option<Choice> {
    let works = |child: &Child| matches!(child.state, State::Ready | State::Idle);
    let stops = |child: &Option<Child>| child.is_none_or(|child| works(&child) || child.has_time());
    let connects = |child: &Option<Child>| child.is_some_and(|child| child.state == State::Connecting);
    let first = children.iter().position(stops).or_else(|| children.iter().position(connects));
    let priority = first.or(children.len().checked_sub(1))?;
    let child = children[priority];
    Some(Choice { priority, creates: child.is_none(), deactivates_lower: child.as_ref().is_some_and(works) })
}
