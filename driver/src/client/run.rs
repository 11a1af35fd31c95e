//! One client, over one stream or over all of them.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_sink::Sink;
use xds_machine::client::{Action, Backoff, Client, Variant, Verdict};
use xds_machine::{Instant, Misuse};

use super::ended::{Ended, Reason};
use super::link::Link;
use crate::Runtime;
use crate::timer::Timer;

/// The application of a client: judges updates, and changes subscriptions.
///
/// A function of the client and an action is an application that judges at once.
pub trait Application<V: Variant> {
    /// Handles an action. Returns the verdict on an update ([`Action::Apply`]), or `None` to give it later
    /// [in `poll`](Self::poll). The client is for subscriptions and queries.
    fn handle_action(&mut self, client: &mut Client<V>, action: Action) -> Option<Verdict>;

    /// Does what is not caused by an action: gives late verdicts ([`Client::handle_verdict`]), subscribes,
    /// unsubscribes. Called after the actions whenever the driver's task runs; wakes the task for more. Returns
    /// `Ready` to end the driver.
    ///
    /// The default does nothing.
    fn poll(&mut self, cx: &mut Context<'_>, client: &mut Client<V>, now: Instant) -> Poll<()> {
        _ = (cx, client, now);
        Poll::Pending
    }
}

impl<V: Variant, F: FnMut(&mut Client<V>, Action) -> Option<Verdict>> Application<V> for F {
    fn handle_action(&mut self, client: &mut Client<V>, action: Action) -> Option<Verdict> {
        self(client, action)
    }
}

/// Drives a client over one open stream until it ends. The client is told of the stream's begin and end.
///
/// The caller waits before it opens the next stream; meanwhile time-outs must be handled, because a TTL may expire
/// without a stream. [`run`] does both.
pub async fn run_stream<V, I, O, E, R>(
    client: &mut Client<V>,
    inbound: I,
    outbound: O,
    runtime: &R,
    app: &mut impl Application<V>,
) -> Ended<E, O::Error>
where
    V: Variant,
    I: Stream<Item = Result<V::Response, E>>,
    O: Sink<V::Request>,
    R: Runtime,
{
    client.handle_open();
    let mut link = Link::new(inbound, outbound, runtime.clone());
    let work = |client: &mut Client<V>, cx: &mut Context<'_>| {
        if client.wants_new_stream() {
            return Poll::Ready(Some(Ended { reason: Reason::Renewed, answered: link.answered() }));
        }
        link.poll(cx, client).map(Result::err)
    };
    let ended = turn(client, runtime, app, work).await;
    client.handle_close();
    ended.unwrap_or_else(|stop| Ended { reason: stop.into(), answered: link.answered() })
}

/// Drives a client over one stream after the other, until the application ends it.
///
/// `connect` opens a stream, and is called when the client wants one and the backoff has passed. `random` returns any
/// evenly distributed number, for the jitter of the backoff. `ended` is told of each end of a stream or of an attempt,
/// and of the time until the next one.
///
/// # Errors
///
/// A mistake of the application, after which the client still works.
pub async fn run<V, I, O, E, R, C>(
    client: &mut Client<V>,
    mut connect: impl FnMut() -> C,
    mut backoff: Backoff,
    mut random: impl FnMut() -> u64,
    runtime: &R,
    app: &mut impl Application<V>,
    mut ended: impl FnMut(Ended<E, O::Error>, Duration),
) -> Result<(), Misuse>
where
    V: Variant,
    I: Stream<Item = Result<V::Response, E>>,
    O: Sink<V::Request>,
    R: Runtime,
    C: Future<Output = Result<(I, O), E>>,
{
    let mut retry_at = runtime.now();
    loop {
        let mut timer = Timer::new();
        let wanted = |client: &mut Client<V>, cx: &mut Context<'_>| match client.wants_stream() {
            true => timer.poll(cx, runtime, Some(retry_at)).map(Some),
            false => Poll::Pending,
        };
        match turn(client, runtime, app, wanted).await {
            Ok(()) => {}
            Err(Stop::Stopped) => return Ok(()),
            Err(Stop::Misused(misuse)) => return Err(misuse),
        }
        let connected = {
            let mut connecting = pin!(connect());
            turn(client, runtime, app, |_, cx| connecting.as_mut().poll(cx).map(Some)).await
        };
        let end = match connected {
            Ok(Ok((inbound, outbound))) => run_stream(client, inbound, outbound, runtime, app).await,
            Ok(Err(error)) => Ended { reason: Reason::Inbound(error), answered: false },
            Err(stop) => Ended { reason: stop.into(), answered: false },
        };
        match end.reason {
            Reason::Stopped => return Ok(()),
            Reason::Misused(misuse) => return Err(misuse),
            _ => {}
        }
        if end.answered {
            backoff.reset();
        }
        // The machine itself asked for this end: there is nothing to wait for.
        let renewed = matches!(end.reason, Reason::Renewed) && end.answered;
        let wait = if renewed { Duration::ZERO } else { backoff.next_delay(random()) };
        retry_at = runtime.now() + wait;
        ended(end, wait);
    }
}

/// Why a turn ended early.
enum Stop {
    Stopped,
    Misused(Misuse),
}

impl<I, O> From<Stop> for Reason<I, O> {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Stopped => Self::Stopped,
            Stop::Misused(misuse) => Self::Misused(misuse),
        }
    }
}

/// Handles actions and time-outs until `work` returns `Some`; `None` means that it caused actions.
async fn turn<V: Variant, R: Runtime, T>(
    client: &mut Client<V>,
    runtime: &R,
    app: &mut impl Application<V>,
    mut work: impl FnMut(&mut Client<V>, &mut Context<'_>) -> Poll<Option<T>>,
) -> Result<T, Stop> {
    let mut timer = Timer::new();
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(stop) = act(client, runtime, app, cx) {
                return Poll::Ready(Err(stop));
            }
            match work(client, cx) {
                Poll::Ready(Some(done)) => return Poll::Ready(Ok(done)),
                Poll::Ready(None) => continue,
                Poll::Pending => {}
            }
            if timer.poll(cx, runtime, client.poll_timeout()).is_pending() {
                return Poll::Pending;
            }
            client.handle_timeout(runtime.now());
        }
    })
    .await
}

/// Passes actions to the application, and its verdicts back, until neither is left.
fn act<V: Variant>(
    client: &mut Client<V>,
    runtime: &impl Runtime,
    app: &mut impl Application<V>,
    cx: &mut Context<'_>,
) -> Poll<Stop> {
    let mut next = client.poll_action();
    loop {
        while let Some(action) = next.take().or_else(|| client.poll_action()) {
            if let Some(verdict) = app.handle_action(client, action) {
                if let Err(misuse) = client.handle_verdict(runtime.now(), verdict) {
                    return Poll::Ready(Stop::Misused(misuse));
                }
            }
        }
        // After the actions, because they may have given the application something to wait for.
        if app.poll(cx, client, runtime.now()).is_ready() {
            return Poll::Ready(Stop::Stopped);
        }
        next = client.poll_action(); // which a late verdict brings
        if next.is_none() {
            return Poll::Pending;
        }
    }
}
