//! A server over sockets: gRPC on plain HTTP/2, with messages as bytes, so that malformed messages can be sent too.

pub(crate) mod stream;
mod target;
mod v2;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::SendStream;
use h2::client::SendRequest;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use xds_machine::service::Method;

pub use self::target::{SharedControl, Target};
use crate::message::{Request, Variant};
use crate::resource;
use crate::run::{Event, Op, Peer, StreamId, Trouble, Wait};

/// How long to wait for messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Patience {
    /// The wait for a message that must come.
    pub answer: Duration,
    /// The wait for a message that must not come.
    pub quiet: Duration,
}

/// A connection to the server.
pub struct Connection {
    runtime: Runtime,
    requests: SendRequest<Bytes>,
    streams: BTreeMap<StreamId, SendStream<Bytes>>,
    opened: StreamId,
    events: UnboundedReceiver<Event>,
    sender: UnboundedSender<Event>,
    target: Target,
    patience: Patience,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or does not speak HTTP/2.
    pub fn new(target: &Target, patience: Patience) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let requests = runtime.block_on(connect(target.address(), patience.answer))?;
        let (sender, events) = unbounded_channel();
        let (streams, target) = (BTreeMap::new(), target.clone());
        Ok(Self { runtime, requests, streams, opened: 0, events, sender, target, patience })
    }

    /// Connects once more, to a server that has been started again.
    fn reconnect(&mut self) -> Result<(), Trouble> {
        self.streams.clear();
        let until = Instant::now() + self.patience.answer.max(RESTART);
        loop {
            match self.runtime.block_on(connect(self.target.address(), self.patience.answer)) {
                Ok(requests) => {
                    self.requests = requests;
                    return Ok(());
                }
                Err(error) if Instant::now() >= until => {
                    return Err(Trouble(format!("no connection to {}: {error}", self.target.address())));
                }
                Err(_) => self.pass(Duration::from_millis(20)),
            }
        }
    }

    /// Changes the patience, once the server was measured.
    pub fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }
}

/// How long a server may take to start again.
const RESTART: Duration = Duration::from_secs(10);

async fn connect(address: &str, patience: Duration) -> io::Result<SendRequest<Bytes>> {
    let connect = async {
        let tcp = TcpStream::connect(address).await?;
        tcp.set_nodelay(true)?;
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(1 << 20).initial_connection_window_size(1 << 24);
        let (requests, connection) = builder.handshake(tcp).await.map_err(io::Error::other)?;
        tokio::spawn(async move {
            _ = connection.await; // the streams report an error
        });
        requests.ready().await.map_err(io::Error::other)
    };
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no connection in time");
    timeout(patience, connect).await.map_err(late)?
}

impl Peer for Connection {
    fn open(&mut self, variant: Variant, single: Option<&str>) -> Result<StreamId, Trouble> {
        let own = |type_url: &str| crate::resource::TYPES.into_iter().find(|(_, known)| *known == type_url);
        let type_url = single.and_then(own).map(|(_, url)| url);
        let path = if self.target.is_v2() { v2::path(variant, type_url) } else { Method { variant, type_url }.path() };
        let path = path.ok_or_else(|| Trouble("the type has no service".into()))?;
        let request = http::Request::post(format!("http://{}{path}", self.target.address()))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("user-agent", concat!("xds-conformance/", env!("CARGO_PKG_VERSION")))
            .body(())
            .map_err(|error| Trouble(error.to_string()))?;
        let (requests, wait) = (&mut self.requests, self.patience.answer);
        let opened = self.runtime.block_on(async {
            timeout(wait, poll_fn(|cx| requests.poll_ready(cx)))
                .await
                .map_err(|_| "no stream in time".to_owned())?
                .map_err(|error| error.to_string())?;
            requests.send_request(request, false).map_err(|error| error.to_string())
        });
        let (response, send) = opened.map_err(|why| Trouble(format!("no stream: {why}")))?;
        self.opened += 1;
        let _in_runtime = self.runtime.enter();
        tokio::spawn(stream::read(self.opened, variant, response, self.sender.clone()));
        self.streams.insert(self.opened, send);
        Ok(self.opened)
    }

    fn send(&mut self, stream: StreamId, variant: Variant, request: &Request) -> Result<(), Trouble> {
        let mut request = request.clone();
        if self.target.is_v2() {
            request.type_url = v2::old(&request.type_url).to_owned();
        }
        if let (Some(node), Some(id)) = (&mut request.node, self.target.node()) {
            node.id = id.to_owned();
        }
        self.send_bytes(stream, &request.encode(variant))
    }

    fn send_bytes(&mut self, stream: StreamId, bytes: &[u8]) -> Result<(), Trouble> {
        let Some(send) = self.streams.get_mut(&stream) else { return Ok(()) };
        let wait = self.patience.answer;
        // A message on a stream that the peer ended, or does not read, is lost: the end of the stream is an event of
        // its own.
        self.runtime.block_on(async { _ = timeout(wait, stream::write(send, stream::frame(bytes))).await });
        Ok(())
    }

    fn close(&mut self, stream: StreamId) {
        if let Some(mut send) = self.streams.remove(&stream) {
            send.send_reset(h2::Reason::CANCEL);
            self.runtime.block_on(tokio::task::yield_now());
        }
    }

    fn poll(&mut self, wait: Wait) -> Option<Event> {
        let wait = match wait {
            Wait::Answer => self.patience.answer,
            Wait::Quiet => self.patience.quiet,
            // The task that reads the stream must have had its turn.
            Wait::Nothing => Duration::from_millis(1),
        };
        let events = &mut self.events;
        let mut event = self.runtime.block_on(async { timeout(wait, events.recv()).await.ok().flatten() });
        if let (true, Some(Event::Response(_, response))) = (self.target.is_v2(), &mut event) {
            response.type_url = v2::new(&response.type_url).to_owned();
            for item in &mut response.resources {
                item.any_type = v2::new(&item.any_type).to_owned();
                // The type decides how the revision is read.
                item.revision = item.body.as_ref().and_then(|body| resource::revision(&item.any_type, body));
            }
        }
        event
    }

    fn pass(&mut self, time: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(time).await }); // the timer must be made within the runtime
    }

    fn control(&mut self, ops: &[Op]) -> Result<(), Trouble> {
        self.target.apply(ops)?;
        if ops.contains(&Op::Restart) { self.reconnect() } else { Ok(()) }
    }

    fn is_confirmed(&self) -> bool {
        self.target.is_confirmed()
    }

    fn is_ordered(&self) -> bool {
        self.target.is_ordered()
    }

    fn serves(&self, type_url: &str) -> bool {
        self.target.serves(type_url)
    }

    fn has_witnesses(&self, variant: Variant, type_url: &str) -> bool {
        self.target.has_witnesses(variant, type_url)
    }

    fn note_witness(&mut self, variant: Variant, type_url: &str, seen: bool) {
        self.target.note_witness(variant, type_url, seen);
    }

    fn is_instant(&self) -> bool {
        false
    }
}
