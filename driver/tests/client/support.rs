//! A clock that a test advances, and transports in memory.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_core::Stream;
use futures_sink::Sink;
use xds_machine::Instant;
use xds_machine::proto::{DecodeError, Wire};
use xds_machine_driver::Runtime;
use xds_machine_testing::driver::{Pipe, Received};

/// A clock that stands still until the test advances it.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<Mutex<(Instant, Vec<Waker>)>>);

impl Clock {
    pub(crate) fn advance(&self, by: Duration) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = state.0 + by;
        state.1.drain(..).for_each(Waker::wake);
    }
}

pub(crate) struct Sleep(Clock, Instant);

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.0 >= self.1 {
            return Poll::Ready(());
        }
        state.1.push(cx.waker().clone());
        Poll::Pending
    }
}

impl Runtime for Clock {
    type Sleep = Sleep;

    fn now(&self) -> Instant {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    fn sleep_until(&self, due: Instant) -> Sleep {
        Sleep(self.clone(), due)
    }
}

/// The error of a transport in memory.
#[derive(Debug)]
pub(crate) enum Broken {
    Closed,
    Garbage(#[allow(dead_code)] DecodeError),
    Away,
}

/// The responses that arrive on a pipe.
pub(crate) struct Inbound<V>(Pipe, PhantomData<fn() -> V>);

impl<V: Wire> Stream for Inbound<V> {
    type Item = Result<V::Response, Broken>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|received| match received {
            Received::Message(bytes) => Some(V::decode_response(bytes).map_err(Broken::Garbage)),
            _ => None,
        })
    }
}

/// The requests that leave on a pipe. The pipe is closed with its sink.
pub(crate) struct Outbound<V>(Pipe, PhantomData<fn() -> V>);

impl<V: Wire> Sink<V::Request> for Outbound<V> {
    type Error = Broken;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, request: V::Request) -> Result<(), Broken> {
        if self.0.send(V::encode_request(&request)) { Ok(()) } else { Err(Broken::Closed) }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }
}

impl<V> Drop for Outbound<V> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Returns the two halves of a client's end.
pub(crate) fn halves<V: Wire>(pipe: Pipe) -> (Inbound<V>, Outbound<V>) {
    (Inbound(pipe.clone(), PhantomData), Outbound(pipe, PhantomData))
}
