//! The calls of CSDS: each request is answered once, in order, and nothing is sent unasked (R-CSDS-16).

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response};
use http_body::Frame;
use tonic::body::Body;
use tonic::metadata::GRPC_CONTENT_TYPE;
use xds_machine::csds::Request;
use xds_machine::proto::client_status::decode_request;
use xds_machine::service::ClientStatusMethod;
use xds_machine::{Code, Status};

use crate::messages::{Frame as Message, Messages, ReadError, prefix};
use crate::status::to_tonic;

/// The limit on the size of a request: a request may have the node of its sender, which is 80 KB long in an Envoy.
const REQUEST_BYTES: usize = 1 << 20;

/// The default of the limits on the size of a response.
pub(crate) const RESPONSE_BYTES: usize = 64 << 20;

type Answering = Pin<Box<dyn Future<Output = Result<Bytes, Status>> + Send>>;

/// Answers requests for the status of clients.
pub(crate) trait Answer: Send + Unpin + 'static {
    /// Returns the encoded response.
    fn answer(&mut self, request: Request) -> Answering;

    /// Returns the status to end the call with, once the call has to end.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Status>;
}

/// Returns the response to a call.
///
/// # Errors
///
/// If the requests are compressed.
pub(crate) fn call<B>(
    method: ClientStatusMethod,
    headers: &HeaderMap,
    requests: B,
    answer: impl Answer,
) -> Result<Response<Body>, tonic::Status>
where
    B: http_body::Body<Error: Send> + Send + Unpin + 'static,
{
    check_encoding(headers)?;
    let messages = Messages::new("request", REQUEST_BYTES);
    let (answering, frames, last) = (None, VecDeque::new(), None);
    let once = method == ClientStatusMethod::Fetch;
    let answers = Answers { requests: Some(requests), messages, answer, answering, frames, once, last };
    let mut response = Response::new(Body::new(answers));
    response.headers_mut().insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
    Ok(response)
}

/// Refuses compressed requests, as a tonic server without compression does.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), tonic::Status> {
    match headers.get("grpc-encoding").map(HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(()),
        Some(other) => {
            let other = String::from_utf8_lossy(other);
            let mut status =
                tonic::Status::unimplemented(format!("requests compressed with {other} are not supported"));
            let identity = tonic::metadata::MetadataValue::from_static("identity");
            status.metadata_mut().insert("grpc-accept-encoding", identity);
            Err(status)
        }
    }
}

/// The body of a response: requests are read when the transport has room for an answer.
struct Answers<B, A> {
    /// `None` once the call has ended.
    requests: Option<B>,
    messages: Messages,
    answer: A,
    answering: Option<Answering>,
    frames: VecDeque<Bytes>,
    /// Whether one answer ends the call.
    once: bool,
    /// The status to end with, once the frames are sent.
    last: Option<Status>,
}

impl<B: http_body::Body + Unpin, A: Answer> Answers<B, A> {
    /// Waits for the next answer; `Err` is the status to end with.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        loop {
            if let Some(answering) = &mut self.answering {
                let answered = ready!(answering.as_mut().poll(cx));
                self.answering = None;
                let bytes = answered?;
                let prefix = prefix(bytes.len()).ok_or_else(|| {
                    Status::new(
                        Code::ResourceExhausted,
                        format!("a status of {} bytes, limit {}", bytes.len(), u32::MAX),
                    )
                })?;
                self.frames.extend([prefix.to_vec().into(), bytes]);
                self.last = self.once.then(ok);
                return Poll::Ready(Ok(()));
            }
            if let Poll::Ready(status) = self.answer.poll_end(cx) {
                return Poll::Ready(Err(status));
            }
            let Some(requests) = &mut self.requests else { return Poll::Ready(Err(ok())) };
            let request = match ready!(self.messages.poll_message(Pin::new(requests), cx)) {
                Ok(Message::Message(bytes)) => decode_request(bytes)?,
                Ok(Message::End { whole, .. }) => {
                    whole?;
                    let none = || Status::new(Code::InvalidArgument, "the call has no request");
                    return Poll::Ready(Err(if self.once { none() } else { ok() }));
                }
                Err(ReadError::Message(status)) => return Poll::Ready(Err(status)),
                Err(ReadError::Body(_)) => {
                    let gone = Status { code: tonic::Code::Cancelled as i32, message: "the client is gone".into() };
                    return Poll::Ready(Err(gone));
                }
            };
            self.answering = Some(self.answer.answer(request));
        }
    }
}

fn ok() -> Status {
    Status { code: 0, message: String::new() }
}

impl<B: http_body::Body + Unpin, A: Answer> http_body::Body for Answers<B, A> {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        let this = &mut *self;
        loop {
            if let Some(frame) = this.frames.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(frame))));
            }
            if this.requests.is_none() {
                return Poll::Ready(None);
            }
            let status = match this.last.take() {
                Some(last) => last,
                None => match ready!(this.poll_answer(cx)) {
                    Ok(()) => continue,
                    Err(status) => status,
                },
            };
            (this.requests, this.answering) = (None, None);
            let mut trailers = HeaderMap::new();
            to_tonic(status).add_header(&mut trailers)?;
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
    }
}
