//! Accepts connections: within the limit of open files, and with handshakes that delay no other connection.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};

use super::connection::{Connection, Transport};
use super::listen::{Accepted, Listener};
use super::tls::{Tls, why};

/// Open files that are not for connections: the log, the folder, certificates, metrics.
const RESERVED: u64 = 64;

/// The time to wait when the system has no room for a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Raises the limit of open files as far as the system allows it, and returns the number of connections that fit.
pub fn raise_open_files() -> usize {
    // If the limit can't be raised, or has no number, the usual default applies.
    let files = rlimit::increase_nofile_limit(u64::MAX).unwrap_or(1024);
    let connections = files - RESERVED.min(files / 2);
    usize::try_from(connections).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

/// Accepts connections, completes their handshakes, and passes them on.
pub struct Acceptor {
    listener: Listener,
    tls: Option<Arc<Tls>>,
    places: Arc<Semaphore>,
    limit: usize,
    accepted: mpsc::Sender<io::Result<Connection>>,
    /// Whether the limit was reached, and logged.
    is_full: bool,
}

impl Acceptor {
    /// Creates an acceptor with a limit of open connections, and the receiver of the accepted connections.
    pub fn new(
        listener: Listener,
        tls: Option<Arc<Tls>>,
        limit: usize,
    ) -> (Self, mpsc::Receiver<io::Result<Connection>>) {
        let (accepted, connections) = mpsc::channel(64);
        let places = Arc::new(Semaphore::new(limit));
        (Self { listener, tls, places, limit, accepted, is_full: false }, connections)
    }

    /// Accepts connections until `stop` completes. Then new connections are refused.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = &mut stop => return,
            };
            match accepted {
                Ok(accepted) => self.take(accepted).await,
                // The client left before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    self.say_full(&error.to_string());
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn take(&mut self, Accepted { stream, info }: Accepted) {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            self.say_full(&format!("{} connections are open, as many as the limit of open files allows", self.limit));
            return; // the connection is closed
        };
        // Only with some room, lest each connection at the limit logs a line.
        self.is_full &= self.places.available_permits() <= self.limit / 10;
        let Some(tls) = self.tls.clone() else {
            let _ = self.accepted.send(Ok(Connection::new(Transport::Plain(stream), info, place))).await;
            return;
        };
        let accepted = self.accepted.clone();
        tokio::spawn(async move {
            let handshake = async { (tls.accept(stream).await, place) };
            let (shaken, place) = tokio::select! {
                shaken = handshake => shaken,
                () = accepted.closed() => return,
            };
            match shaken {
                Ok(stream) => {
                    let transport = Transport::Tls(Box::new(stream));
                    let _ = accepted.send(Ok(Connection::new(transport, info, place))).await;
                }
                Err(error) => {
                    let peer = info.remote_addr.map_or("a client of the socket".to_owned(), |peer| peer.to_string());
                    tracing::warn!("{peer}: no TLS connection: {}", why(&error));
                }
            }
        });
    }

    /// Logs that connections are refused, once until there is room again.
    fn say_full(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_full, true) {
            tracing::warn!("connections are refused: {why}");
        }
    }
}
