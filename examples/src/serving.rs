//! The streams of a server. Each stream is a task with its own machine, and all streams read one cache.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant as Clock};

use tokio::sync::{mpsc, watch};
use tokio::time;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Code, Request, Response, Status, Streaming};
use xds_machine::proto::Wire;
use xds_machine::server::{Action, Cache, Config, Dialect, DropReason, Server, StreamId, Variant};
use xds_machine::service::{self, Method};
use xds_machine::{Delta, Error, Instant, ResourceName, Sotw, TypeUrl, WILDCARD};

use crate::codec::{Chunks, ServerCodec};
use crate::log::{Event, Log};

/// The maximum size of a request, in bytes. The limit exceeds the machine's own, so that the machine is the one to
/// refuse.
const REQUEST_BYTES: usize = 32 << 20;

/// State that all streams share.
pub struct Shared {
    cache: RwLock<Cache>,
    dialect: Dialect,
    /// Wakes the streams.
    changed: watch::Sender<()>,
    log: Log,
    streams: AtomicU64,
    start: Clock,
}

impl Shared {
    pub fn new(cache: Cache, dialect: Dialect, log: Log) -> Self {
        let (changed, streams) = (watch::Sender::new(()), AtomicU64::new(0));
        Self { cache: RwLock::new(cache), dialect, changed, log, streams, start: Clock::now() }
    }

    /// Changes the cache, for all streams at once.
    pub fn change(&self, change: impl FnOnce(&mut Cache)) {
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut cache);
        cache.publish::<Sotw>();
        cache.publish::<Delta>();
        drop(cache);
        self.changed.send_replace(());
    }

    fn now(&self) -> Instant {
        Instant::from_epoch(self.start.elapsed())
    }
}

/// Serves a call.
///
/// # Errors
///
/// Never fails: a call that can't be served is answered with a gRPC status.
pub async fn accept(shared: Arc<Shared>, request: http::Request<Body>) -> Result<http::Response<Body>, Infallible> {
    Ok(match Method::of_path(request.uri().path()) {
        Some(method) => match method.variant {
            service::Variant::Sotw => open::<Sotw>(shared, method, request).await,
            service::Variant::Delta => open::<Delta>(shared, method, request).await,
        },
        None => Status::unimplemented(format!("no such method: {}", request.uri().path())).into_http(),
    })
}

type Outbound = mpsc::Sender<Result<Chunks, Status>>;

async fn open<V>(shared: Arc<Shared>, method: Method, request: http::Request<Body>) -> http::Response<Body>
where
    V: Variant + Wire,
{
    let handler = tower::service_fn(move |request: Request<Streaming<V::Request>>| {
        // At most one response waits for the transport; the next is made when there is room.
        let (outbound, responses) = mpsc::channel(1);
        let stream = Stream::<V>::new(shared.clone(), method, outbound);
        tokio::spawn(stream.run(request.into_inner()));
        async { Ok::<_, Status>(Response::new(ReceiverStream::new(responses))) }
    });
    Grpc::new(ServerCodec::<V>::default()).max_decoding_message_size(REQUEST_BYTES).streaming(handler, request).await
}

struct Stream<V: Variant> {
    shared: Arc<Shared>,
    server: Server<V>,
    node: Option<String>,
    outbound: Outbound,
}

impl<V: Variant + Wire> Stream<V> {
    fn new(shared: Arc<Shared>, method: Method, outbound: Outbound) -> Self {
        let config = Config::new(method);
        let id = StreamId(shared.streams.fetch_add(1, Ordering::Relaxed) + 1);
        let server =
            Server::new(config.with_dialect(shared.dialect).with_control_plane("xds-machine control_plane"), id);
        Self { shared, server, node: None, outbound }
    }

    async fn run(mut self, inbound: Streaming<V::Request>) {
        self.log(Event { event: "open", ..Event::default() });
        let end = self.converse(inbound).await;
        let (code, message) = (end.code() as i32, end.message());
        self.log(Event { event: "close", code: Some(code), message: Some(message), ..Event::default() });
        if end.code() != Code::Ok {
            // A client that no longer reads does not receive the status.
            let _ = self.outbound.send_timeout(Err(end), Duration::from_secs(10)).await;
        }
    }

