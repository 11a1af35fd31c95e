//! The responses of a stream, out of the body of an HTTP/2 response.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, TE};
use tonic::Status;
use tonic::body::Body;

use super::connect::{Answer, Call, StreamError};
use super::outbound::{Requests, requests};
use crate::messages::{Codec, Frame, Messages, ReadError};
use crate::status::to_tonic;

/// The stream of a call's responses. The response headers may come long after the first requests.
pub(super) struct Responses<V> {
    state: State,
    messages: Messages,
    /// Called when headers have arrived that begin a stream.
    opened: Option<Box<dyn FnOnce() + Send>>,
    variant: PhantomData<fn() -> V>,
}

enum State {
    Headers(Pin<Box<dyn Future<Output = Result<Answer, StreamError>> + Send>>),
    Body(Pin<Box<Body>>, #[allow(dead_code, reason = "lives as long as the stream")] Box<dyn Any + Send>),
    Over,
}

/// Makes the call of a method. Returns the two halves of the stream.
pub(super) fn open<V: Codec>(
    call: Call,
    path: http::uri::PathAndQuery,
    limit: usize,
    opened: impl FnOnce() + Send + 'static,
) -> (Responses<V>, Requests<V>) {
    let (sink, body) = requests();
    let mut request = http::Request::new(Body::new(body));
    *request.method_mut() = http::Method::POST;
    *request.version_mut() = http::Version::HTTP_2;
    *request.uri_mut() = http::Uri::from(path);
    request.headers_mut().insert(TE, HeaderValue::from_static("trailers"));
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    let state = State::Headers(call(request));
    let (messages, opened) = (Messages::new("response", limit), Some(Box::new(opened) as Box<dyn FnOnce() + Send>));
    (Responses { state, messages, opened, variant: PhantomData }, sink)
}

impl<V: Codec> Stream for Responses<V> {
    type Item = Result<V::Response, StreamError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.poll_response(cx));
        if !matches!(next, Some(Ok(_))) {
            self.state = State::Over;
        }
        Poll::Ready(next)
    }
}

impl<V: Codec> Responses<V> {
    fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<V::Response, StreamError>>> {
        loop {
            match &mut self.state {
                State::Headers(answer) => {
                    let (response, connection) = ready!(answer.as_mut().poll(cx))?;
                    if let Some(end) = end_in_headers(&response) {
                        return Poll::Ready(end.err().map(|status| Err(StreamError::Status(status))));
                    }
                    self.opened.take().into_iter().for_each(|opened| opened());
                    self.state = State::Body(Box::pin(response.into_body()), connection);
                }
                State::Body(body, _) => {
                    let next = match ready!(self.messages.poll_message(body.as_mut(), cx)) {
                        Ok(Frame::Message(bytes)) => {
                            let response = V::decode_response(bytes);
                            Some(response.map_err(|error| Status::invalid_argument(error.to_string())))
                        }
                        Ok(Frame::End { trailers, whole }) => end(trailers.as_ref(), whole).err().map(Err),
                        Err(ReadError::Body(status)) => Some(Err(status)),
                        Err(ReadError::Message(status)) => Some(Err(to_tonic(status))),
                    };
                    return Poll::Ready(next.map(|next| next.map_err(StreamError::Status)));
                }
                State::Over => return Poll::Ready(None),
            }
        }
    }
}

/// Returns how a stream ended: with its trailers, or without them.
fn end(trailers: Option<&http::HeaderMap>, whole: Result<(), xds_machine::Status>) -> Result<(), Status> {
    match trailers.and_then(Status::from_header_map) {
        // An error status says more than the fact that a message is incomplete.
        Some(status) if status.code() != tonic::Code::Ok => Err(status),
        Some(_) => whole.map_err(to_tonic),
        None => whole.map_err(to_tonic).and(Err(Status::unknown("the stream ended without a status"))),
    }
}

/// Returns the status of a call that ends with its headers.
fn end_in_headers(response: &http::Response<Body>) -> Option<Result<(), Status>> {
    if let Some(status) = Status::from_header_map(response.headers()) {
        return Some(if status.code() == tonic::Code::Ok { Ok(()) } else { Err(status) });
    }
    // As in gRPC's http-grpc-status-mapping.md.
    let code = match response.status() {
        StatusCode::OK => return None,
        StatusCode::BAD_REQUEST => tonic::Code::Internal,
        StatusCode::UNAUTHORIZED => tonic::Code::Unauthenticated,
        StatusCode::FORBIDDEN => tonic::Code::PermissionDenied,
        StatusCode::NOT_FOUND => tonic::Code::Unimplemented,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => tonic::Code::Unavailable,
        _ => tonic::Code::Unknown,
    };
    Some(Err(Status::new(code, format!("HTTP status {} instead of a gRPC status", response.status()))))
}
