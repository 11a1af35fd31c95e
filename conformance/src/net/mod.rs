//! A server over sockets: gRPC on plain HTTP/2, with messages as bytes, so that wrong ones can be sent too.

pub(crate) mod stream;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use h2::client::SendRequest;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use xds_machine::service::Method;

use crate::control::Control;
use crate::message::{Request, Variant};
use crate::run::{Event, Op, Peer, StreamId, Trouble, Wait};

/// How long to wait for what.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Patience {
    /// For what must come.
    pub answer: Duration,
    /// For what must not come.
    pub quiet: Duration,
}

/// The control of the server, which all connections share.
pub type SharedControl = Arc<Mutex<dyn Control + Send>>;

/// A connection to the server.
pub struct Connection {
    runtime: Runtime,
    requests: SendRequest<Bytes>,
    streams: BTreeMap<StreamId, SendStream<Bytes>>,
    opened: StreamId,
    events: UnboundedReceiver<Event>,
    sender: UnboundedSender<Event>,
    authority: String,
    control: SharedControl,
    patience: Patience,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or does not speak HTTP/2.
    pub fn new(address: &str, control: SharedControl, patience: Patience) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let requests = runtime.block_on(async {
            let connect = async {
                let tcp = TcpStream::connect(address).await?;
                tcp.set_nodelay(true)?;
                let mut builder = h2::client::Builder::new();
                builder.initial_window_size(1 << 20).initial_connection_window_size(1 << 24);
                let (requests, connection) = builder.handshake(tcp).await.map_err(io::Error::other)?;
                tokio::spawn(async move {
                    _ = connection.await; // the streams report it
                });
                requests.ready().await.map_err(io::Error::other)
            };
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no connection in time");
            timeout(patience.answer, connect).await.map_err(late)?
        })?;
        let (sender, events) = unbounded_channel();
        let streams = BTreeMap::new();
        Ok(Self { runtime, requests, streams, opened: 0, events, sender, authority: address.into(), control, patience })
    }

    /// Changes the patience, once it is known what the server needs.
    pub fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }
}

impl Peer for Connection {
    fn open(&mut self, variant: Variant, single: Option<&str>) -> Result<StreamId, Trouble> {
        let own = |type_url: &str| crate::resource::TYPES.into_iter().find(|(_, known)| *known == type_url);
        let type_url = single.and_then(own).map(|(_, url)| url);
        let path = Method { variant, type_url }.path().ok_or_else(|| Trouble("the type has no service".into()))?;
        let request = http::Request::post(format!("http://{}{path}", self.authority))
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
        self.send_bytes(stream, &request.encode(variant))
    }

    fn send_bytes(&mut self, stream: StreamId, bytes: &[u8]) -> Result<(), Trouble> {
        let Some(send) = self.streams.get_mut(&stream) else { return Ok(()) };
        let wait = self.patience.answer;
        // A stream that the peer ended, or does not read, takes the message in vain: its end is an event of its own.
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
        };
        let events = &mut self.events;
        self.runtime.block_on(async { timeout(wait, events.recv()).await.ok().flatten() })
    }

    fn pass(&mut self, time: Duration) {
        self.runtime.block_on(tokio::time::sleep(time));
    }

    fn control(&mut self, ops: &[Op]) -> Result<(), Trouble> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).apply(ops)
    }

    fn is_instant(&self) -> bool {
        false
    }
}
