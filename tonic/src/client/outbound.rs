//! The requests of a stream, from the machine into the body of an HTTP/2 request.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{BufMut, Bytes, BytesMut};
use futures_sink::Sink;
use http_body::{Body, Frame};
use tonic::Status;

use crate::messages::{Codec, PREFIX, prefix};

/// A request up to this size is sent in one piece with its prefix.
const SMALL: usize = 1 << 12;

/// A rendezvous between the machine and HTTP/2: a request is composed at the moment when HTTP/2 wants to send one.
#[derive(Default)]
struct Meeting {
    /// The body waits for a request.
    wanted: bool,
    pieces: [Option<Bytes>; 2],
    /// The sink was dropped or closed: the body ends.
    finished: bool,
    /// The body was dropped: nothing can be sent any more.
    gone: bool,
    sink: Option<Waker>,
    body: Option<Waker>,
}

type Shared = Arc<Mutex<Meeting>>;

fn lock(shared: &Shared) -> MutexGuard<'_, Meeting> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sink of a stream's requests.
pub(super) struct Requests<V>(Shared, PhantomData<fn() -> V>);

/// The body of the HTTP/2 request.
pub(super) struct RequestBody(Shared);

/// The error of a sink whose stream can't send any more. The stream's status says why.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum SendError {
    #[error("the connection takes no more requests")]
    Gone,
    #[error("a request of {0} bytes is too long for gRPC")]
    TooLong(usize),
}

/// Returns both ends.
pub(super) fn requests<V>() -> (Requests<V>, RequestBody) {
    let shared = Shared::default();
    (Requests(shared.clone(), PhantomData), RequestBody(shared))
}

impl<V: Codec> Sink<V::Request> for Requests<V> {
    type Error = SendError;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let mut meeting = lock(&self.0);
        if meeting.gone {
            return Poll::Ready(Err(SendError::Gone));
        }
        if meeting.wanted {
            return Poll::Ready(Ok(()));
        }
        meeting.sink = Some(cx.waker().clone());
        Poll::Pending
    }

    fn start_send(self: Pin<&mut Self>, request: V::Request) -> Result<(), SendError> {
        let message = V::encode_request(&request);
        let prefix = prefix(message.len()).ok_or(SendError::TooLong(message.len()))?;
        let small = message.len() <= SMALL;
        let mut head = BytesMut::with_capacity(PREFIX + if small { message.len() } else { 0 });
        head.put_slice(&prefix);
        let rest = if small {
            head.put_slice(&message);
            None
        } else {
            Some(message.into())
        };
        let mut meeting = lock(&self.0);
        meeting.pieces = [Some(head.freeze()), rest];
        meeting.wanted = false;
        meeting.body.take().into_iter().for_each(Waker::wake);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        // Only a request that the body waits for is sent, so nothing has to be flushed.
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.finish();
        Poll::Ready(Ok(()))
    }
}

impl<V> Requests<V> {
    /// Returns whether the last request is still here: HTTP/2 has not taken it.
    pub(super) fn is_untaken(&self) -> bool {
        lock(&self.0).pieces[0].is_some()
    }

    fn finish(&self) {
        let mut meeting = lock(&self.0);
        meeting.finished = true;
        meeting.body.take().into_iter().for_each(Waker::wake);
    }
}

impl<V> Drop for Requests<V> {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let mut meeting = lock(&self.0);
        if let Some(piece) = meeting.pieces.iter_mut().find_map(Option::take) {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if meeting.finished {
            return Poll::Ready(None);
        }
        meeting.wanted = true;
        meeting.body = Some(cx.waker().clone());
        meeting.sink.take().into_iter().for_each(Waker::wake);
        Poll::Pending
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let mut meeting = lock(&self.0);
        meeting.gone = true;
        meeting.sink.take().into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestBody")
    }
}
