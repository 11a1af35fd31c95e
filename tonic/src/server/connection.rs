//! Accepted connections that a drain can end: HTTP/2 does not poll a response whose client does not read, so only the
//! connection itself can notice that the limit has passed.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;
use xds_machine_driver::server::{Waiter, Wakers};

/// The end of the connections of a control plane.
#[derive(Debug, Default)]
pub(super) struct End {
    has_come: AtomicBool,
    /// Wakes the connections when the end has come.
    connections: Wakers,
    open: AtomicUsize,
    /// Wakes the tasks that wait until connections have closed.
    closed: Wakers,
}

impl End {
    /// Makes the connections fail.
    pub(super) fn come(&self) {
        self.has_come.store(true, Ordering::Release);
        self.connections.wake_all();
    }

    /// Waits until no connection is open.
    pub(super) fn all_closed(self: Arc<Self>) -> impl Future<Output = ()> {
        let mut waiter = Waiter::new();
        poll_fn(move |cx| {
            waiter.wait(&self.closed, cx.waker());
            if self.open.load(Ordering::Acquire) == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
    }
}

/// A connection that fails once the limit of a [drain](super::ControlPlane::drain) has passed, which ends the streams
/// whose clients do not read: see [`ControlPlane::incoming`](super::ControlPlane::incoming).
pub struct Connection<IO> {
    io: IO,
    end: Arc<End>,
    reading: Waiter,
    writing: Waiter,
}

impl<IO> Connection<IO> {
    pub(super) fn new(io: IO, end: Arc<End>) -> Self {
        end.open.fetch_add(1, Ordering::AcqRel);
        Self { io, end, reading: Waiter::new(), writing: Waiter::new() }
    }

    /// Returns the connection itself.
    pub fn get_ref(&self) -> &IO {
        &self.io
    }

    /// Returns an error if the end has come; otherwise the task is woken when it comes.
    fn check(&mut self, cx: &Context<'_>, is_read: bool) -> io::Result<()> {
        let waiter = if is_read { &mut self.reading } else { &mut self.writing };
        waiter.wait(&self.end.connections, cx.waker());
        if self.end.has_come.load(Ordering::Acquire) {
            let message = "the control plane shut down, and the client did not leave in time";
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        Ok(())
    }
}

impl<IO> Drop for Connection<IO> {
    fn drop(&mut self) {
        self.end.open.fetch_sub(1, Ordering::AcqRel);
        self.end.closed.wake_all();
    }
}

impl<IO: fmt::Debug> fmt::Debug for Connection<IO> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("io", &self.io).finish_non_exhaustive()
    }
}

impl<IO: Connected> Connected for Connection<IO> {
    type ConnectInfo = IO::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.io.connect_info()
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Connection<IO> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(cx, true)?;
        Pin::new(&mut self.io).poll_read(cx, to)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Connection<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx, false)?;
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(cx, false)?;
        Pin::new(&mut self.io).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx, false)?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx, false)?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// The stream of accepted [`Connection`]s: see [`ControlPlane::incoming`](super::ControlPlane::incoming).
pub struct Incoming<I> {
    accepted: I,
    end: Arc<End>,
}

impl<I> Incoming<I> {
    pub(super) fn new(accepted: I, end: Arc<End>) -> Self {
        Self { accepted, end }
    }
}

impl<I: fmt::Debug> fmt::Debug for Incoming<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("accepted", &self.accepted).finish_non_exhaustive()
    }
}

impl<I, IO, E> Stream for Incoming<I>
where
    I: Stream<Item = Result<IO, E>> + Unpin,
{
    type Item = Result<Connection<IO>, E>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let end = self.end.clone();
        Pin::new(&mut self.accepted).poll_next(cx).map(|next| next.map(|io| io.map(|io| Connection::new(io, end))))
    }
}