    /// Runs the stream until it ends, and returns its final status.
    async fn converse(&mut self, mut inbound: Streaming<V::Request>) -> Status {
        let mut changed = self.shared.changed.subscribe();
        let mut room: Option<mpsc::OwnedPermit<_>> = None;
        let mut ended = false;
        loop {
            if let Err(status) = self.act() {
                return status;
            }
            if let Some(permit) = room.take() {
                if let Some(response) = self.next_response() {
                    permit.send(Ok(response));
                    continue;
                }
                match self.act() {
                    Ok(()) if ended => return Status::new(Code::Ok, ""),
                    Ok(()) => room = Some(permit),
                    Err(status) => return status, // there was nothing to send because the stream has to end
                }
            }
            let due = self.server.poll_timeout().map(|due| self.shared.start + due.since_epoch());
            tokio::select! {
                permit = self.outbound.clone().reserve_owned(), if room.is_none() => match permit {
                    Ok(permit) => room = Some(permit),
                    Err(_) => return gone(),
                },
                request = inbound.message(), if !ended => match request {
                    Ok(Some(request)) => match self.server.handle_request(self.shared.now(), request) {
                        Ok(()) => {}
                        Err(Error::Peer(error)) => {
                            return Status::new(error.code().number().into(), error.to_string());
                        }
                        Err(Error::Caller(error)) => return Status::internal(error.to_string()),
                    },
                    Ok(None) => ended = true, // what it asked is still answered
                    Err(status) => return status,
                },
                _ = changed.changed() => {}
                () = time::sleep_until(due.unwrap_or(self.shared.start).into()), if due.is_some() => {
                    self.server.handle_timeout(self.shared.now());
                }
                () = self.outbound.closed() => return gone(),
            }
        }
    }

    /// Returns the next response, if one is pending. Called only when the channel has room for it.
    fn next_response(&mut self) -> Option<Chunks> {
        let now = self.shared.now();
        let response = {
            let cache = self.shared.cache.read().unwrap_or_else(PoisonError::into_inner);
            self.server.poll_transmit(now, &*cache)?
        };
        self.log(Event {
            event: "send",
            type_url: Some(response.type_url().as_str()),
            version: Some(response.version().as_str()),
            nonce: Some(response.nonce().as_str()),
            resources: Some(response.resources().map(|resource| resource.name().as_str()).collect()),
            removed: Some(response.removed().iter().map(ResourceName::as_str).collect()),
            ..Event::default()
        });
        Some(response.chunks().collect())
    }

    /// Logs the machine's actions. Returns an error if the stream has to end.
    fn act(&mut self) -> Result<(), Status> {
        while let Some(action) = self.server.poll_action() {
            match action {
                Action::Node(node) => self.node = Some(node.id.clone()),
                Action::Subscribed { type_url, .. } => {
                    let interest = self.server.interest(&type_url);
                    let wildcard = interest.filter(|interest| interest.wildcard()).map(|_| WILDCARD);
                    let names = interest.into_iter().flat_map(|interest| interest.names()).map(ResourceName::as_str);
                    let names = Some(wildcard.into_iter().chain(names).collect());
                    self.about("subscribed", &type_url, Event { names, ..Event::default() });
                }
                Action::Ack { type_url, version, nonce, .. } => {
                    let (version, nonce) = (Some(version.as_str()), Some(nonce.as_str()));
                    self.about("ack", &type_url, Event { version, nonce, ..Event::default() });
                }
                Action::Nack { type_url, version, nonce, error, .. } => {
                    let (version, nonce) = (Some(version.as_str()), Some(nonce.as_str()));
                    let (code, message) = (Some(error.code), Some(error.message.as_str()));
                    self.about("nack", &type_url, Event { version, nonce, code, message, ..Event::default() });
                }
                Action::DropStale { type_url, nonce, reason, .. } => {
                    let message = match reason {
                        DropReason::NoNonce => "no nonce",
                        _ => "the nonce of no response that waits for an answer",
                    };
                    let (nonce, message) = (Some(nonce.as_str()), Some(message));
                    self.about("drop_stale", &type_url, Event { nonce, message, ..Event::default() });
                }
                Action::Close(status) => return Err(Status::new(status.code.into(), status.message)),
                _ => {}
            }
        }
        Ok(())
    }

    fn about(&self, event: &str, type_url: &TypeUrl, rest: Event<'_>) {
        self.log(Event { event, type_url: Some(type_url.as_str()), ..rest });
    }

    fn log(&self, event: Event<'_>) {
        let event = Event { stream: self.server.stream().0, node: self.node.as_deref(), ..event };
        self.shared.log.event(&event);
    }
}

/// Returns the status of a stream whose client no longer reads responses.
fn gone() -> Status {
    Status::cancelled("the client is gone")
}
