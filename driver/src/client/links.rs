//! The streams of several servers, in one task.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream as Inbound;
use futures_sink::Sink;
use xds_machine::Instant;
use xds_machine::client::Variant;
use xds_machine::servers::{Connect, ServerId, Servers, Stream};

use super::ended::{Ended, Reason};
use super::link::Link;
use super::machine::OfServers;
use crate::Runtime;
use crate::timer::Timer;

/// Opens streams to servers.
pub trait Connector<V: Variant> {
    /// The responses of a stream.
    type Inbound: Inbound<Item = Result<V::Response, Self::Error>>;
    /// The requests of a stream.
    type Outbound: Sink<V::Request, Error = Self::SinkError>;
    /// The attempt to open a stream, up to the moment when requests can be sent. Response headers must not be waited
    /// for: many servers send them only with the first response.
    type Connecting: Future<Output = Result<(Self::Inbound, Self::Outbound), Self::Error>>;
    /// The reason why a stream could not be opened, or failed.
    type Error;
    /// The reason why requests can't be sent.
    type SinkError;

    /// Begins to open a stream to a server. A dropped attempt is abandoned.
    fn connect(&mut self, server: ServerId) -> Self::Connecting;

    /// Returns any evenly distributed number, for the jitter of the backoff.
    fn random(&mut self) -> u64;
}

/// What happened on the streams. More kinds may be added.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event<I, O> {
    /// A server sent a response: there may be actions.
    Response(ServerId),
    /// A time-out passed: there may be actions.
    Timeout,
    /// A stream is open, and requests are sent. Whether the server works is known with its first response.
    Opened(ServerId),
    /// A stream ended, or could not be opened.
    Ended {
        /// The server that the stream was to.
        server: ServerId,
        /// The reason.
        ended: Ended<I, O>,
        /// When the next stream to the server may be opened; `None` if the server is not used any more.
        again: Option<Instant>,
    },
    /// The machine closed a stream: its server is not used any more, or has to be told anew what the client has.
    Closed(ServerId),
}

/// The state of the stream to a server.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LinkState {
    /// The stream is being opened.
    Connecting,
    /// The stream is open, and no response came on it yet.
    Open,
    /// A response came on the stream.
    Answered,
}

/// Drives the streams of [`Servers`]: opens and closes them, waits for backoffs and time-outs, moves messages.
///
/// Actions and verdicts are the owner's: poll, handle the actions of the machine, poll again.
pub struct Links<V: Variant, C: Connector<V>, R: Runtime> {
    connector: C,
    runtime: R,
    slots: Vec<(Stream, Slot<V, C, R>)>,
    timer: Timer<R>,
    reads: bool,
}

enum Slot<V: Variant, C: Connector<V>, R: Runtime> {
    Connecting(Pin<Box<C::Connecting>>),
    Up(Link<C::Inbound, C::Outbound, V::Request, R>),
}

impl<V: Variant, C: Connector<V>, R: Runtime> fmt::Debug for Links<V, C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("streams", &self.slots.len()).field("reads", &self.reads).finish_non_exhaustive()
    }
}

impl<V: Variant, C: Connector<V>, R: Runtime> Links<V, C, R> {
    /// Makes the links of a client that has no stream yet.
    pub fn new(connector: C, runtime: R) -> Self {
        Self { connector, runtime, slots: Vec::new(), timer: Timer::new(), reads: true }
    }

    /// Sets whether responses are read. An owner that can't take more actions stops reading, and flow control holds
    /// the servers back.
    pub fn set_reads(&mut self, reads: bool) {
        self.reads = reads;
    }

    /// Returns the state of the stream to a server; `None` if there is none.
    pub fn state(&self, server: ServerId) -> Option<LinkState> {
        let (_, slot) = self.slots.iter().find(|(stream, _)| stream.server() == server)?;
        Some(match slot {
            Slot::Connecting(_) => LinkState::Connecting,
            Slot::Up(link) if link.answered() => LinkState::Answered,
            Slot::Up(_) => LinkState::Open,
        })
    }

    /// Does all that can be done. `Pending` means that nothing is left to do and the task will be woken.
    ///
    /// After any call to the machine, poll again. After `Ready`, handle the actions of the machine first.
    pub fn poll(&mut self, cx: &mut Context<'_>, servers: &mut Servers<V>) -> Poll<Event<C::Error, C::SinkError>> {
        while let Some(connect) = servers.poll_connect(self.runtime.now()) {
            match connect {
                Connect::Open(stream) => {
                    let connecting = Box::pin(self.connector.connect(stream.server()));
                    self.slots.push((stream, Slot::Connecting(connecting)));
                }
                Connect::Close(stream) => {
                    self.slots.retain(|(of, _)| *of != stream);
                    return Poll::Ready(Event::Closed(stream.server()));
                }
            }
        }
        for at in 0..self.slots.len() {
            let Poll::Ready(event) = self.poll_slot(cx, servers, at) else { continue };
            // The streams take turns. (The last one may just have ended.)
            if !self.slots.is_empty() {
                self.slots.rotate_left(1);
            }
            return Poll::Ready(event);
        }
        if self.timer.poll(cx, &self.runtime, servers.poll_timeout()).is_ready() {
            servers.handle_timeout(self.runtime.now());
            return Poll::Ready(Event::Timeout);
        }
        Poll::Pending
    }

    /// Ends all streams from this side, as [`Link::poll_finish`] does, and abandons attempts to open one. Returns `Ready`
    /// when the servers have ended theirs. The owner limits the wait. After this the links are only dropped.
    pub fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.slots.retain_mut(|(_, slot)| match slot {
            Slot::Connecting(_) => false,
            Slot::Up(link) => link.poll_finish(cx).is_pending(),
        });
        if self.slots.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_slot(
        &mut self,
        cx: &mut Context<'_>,
        servers: &mut Servers<V>,
        at: usize,
    ) -> Poll<Event<C::Error, C::SinkError>> {
        let (stream, slot) = &mut self.slots[at];
        let stream = *stream;
        let ended = match slot {
            Slot::Connecting(connecting) => match connecting.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok((inbound, outbound))) => {
                    *slot = Slot::Up(Link::new(inbound, outbound, self.runtime.clone()));
                    servers.handle_open(stream);
                    return Poll::Ready(Event::Opened(stream.server()));
                }
                Poll::Ready(Err(error)) => Ended { reason: Reason::Inbound(error), answered: false },
            },
            Slot::Up(link) => {
                link.set_reads(self.reads);
                match link.poll(cx, &mut OfServers { servers, stream }) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(())) => return Poll::Ready(Event::Response(stream.server())),
                    Poll::Ready(Err(ended)) => ended,
                }
            }
        };
        self.slots.swap_remove(at);
        servers.handle_close(self.runtime.now(), stream, self.connector.random());
        let again = servers.next_attempt(stream.server());
        Poll::Ready(Event::Ended { server: stream.server(), ended, again })
    }
}
