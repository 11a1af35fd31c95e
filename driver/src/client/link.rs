//! One stream of a client.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_sink::Sink;
use xds_machine::Error;
use xds_machine::client::Variant;

use super::ended::{Ended, Reason};
use super::machine::Machine;
use crate::Runtime;
use crate::timer::Timer;

/// How long the inbound half may take to say why the outbound half failed. A gRPC stream ends with a status, which
/// often arrives after the first failed write.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// One open stream between a [`Machine`] and a transport. Dropping a `Link` closes the stream.
///
/// A `Link` is polled, and leaves everything but messages to its owner: actions and time-outs, opening and closing.
/// [`run_stream`](super::run_stream) is its simplest owner.
pub struct Link<I, O: Sink<Q>, Q, R: Runtime> {
    inbound: Pin<Box<I>>,
    outbound: Pin<Box<O>>,
    runtime: R,
    /// Requests were given to the sink since it was flushed.
    unflushed: bool,
    /// The outbound half is closed.
    finished: bool,
    /// The sink failed: the error, and the time when the inbound half is no longer waited for.
    broken: Option<(O::Error, xds_machine::Instant)>,
    timer: Timer<R>,
    reads: bool,
    answered: bool,
}

impl<I, O: Sink<Q>, Q, R: Runtime> fmt::Debug for Link<I, O, Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("unflushed", &self.unflushed)
            .field("answered", &self.answered)
            .finish_non_exhaustive()
    }
}

impl<I, O: Sink<Q>, Q, R: Runtime> Link<I, O, Q, R> {
    /// Makes a link over an open stream. The machine must have been told of the stream
    /// ([`Client::handle_open`](xds_machine::client::Client::handle_open)).
    pub fn new(inbound: I, outbound: O, runtime: R) -> Self {
        let (inbound, outbound) = (Box::pin(inbound), Box::pin(outbound));
        let (broken, timer) = (None, Timer::new());
        Self {
            inbound,
            outbound,
            runtime,
            unflushed: false,
            finished: false,
            broken,
            timer,
            reads: true,
            answered: false,
        }
    }

    /// Sends the machine's requests as long as there is room, then reads one response if the machine wants one.
    ///
    /// Returns `Ready(Ok(()))` after a response: poll the machine's actions, then this again. `Pending` means that
    /// nothing is left to do, and that the task is woken by a response, or by room if the machine has a request. After
    /// any other call to the machine, poll again.
    ///
    /// # Errors
    ///
    /// `Ready(Err(_))` when the stream is over; the caller tells the machine, and drops the link.
    pub fn poll<V, E>(
        &mut self,
        cx: &mut Context<'_>,
        machine: &mut impl Machine<V>,
    ) -> Poll<Result<(), Ended<E, O::Error>>>
    where
        V: Variant<Request = Q>,
        I: Stream<Item = Result<V::Response, E>>,
    {
        if self.broken.is_none() {
            if let Err(error) = self.send(cx, machine) {
                self.broken = Some((error, self.runtime.now() + LAST_WORDS));
            }
        }
        let reason = if self.reads && machine.wants_response() { self.read(cx, machine) } else { Poll::Pending };
        let reason = match reason {
            Poll::Ready(Some(reason)) => reason,
            Poll::Ready(None) => return Poll::Ready(Ok(())),
            Poll::Pending => {
                let until = self.broken.as_ref().map(|(_, until)| *until);
                match (self.timer.poll(cx, &self.runtime, until), self.broken.take()) {
                    (Poll::Ready(()), Some((error, _))) => Reason::Outbound(error),
                    (_, broken) => {
                        self.broken = broken;
                        return Poll::Pending;
                    }
                }
            }
        };
        Poll::Ready(Err(Ended { reason, answered: self.answered }))
    }

    /// Ends the stream from this side: closes the outbound half, which tells the server that no more requests come, and
    /// passes over what the server still sends. Returns `Ready` when the server has ended its half, or the stream has
    /// failed. The owner limits the wait. After this the link is only dropped.
    pub fn poll_finish<T, E>(&mut self, cx: &mut Context<'_>) -> Poll<()>
    where
        I: Stream<Item = Result<T, E>>,
    {
        if !self.finished {
            self.finished = self.outbound.as_mut().poll_close(cx).is_ready(); // an error ends the inbound half too
        }
        loop {
            match self.inbound.as_mut().poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None | Some(Err(_))) => return Poll::Ready(()),
                Poll::Ready(Some(Ok(_))) => {}
            }
        }
    }

    /// Sets whether responses are read; true at first.
    pub fn set_reads(&mut self, reads: bool) {
        self.reads = reads;
    }

    /// Returns whether a response was received, which proves that the server works.
    pub fn answered(&self) -> bool {
        self.answered
    }

    /// Sends while there is room, and flushes.
    fn send<V: Variant<Request = Q>>(
        &mut self,
        cx: &mut Context<'_>,
        machine: &mut impl Machine<V>,
    ) -> Result<(), O::Error> {
        while machine.wants_transmit() {
            let Poll::Ready(room) = self.outbound.as_mut().poll_ready(cx) else { break };
            room?;
            let Some(transmit) = machine.poll_transmit() else { break };
            self.outbound.as_mut().start_send(transmit.request)?;
            machine.handle_sent(self.runtime.now(), transmit.sent);
            self.unflushed = true;
        }
        if self.unflushed {
            if let Poll::Ready(flushed) = self.outbound.as_mut().poll_flush(cx) {
                self.unflushed = false;
                flushed?;
            }
        }
        Ok(())
    }

    /// Reads a response. Returns the reason if the stream is over.
    fn read<V, E>(&mut self, cx: &mut Context<'_>, machine: &mut impl Machine<V>) -> Poll<Option<Reason<E, O::Error>>>
    where
        V: Variant<Request = Q>,
        I: Stream<Item = Result<V::Response, E>>,
    {
        self.inbound.as_mut().poll_next(cx).map(|next| match next {
            None => Some(Reason::Finished),
            Some(Err(error)) => Some(Reason::Inbound(error)),
            Some(Ok(response)) => match machine.handle_response(self.runtime.now(), response) {
                Ok(()) => {
                    self.answered = true;
                    None
                }
                Err(Error::Peer(misbehaved)) => Some(Reason::Refused(misbehaved)),
                Err(Error::Caller(misuse)) => Some(Reason::Misused(misuse)),
            },
        })
    }
}
