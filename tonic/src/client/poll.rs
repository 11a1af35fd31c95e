//! Drives a poll (REST): times, requests and answers. The caller provides JSON and HTTP.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll as Ready};
use std::time::Duration;

use tokio::time::Sleep;
use xds_machine::client::Verdict;
use xds_machine::poll::{Action, Answer, Asked, Poll, Transmit};
use xds_machine::{Instant, Misuse, ResourceName};
use xds_machine_driver::Runtime;

use crate::TokioRuntime;

/// Posts the requests of a [`Poller`]. One request is posted at a time; dropping its future abandons the request.
pub trait Post {
    /// The future of the answer.
    type Future: Future<Output = Answer> + Send;

    /// Posts a request, as canonical JSON with `content-type: application/json`, to its path.
    fn post(&mut self, transmit: Transmit) -> Self::Future;
}

/// A report of a [`Poller`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Polled {
    /// The server has answered: with 200, whatever the body is, or with 304. This report precedes the actions that
    /// follow from the answer.
    Answered,
    /// An action of the machine.
    Action(Action),
}

/// A poll and its transport.
pub struct Poller<P: Post> {
    poll: Poll,
    post: P,
    /// The request under way.
    asking: Option<(Asked, Pin<Box<P::Future>>)>,
    answered: bool,
    runtime: TokioRuntime,
    timer: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<P: Post> Poller<P> {
    /// Makes a poller, for use in a tokio runtime.
    pub fn new(poll: Poll, post: P) -> Self {
        Self { poll, post, asking: None, answered: false, runtime: TokioRuntime::new(), timer: None }
    }

    /// Returns the poll.
    pub fn get(&self) -> &Poll {
        &self.poll
    }

    /// Subscribes as [`Poll::subscribe`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Poll::subscribe`].
    pub fn subscribe(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) -> Result<(), Misuse> {
        self.poll.subscribe(names)
    }

    /// Unsubscribes as [`Poll::unsubscribe`] does.
    pub fn unsubscribe(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        self.poll.unsubscribe(names);
    }

    /// Handles the verdict on an update.
    ///
    /// # Errors
    ///
    /// Those of [`Poll::handle_verdict`].
    pub fn verdict(&mut self, verdict: Verdict) -> Result<(), Misuse> {
        self.poll.handle_verdict(self.runtime.now(), verdict)
    }

    /// Returns the time until the next time-out of the poll: between requests, the time until the next request.
    pub fn until_next(&self) -> Option<Duration> {
        Some(self.poll.poll_timeout()?.saturating_since(self.runtime.now()))
    }

    /// Returns a report that is available already, without waiting.
    pub fn ready(&mut self) -> Option<Polled> {
        if std::mem::take(&mut self.answered) {
            return Some(Polled::Answered);
        }
        self.poll.poll_action().map(Polled::Action)
    }

    /// Waits for the next report, and drives the poll meanwhile. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Polled {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next report.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Ready<Polled> {
        loop {
            let now = self.runtime.now();
            if self.poll.poll_timeout().is_some_and(|due| due <= now) {
                self.poll.handle_timeout(now, fastrand::u64(..));
            }
            if self.asking.as_ref().is_some_and(|(asked, _)| Some(*asked) != self.poll.asked()) {
                self.asking = None; // given up
            }
            if let Some(polled) = self.ready() {
                return Ready::Ready(polled);
            }
            if let Some(transmit) = self.poll.poll_transmit(now) {
                self.asking = Some((transmit.asked, Box::pin(self.post.post(transmit))));
            }
            if let Some((asked, answer)) = &mut self.asking {
                if let Ready::Ready(answer) = answer.as_mut().poll(cx) {
                    let asked = *asked;
                    self.asking = None;
                    self.answered = !matches!(answer, Answer::Failed(_));
                    // All actions were polled, so the answer is not refused.
                    let taken = self.poll.handle_answer(self.runtime.now(), asked, answer, fastrand::u64(..));
                    debug_assert_eq!(taken, Ok(()));
                    continue;
                }
            }
            if self.wait(cx).is_pending() {
                return Ready::Pending;
            }
        }
    }

    /// Waits for the next time-out.
    fn wait(&mut self, cx: &mut Context<'_>) -> Ready<()> {
        let Some(due) = self.poll.poll_timeout() else { return Ready::Pending };
        if self.timer.as_ref().is_none_or(|(at, _)| *at != due) {
            self.timer = Some((due, Box::pin(self.runtime.sleep_until(due))));
        }
        self.timer.as_mut().map_or(Ready::Pending, |(_, sleep)| {
            let ready = sleep.as_mut().poll(cx);
            if ready.is_ready() { Ready::Ready(()) } else { Ready::Pending }
        })
    }
}

impl<P: Post> fmt::Debug for Poller<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller").field("poll", &self.poll).field("asked", &self.poll.asked()).finish_non_exhaustive()
    }
}
