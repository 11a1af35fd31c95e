//! The requests of a stream, read from the body of a gRPC call.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use http_body::Body;
use xds_machine::Status;

use crate::messages::{Codec, Frame, Messages, ReadError};

/// A stream of decoded requests. The bytes of a request are released once it is decoded.
pub(super) struct Requests<B, V> {
    body: B,
    messages: Messages,
    variant: PhantomData<fn() -> V>,
}

impl<B, V> Requests<B, V> {
    pub(super) fn new(body: B, limit: usize) -> Self {
        Self { body, messages: Messages::new("request", limit), variant: PhantomData }
    }
}

/// Returns the status of a stream whose client has left without closing it.
pub(super) fn gone() -> Status {
    Status { code: tonic::Code::Cancelled as i32, message: "the client is gone".into() }
}

impl<B, V> Stream for Requests<B, V>
where
    B: Body + Unpin,
    V: Codec,
{
    type Item = Result<V::Request, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { body, messages, .. } = &mut *self;
        Poll::Ready(match ready!(messages.poll_message(Pin::new(body), cx)) {
            Ok(Frame::Message(message)) => Some(V::decode_request(message).map_err(Status::from)),
            // Trailers of a request mean nothing in gRPC.
            Ok(Frame::End { whole, .. }) => whole.err().map(Err),
            Err(ReadError::Message(status)) => Some(Err(status)),
            Err(ReadError::Body(_)) => Some(Err(gone())),
        })
    }
}
