//! The connections to endpoints.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;
use tonic::body::Body;
use xds_machine::client::Backoff;
use xds_machine_grpc::endpoints::State;

use crate::grpc::dns::Again;

/// The connections, which every priority with the same endpoint shares.
pub(super) struct Backends {
    changes: watch::Sender<()>,
    again: Again,
    backends: BTreeMap<SocketAddr, Backend>,
}

impl Backends {
    pub(super) fn new(changes: watch::Sender<()>, again: Again) -> Self {
        Self { changes, again, backends: BTreeMap::new() }
    }

    /// Begins to connect to each address without a connection.
    pub(super) fn open(&mut self, addresses: impl Iterator<Item = SocketAddr>) {
        for address in addresses {
            let (changes, again) = (&self.changes, &self.again);
            self.backends.entry(address).or_insert_with(|| Backend::new(address, changes.clone(), again.clone()));
        }
    }

    pub(super) fn retain(&mut self, is_wanted: impl Fn(&SocketAddr) -> bool) {
        self.backends.retain(|address, _| is_wanted(address));
    }

    /// Returns the state of a priority: the best of its endpoints.
    pub(super) fn state(&self, addresses: impl Iterator<Item = SocketAddr>) -> State {
        let rank = |state: &State| match state {
            State::Ready => 2,
            State::Connecting | State::Idle => 1,
            State::TransientFailure => 0,
        };
        let states = addresses.map(|address| self.backends.get(&address).map_or(State::Connecting, Backend::state));
        states.max_by_key(rank).unwrap_or(State::TransientFailure)
    }

    pub(super) fn is_ready(&self, address: &SocketAddr) -> bool {
        self.backends.get(address).is_some_and(Backend::is_ready)
    }

    /// Returns the sender of calls, if there is a connection.
    pub(super) fn sender(&self, address: &SocketAddr) -> Option<SendRequest<Body>> {
        self.backends.get(address)?.sender()
    }

    /// Returns why there is no connection to any of the addresses.
    pub(super) fn why(&self, addresses: impl Iterator<Item = SocketAddr>) -> String {
        let errors = addresses.filter_map(|address| self.backends.get(&address)?.error());
        let last = errors.last().unwrap_or_else(|| "no endpoints".into());
        format!("connections to all backends failing; last error: {last}")
    }
}

/// A connection that is made, and made again after a loss, as long as this value exists. Calls under way outlive it.
struct Backend(Arc<Mutex<Link>>);

enum Link {
    Connecting,
    Ready(SendRequest<Body>),
    Failed(String),
}

impl Backend {
    /// Begins to connect. Each change of the connection is reported, and after a loss names are resolved again.
    fn new(address: SocketAddr, changes: watch::Sender<()>, again: Again) -> Self {
        let link = Arc::new(Mutex::new(Link::Connecting));
        tokio::spawn(keep(address, Arc::downgrade(&link), changes, again));
        Self(link)
    }

    fn state(&self) -> State {
        match &*self.link() {
            Link::Connecting => State::Connecting,
            Link::Ready(_) => State::Ready,
            Link::Failed(_) => State::TransientFailure,
        }
    }

    fn is_ready(&self) -> bool {
        matches!(&*self.link(), Link::Ready(sender) if !sender.is_closed())
    }

    fn sender(&self) -> Option<SendRequest<Body>> {
        match &*self.link() {
            Link::Ready(sender) if !sender.is_closed() => Some(sender.clone()),
            _ => None,
        }
    }

    /// Returns why there is no connection.
    fn error(&self) -> Option<String> {
        match &*self.link() {
            Link::Failed(error) => Some(error.clone()),
            _ => None,
        }
    }

    fn link(&self) -> impl std::ops::Deref<Target = Link> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects until the `Backend` is dropped. A failure remains the state until there is a connection, as in gRPC's round
/// robin.
async fn keep(address: SocketAddr, link: Weak<Mutex<Link>>, changes: watch::Sender<()>, again: Again) {
    let set = |to: Link| {
        let Some(link) = link.upgrade() else { return false };
        *link.lock().unwrap_or_else(PoisonError::into_inner) = to;
        changes.send_replace(());
        true
    };
    let mut backoff = Backoff::grpc();
    loop {
        match connect(address).await {
            Ok((sender, connection)) => {
                if !set(Link::Ready(sender)) {
                    return;
                }
                backoff.reset();
                // Without a sender, the connection ends after the calls under way.
                connection.await;
                again.ask();
                if !set(Link::Connecting) {
                    return;
                }
            }
            Err(error) => {
                again.ask();
                if !set(Link::Failed(format!("{address}: {error}"))) {
                    return;
                }
                sleep(backoff.next_delay(fastrand::u64(..))).await;
            }
        }
    }
}

async fn connect(address: SocketAddr) -> io::Result<(SendRequest<Body>, impl Future<Output = ()>)> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // The reason for the end of a connection does not matter here: a call that fails by it reports it.
    Ok((sender, async move { drop(connection.await) }))
}
