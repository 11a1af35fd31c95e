//! The body of a response. The body owns the stream, so a stream runs on the task that sends the body, and on no other.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use http_body::{Body, Frame};
use tonic::Status;
use xds_machine::proto::Wire;
use xds_machine::server::Variant;
use xds_machine_driver::server::{Responses, Store};

use super::frames;
use super::requests::Requests;
use super::session::Session;
use crate::TokioRuntime;

pub(super) type Answers<V, B, S> = Responses<V, Requests<B, V>, Session<S>, TokioRuntime>;

/// The responses of a stream as frames, then the status as trailers. HTTP/2 polls the body only while the client's
/// window has room: a client that does not read holds the frames of one response, which are mostly pages that all
/// streams share.
pub(super) struct ResponseBody<V: Variant, B, S: Store> {
    /// `None` once the status is sent.
    responses: Option<Answers<V, B, S>>,
    /// The rest of the last response.
    frames: VecDeque<Bytes>,
}

impl<V: Variant, B, S: Store> ResponseBody<V, B, S> {
    pub(super) fn new(responses: Answers<V, B, S>) -> Self {
        Self { responses: Some(responses), frames: VecDeque::new() }
    }
}

impl<V, B, S> Body for ResponseBody<V, B, S>
where
    V: Wire + Variant,
    B: Body + Unpin,
    S: Store,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        loop {
            if let Some(frame) = this.frames.pop_front() {
                if this.frames.is_empty() {
                    this.frames = VecDeque::new(); // an idle stream holds no room for frames
                }
                return Poll::Ready(Some(Ok(Frame::data(frame))));
            }
            let Some(responses) = &mut this.responses else { return Poll::Ready(None) };
            let status = match ready!(Pin::new(&mut *responses).poll_next(cx)) {
                Some(response) => match response.and_then(|response| frames::of(&response)) {
                    Ok(frames) => {
                        this.frames = frames;
                        continue;
                    }
                    Err(status) => Some(status),
                },
                None => None,
            };
            let status = responses.handler_mut().end(status);
            this.responses = None;
            let mut trailers = HeaderMap::new();
            status.add_header(&mut trailers)?;
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
    }
}
