//! The load: raw HTTP/2 clients that acknowledge each response and keep nothing of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet, spawn_local};
use tokio::time::timeout;

use super::Variant;
use super::wire::{Scanner, ack, first};

const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// The time after which a server that does not answer is broken.
const LIMIT: Duration = Duration::from_secs(300);

/// The progress of all clients.
#[derive(Default)]
struct Progress {
    responses: Cell<usize>,
    wanted: Cell<usize>,
    resources: Cell<usize>,
    failure: RefCell<Option<String>>,
    notify: Notify,
}

/// Clients on open streams.
pub(super) struct Fleet {
    streams: usize,
    progress: Rc<Progress>,
    tasks: JoinSet<()>,
    connections: Vec<AbortHandle>,
}

impl Fleet {
    /// Opens streams, on so many connections, and sends the first request on each. Run it in a local set.
    pub(super) async fn open(port: u16, connections: usize, streams: usize, variant: Variant, shared: &Bytes) -> Self {
        let (mut tasks, progress) = (JoinSet::new(), Rc::new(Progress::default()));
        progress.wanted.set(streams);
        let mut senders = Vec::new();
        let mut handles = Vec::new();
        for _ in 0..connections {
            let (sender, handle) = connect(port).await;
            senders.push(sender);
            handles.push(handle);
        }
        for stream in 0..streams {
            let client =
                client(senders[stream % connections].clone(), variant, stream, shared.clone(), progress.clone());
            let progress = progress.clone();
            tasks.spawn_local(async move {
                if let Err(error) = client.await {
                    *progress.failure.borrow_mut() = Some(error);
                    progress.notify.notify_one();
                }
            });
        }
        Self { streams, progress, tasks, connections: handles }
    }

    /// Waits until each stream has one more response, and returns the number of resources in these.
    pub(super) async fn responses(&self) -> usize {
        let wait = async {
            while self.progress.responses.get() < self.progress.wanted.get() {
                self.progress.notify.notified().await;
                if let Some(error) = &*self.progress.failure.borrow() {
                    panic!("a stream failed: {error}");
                }
            }
        };
        let done = timeout(LIMIT, wait).await;
        let (count, wanted) = (self.progress.responses.get(), self.progress.wanted.get());
        assert!(done.is_ok() && count == wanted, "{count} responses of {wanted}");
        self.progress.wanted.set(wanted + self.streams);
        self.progress.resources.take()
    }

    /// Closes all connections.
    pub(super) async fn close(mut self) {
        self.connections.iter().for_each(AbortHandle::abort);
        self.tasks.shutdown().await;
    }
}

async fn connect(port: u16) -> (SendRequest<Bytes>, AbortHandle) {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server accepts");
    stream.set_nodelay(true).expect("an open socket");
    let mut builder = Builder::new();
    builder.initial_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    let (sender, connection) = builder.handshake(stream).await.expect("the server speaks HTTP/2");
    // An error of the connection is also one of its streams.
    let handle = spawn_local(async move { _ = connection.await }).abort_handle();
    (sender, handle)
}

async fn client(
    sender: SendRequest<Bytes>,
    variant: Variant,
    stream: usize,
    shared: Bytes,
    progress: Rc<Progress>,
) -> Result<(), String> {
    let text = |error: h2::Error| error.to_string();
    let request = http::Request::post(format!("http://127.0.0.1{}", variant.path()))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .map_err(|error| error.to_string())?;
    let mut sender = sender.ready().await.map_err(text)?;
    let (response, mut requests) = sender.send_request(request, false).map_err(text)?;
    for piece in first(variant, stream, &shared) {
        requests.send_data(piece, false).map_err(text)?;
    }
    drop((sender, shared));
    let mut body = response.await.map_err(text)?.into_body();
    let mut scanner = Scanner::default();
    while let Some(data) = body.data().await {
        let data = data.map_err(text)?;
        body.flow_control().release_capacity(data.len()).map_err(text)?;
        let mut rest = &data[..];
        while let Some(received) = scanner.read(&mut rest) {
            requests.send_data(ack(variant, &received), false).map_err(text)?;
            progress.resources.set(progress.resources.get() + received.resources);
            progress.responses.set(progress.responses.get() + 1);
            if progress.responses.get() >= progress.wanted.get() {
                progress.notify.notify_one();
            }
        }
    }
    Err("the server ended the stream".into())
}
