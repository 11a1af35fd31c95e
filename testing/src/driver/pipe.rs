//! An in-memory transport.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;

/// An event of a [`Pipe`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Received {
    /// A message of the other end, encoded.
    Message(Bytes),
    /// The driver's store changed. Only drivers of servers receive this.
    Changed,
    /// The other end closed, or this end was closed. Permanent.
    Closed,
    /// Nothing arrived in the given time.
    Timeout,
}

/// One end of an in-memory stream of messages, for drivers that block and for those that are polled. Clones are the
/// same end.
#[derive(Clone, Debug)]
pub struct Pipe {
    own: Arc<Queue>,
    other: Arc<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Received>,
    closed: bool,
    /// The reader found nothing, and asks for more.
    idle: bool,
    waker: Option<Waker>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let waker = {
            let mut state = self.lock();
            change(&mut state);
            state.waker.take()
        };
        self.arrived.notify_all();
        waker.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn next(&mut self) -> Option<Received> {
        let next = self.messages.pop_front().or_else(|| self.closed.then_some(Received::Closed));
        self.idle = next.is_none();
        next
    }
}

impl Pipe {
    /// Makes a stream. Returns its two ends.
    pub fn new() -> (Self, Self) {
        let (one, two) = (Arc::new(Queue::default()), Arc::new(Queue::default()));
        (Self { own: one.clone(), other: two.clone() }, Self { own: two, other: one })
    }

    /// Sends a message. Returns whether the stream is still open.
    pub fn send(&self, message: impl Into<Bytes>) -> bool {
        let open = !self.other.lock().closed;
        if open {
            self.other.change(|state| state.messages.push_back(Received::Message(message.into())));
        }
        open
    }

    /// Closes the stream in both directions; messages sent before still arrive.
    pub fn close(&self) {
        self.other.change(|state| state.closed = true);
        self.own.change(|state| {
            state.closed = true;
            state.messages.clear();
        });
    }

    /// Waits for the next event, for the given time at most.
    pub fn recv(&self, most: Option<Duration>) -> Received {
        let mut state = self.own.lock();
        let end = most.map(|most| std::time::Instant::now() + most);
        loop {
            if let Some(next) = state.next() {
                return next;
            }
            self.own.arrived.notify_all();
            state = match end.map(|end| end.saturating_duration_since(std::time::Instant::now())) {
                Some(Duration::ZERO) => return Received::Timeout,
                Some(left) => {
                    self.own.arrived.wait_timeout(state, left).unwrap_or_else(|poisoned| poisoned.into_inner()).0
                }
                None => self.own.arrived.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner()),
            };
        }
    }

    /// Like `recv`, for a task: returns the next event, or wakes the task when there is one.
    pub fn poll_recv(&self, context: &mut Context<'_>) -> Poll<Received> {
        let mut state = self.own.lock();
        match state.next() {
            Some(next) => Poll::Ready(next),
            None => {
                self.own.arrived.notify_all();
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Waits until the other end has read everything and asks for more, for the given time at most. Messages that a
    /// driver sends after that are not caused by the messages that it read before.
    pub(super) fn settle(&self, most: Duration) {
        let working = |state: &mut State| !(state.closed || state.idle && state.messages.is_empty());
        let waited = self.other.arrived.wait_timeout_while(self.other.lock(), most, working);
        drop(waited.unwrap_or_else(|poisoned| poisoned.into_inner()));
    }

    /// Notifies the other end that the store changed.
    pub(super) fn tell_changed(&self) {
        self.other.change(|state| state.messages.push_back(Received::Changed));
    }
}
