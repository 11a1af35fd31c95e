//! The kit as a server: gRPC on plain HTTP/2, for as many connections and streams as the client opens.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Response};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use xds_machine::service::{Method, Variant};

use super::peer::{End, Event};
use crate::message::Request;
use crate::net::stream::{frame, next_message, write};
use crate::run::StreamId;

/// An action of the kit on a stream.
enum Out {
    Message(Bytes),
    End(End),
}

/// The kit's ends of the open streams.
type Streams = Arc<Mutex<BTreeMap<StreamId, UnboundedSender<Out>>>>;

/// A server on a port of its own, which ends when the value is dropped.
pub struct Server {
    address: SocketAddr,
    streams: Streams,
    end: Arc<Notify>,
}

impl Server {
    /// Starts to listen. `events` receives the events of clients.
    ///
    /// # Errors
    ///
    /// If there is no port.
    pub fn start(events: Sender<Event>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (streams, end) = (Streams::default(), Arc::new(Notify::new()));
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (shared, ended) = (Shared { events, streams: streams.clone(), opened: Arc::default() }, end.clone());
        thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = accept(listener, shared) => {} // a listener that fails takes no more connections
                    () = ended.notified() => {}
                }
            });
        });
        Ok(Self { address, streams, end })
    }

    /// Returns where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a message. A message on a stream that has ended is lost.
    pub fn send(&self, stream: StreamId, message: &[u8]) {
        self.out(stream, Out::Message(frame(message)));
    }

    /// Ends a stream, after the messages that were sent.
    pub fn end(&self, stream: StreamId, end: End) {
        self.out(stream, Out::End(end));
    }

    fn out(&self, stream: StreamId, out: Out) {
        if let Some(sender) = self.streams.lock().unwrap_or_else(PoisonError::into_inner).get(&stream) {
            _ = sender.send(out); // an error means that the stream has ended, which it reports by itself
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end.notify_one();
    }
}

#[derive(Clone)]
struct Shared {
    events: Sender<Event>,
    streams: Streams,
    opened: Arc<AtomicU64>,
}

async fn accept(listener: TcpListener, shared: Shared) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (tcp, _) = listener.accept().await?;
        tokio::spawn(serve(tcp, shared.clone()));
    }
}

/// Serves a connection until it breaks, or the kit breaks it.
async fn serve(tcp: TcpStream, shared: Shared) -> Option<()> {
    tcp.set_nodelay(true).ok()?;
    let mut builder = h2::server::Builder::new();
    builder.initial_window_size(1 << 20).initial_connection_window_size(1 << 24);
    let mut connection = builder.handshake::<_, Bytes>(tcp).await.ok()?;
    let broken = Arc::new(Notify::new());
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            () = broken.notified() => return None,
        };
        let (request, respond) = accepted?.ok()?;
        match Method::of_path(request.uri().path()) {
            Some(method) => {
                let stream = shared.opened.fetch_add(1, Ordering::Relaxed) + 1;
                tokio::spawn(stream_of(stream, method, request.into_body(), respond, shared.clone(), broken.clone()));
            }
            None => refuse(respond),
        }
    }
}

/// Refuses a method that is none of discovery: load reports, for instance.
fn refuse(mut respond: SendResponse<Bytes>) {
    let mut response = response();
    response.headers_mut().insert("grpc-status", HeaderValue::from_static("12"));
    _ = respond.send_response(response, true); // an error means that the stream is gone
}

fn response() -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}

async fn stream_of(
    stream: StreamId,
    method: Method,
    body: RecvStream,
    mut respond: SendResponse<Bytes>,
    shared: Shared,
    broken: Arc<Notify>,
) {
    let Ok(send) = respond.send_response(response(), false) else { return };
    let (sender, out) = unbounded_channel();
    shared.streams.lock().unwrap_or_else(PoisonError::into_inner).insert(stream, sender);
    let Method { variant, type_url } = method;
    _ = shared.events.send(Event::Opened { stream, variant, type_url });
    let why = tokio::select! {
        why = read(stream, variant, body, &shared.events) => Some(why),
        ended = speak(send, out, &broken) => ended,
    };
    shared.streams.lock().unwrap_or_else(PoisonError::into_inner).remove(&stream);
    if let Some(why) = why {
        _ = shared.events.send(Event::Closed(stream, why)); // an error means that the receiver is gone
    }
}

/// Reads requests until the client ends the stream. Returns why.
async fn read(stream: StreamId, variant: Variant, mut body: RecvStream, events: &Sender<Event>) -> String {
    let mut buffer = BytesMut::new();
    while let Some(data) = body.data().await {
        let data = match data {
            Ok(data) => data,
            Err(error) => return error.to_string(),
        };
        _ = body.flow_control().release_capacity(data.len()); // more than was received is never released
        buffer.extend_from_slice(&data);
        while let Some(message) = next_message(&mut buffer) {
            let decoded =
                message.and_then(|message| Request::decode(variant, message).map_err(|error| error.to_string()));
            let event = match decoded {
                Ok(request) => Event::Request(stream, request),
                Err(why) => Event::Malformed(stream, why),
            };
            if events.send(event).is_err() {
                return "nobody listens".into();
            }
        }
    }
    "the client has no more to say".into()
}

/// Writes messages until the kit ends the stream. Returns why the client's end is gone, if it is.
async fn speak(mut send: SendStream<Bytes>, mut out: UnboundedReceiver<Out>, broken: &Notify) -> Option<String> {
    while let Some(next) = out.recv().await {
        let end = match next {
            Out::Message(message) => match write(&mut send, message).await {
                Ok(()) => continue,
                Err(error) => return Some(error.to_string()),
            },
            Out::End(end) => end,
        };
        match end {
            End::Unavailable => trailers(&mut send, "14"),
            End::Ok => trailers(&mut send, "0"),
            End::Reset => send.send_reset(Reason::CANCEL),
            End::Connection => broken.notify_one(),
        }
        return None;
    }
    None
}

fn trailers(send: &mut SendStream<Bytes>, status: &'static str) {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    trailers.insert("grpc-message", HeaderValue::from_static("the kit ends this stream"));
    _ = send.send_trailers(trailers); // an error means that the client has ended the stream
}
