//! A server of the delta variant that a test plays by hand, without HTTP/2: a tower service.

use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::{Code, Status};
use xds_machine::message::{Any, Resource, delta};
use xds_machine::proto;
use xds_machine_tonic::client::Connect;

pub(crate) struct Plane {
    up: Arc<AtomicBool>,
    calls: mpsc::UnboundedSender<Peer>,
    streams: mpsc::UnboundedReceiver<Peer>,
}

impl Plane {
    pub(crate) fn new() -> Self {
        let (calls, streams) = mpsc::unbounded_channel();
        Self { up: Arc::new(AtomicBool::new(true)), calls, streams }
    }

    pub(crate) fn set_up(&self, up: bool) {
        self.up.store(up, Ordering::Relaxed);
    }

    pub(crate) fn connector(&self) -> impl Connect + use<> {
        let (up, calls) = (self.up.clone(), self.calls.clone());
        move || {
            let up = up.load(Ordering::Relaxed);
            ready(if up { Ok(Service(calls.clone())) } else { Err("nobody listens") })
        }
    }

    /// Returns the next stream, with its first request.
    pub(crate) async fn accept(&mut self) -> (Peer, delta::Request) {
        let mut peer = self.stream().await.expect("a stream");
        let request = peer.request().await;
        (peer, request)
    }

    /// Returns the next stream, or `None` if none comes within an hour.
    pub(crate) async fn stream(&mut self) -> Option<Peer> {
        timeout(Duration::from_secs(3600), self.streams.recv()).await.ok().flatten()
    }
}

/// The server's end of a stream.
pub(crate) struct Peer {
    pub(crate) path: String,
    requests: Body,
    received: BytesMut,
    frames: mpsc::Sender<Result<Frame<Bytes>, Status>>,
}

/// A resource: its name and its text.
pub(crate) type Content<'a> = (&'a str, &'a str);

impl Peer {
    /// Returns the next request; panics if none comes within an hour.
    pub(crate) async fn request(&mut self) -> delta::Request {
        self.next().await.expect("a request, and not the end")
    }

    /// Returns the next request, or `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<delta::Request> {
        loop {
            if let Some((prefix, rest)) = self.received.split_first_chunk::<5>() {
                let len = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
                if rest.len() >= len {
                    let message = self.received.split_to(5 + len).freeze().slice(5..);
                    return Some(proto::delta::decode_request(message).expect("a request"));
                }
            }
            let frame = timeout(Duration::from_secs(3600), self.requests.frame()).await.expect("a frame");
            self.received.put(frame?.expect("no error").into_data().expect("data"));
        }
    }

    /// Asserts that nothing is sent for an hour.
    pub(crate) async fn hears_nothing(&mut self) {
        assert!(timeout(Duration::from_secs(3600), self.requests.frame()).await.is_err());
    }

    pub(crate) async fn send(&self, type_url: &str, nonce: &str, resources: &[Content<'_>], removed: &[&str]) {
        let resource = |(name, text): &Content<'_>| Resource {
            name: (*name).into(),
            version: nonce.into(),
            aliases: vec![],
            body: Some(Any { type_url: type_url.into(), value: Bytes::copy_from_slice(text.as_bytes()) }),
            ttl: None,
        };
        let response = delta::Response {
            system_version: nonce.into(),
            resources: resources.iter().map(resource).collect(),
            removed: removed.iter().map(|&name| name.into()).collect(),
            type_url: type_url.into(),
            nonce: nonce.into(),
            control_plane: String::new(),
            errors: vec![],
        };
        self.send_bytes(&proto::delta::encode_response(&response)).await;
    }

    pub(crate) async fn send_bytes(&self, message: &[u8]) {
        let mut frame = BytesMut::new();
        frame.put_u8(0);
        frame.put_u32(u32::try_from(message.len()).expect("it fits"));
        frame.put_slice(message);
        self.frames.send(Ok(Frame::data(frame.freeze()))).await.expect("the stream lives");
    }

    /// Ends the stream with a status.
    pub(crate) async fn end(self, code: Code, message: &str) {
        let mut trailers = http::HeaderMap::new();
        Status::new(code, message).add_header(&mut trailers).expect("it fits");
        self.frames.send(Ok(Frame::trailers(trailers))).await.expect("the stream lives");
    }
}

#[derive(Clone)]
struct Service(mpsc::UnboundedSender<Peer>);

impl tower_service::Service<http::Request<Body>> for Service {
    type Response = http::Response<Frames>;
    type Error = Status;
    type Future = Ready<Result<Self::Response, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (frames, body) = mpsc::channel(16);
        let path = request.uri().path().to_string();
        let peer = Peer { path, requests: request.into_body(), received: BytesMut::new(), frames };
        ready(match self.0.send(peer) {
            Ok(()) => Ok(http::Response::new(Frames(body))),
            Err(_) => Err(Status::unavailable("the test is over")),
        })
    }
}

/// The body of a response.
struct Frames(mpsc::Receiver<Result<Frame<Bytes>, Status>>);

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.0.poll_recv(cx)
    }
}
