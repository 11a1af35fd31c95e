//! The bare server: hyper's HTTP/2, a body of shared pages, requests that are received and dropped.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use super::frames::Frames;

/// A first request of more bytes has versions: its client needs the last change only.
const RECONNECT: usize = 1024;

/// The state that all streams share.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<State>>);

struct State {
    round: u64,
    all: Frames,
    change: Frames,
    waiting: Vec<Waker>,
}

impl Shared {
    pub(super) fn new(all: Frames) -> Self {
        Self(Arc::new(Mutex::new(State { round: 0, change: all.clone(), all, waiting: Vec::new() })))
    }

    /// Sends a response on all streams.
    pub(super) fn change(&self, change: Frames) {
        let mut state = self.lock();
        state.round += 1;
        state.change = change;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Answers a call, whose requests are received and dropped.
    pub(super) fn answer<B>(&self, requests: B) -> Response<Pages<B>> {
        let mut response = Response::new(Pages::new(self.clone(), requests));
        response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
        response
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts connections for ever.
pub(super) async fn serve(listener: TcpListener, shared: Shared) -> std::io::Result<()> {
    loop {
        let (connection, _) = listener.accept().await?;
        connection.set_nodelay(true)?;
        let shared = shared.clone();
        let service = service_fn(move |request: http::Request<Incoming>| {
            let response = shared.answer(request.into_body());
            async move { Ok::<_, Infallible>(response) }
        });
        let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        // A client that leaves is an error of its connection.
        tokio::spawn(async move { _ = serving.serve_connection(TokioIo::new(connection), service).await });
    }
}

pub(super) struct Pages<B> {
    shared: Shared,
    requests: B,
    first: First,
    /// The last change that was sent; `None` before the first response.
    sent: Option<u64>,
    /// The round in whose list of wakers the stream is.
    waits: Option<u64>,
    frames: Option<(Frames, usize)>,
    ended: bool,
}

/// How much of the first request has arrived.
struct First {
    prefix: [u8; 5],
    read: usize,
}

impl First {
    fn read(&mut self, mut data: Bytes) {
        if self.read < 5 {
            let count = data.len().min(5 - self.read);
            data.copy_to_slice(&mut self.prefix[self.read..self.read + count]);
            self.read += count;
        }
        self.read += data.len();
    }

    fn len(&self) -> usize {
        let [_, len @ ..] = self.prefix;
        u32::from_be_bytes(len) as usize
    }

    fn is_complete(&self) -> bool {
        self.read >= 5 && self.read - 5 >= self.len()
    }
}

impl<B> Pages<B> {
    fn new(shared: Shared, requests: B) -> Self {
        let first = First { prefix: [0; 5], read: 0 };
        Self { shared, requests, first, sent: None, waits: None, frames: None, ended: false }
    }

    /// Returns the next page of the current response.
    fn next(&mut self) -> Option<Bytes> {
        let (frames, place) = self.frames.as_mut()?;
        let page = frames[*place].clone();
        *place += 1;
        if *place == frames.len() {
            self.frames = None;
        }
        Some(page)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Pages<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        loop {
            if let Some(page) = this.next() {
                return Poll::Ready(Some(Ok(Frame::data(page))));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            while let Poll::Ready(request) = Pin::new(&mut this.requests).poll_frame(cx) {
                match request {
                    Some(Ok(frame)) => {
                        if let (None, Ok(data)) = (this.sent, frame.into_data()) {
                            this.first.read(data);
                        }
                    }
                    _ => {
                        this.ended = true;
                        let trailers = HeaderMap::from_iter(
                            [("grpc-status".parse().ok(), HeaderValue::from(0))]
                                .into_iter()
                                .filter_map(|(name, value)| Some((name?, value))),
                        );
                        return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                    }
                }
            }
            if !this.first.is_complete() {
                return Poll::Pending;
            }
            let mut state = this.shared.lock();
            let frames = match this.sent {
                Some(sent) if sent == state.round => {
                    if this.waits != Some(sent) {
                        this.waits = Some(sent);
                        state.waiting.push(cx.waker().clone());
                    }
                    return Poll::Pending;
                }
                None if this.first.len() <= RECONNECT => state.all.clone(),
                _ => state.change.clone(),
            };
            this.sent = Some(state.round);
            this.frames = Some((frames, 0));
        }
    }
}
