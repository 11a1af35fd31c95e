//! The failover of priorities while the clock stands still: only these tests move the clock.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_util::poll;
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, advance, pause};

use crate::world::{Backend, CLUSTERS, ENDPOINTS, LIMIT, LISTENERS, Plane, Routes, eds, localities, servers};
use crate::world::{call_to, channel, routed_by, until};

const FAILOVER: Duration = Duration::from_secs(10);

/// An address at which no program accepts connections: an attempt to connect never ends.
struct Stuck {
    address: SocketAddr,
    _open: (tokio::net::TcpListener, TcpStream),
}

impl Stuck {
    async fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        // The queue has room for one connection.
        let listener = socket.listen(0).expect("a listener");
        let address = listener.local_addr().expect("bound");
        let first = TcpStream::connect(address).await.expect("room for one");
        Self { address, _open: (listener, first) }
    }
}

/// Waits for the message of a thread. Meanwhile the clock stands still, because a thread of the runtime is busy.
fn wait<T: Send + 'static>(said: mpsc::Receiver<T>) -> JoinHandle<Result<T, mpsc::RecvTimeoutError>> {
    spawn_blocking(move || said.recv_timeout(LIMIT))
}

/// Starts a channel with two clusters: the method `Other` leads to `d`, others to `c`. Returns when the channel has the
/// configuration; no connection to the endpoints of `c` was begun then, because no call went to `c`.
async fn start(plane: &Plane, of_c: Value, of_d: SocketAddr) -> examples::xds_channel::XdsChannel {
    plane.put(ENDPOINTS, [of_c, localities("d", &[("r", &[of_d])])]);
    plane.put(CLUSTERS, [eds("c"), eds("d")]);
    let routes: Routes<'_> = &[("/test.Name/Other", "d"), ("", "c")];
    plane.put(LISTENERS, [routed_by("s", routes)]);
    let channel = channel(&json!({"xds_servers": servers(&[&plane.address])}), "xds:///s");
    call_to(&channel, "/test.Name/Other").await.expect("an answer");
    channel
}

/// Begins a call, which has to wait, and gives it up.
async fn give_up(call: impl Future<Output = Result<String, String>>) {
    assert!(poll!(Box::pin(call)).is_pending(), "the call waits for a connection");
}

#[tokio::test]
async fn the_failover_timer_connects_to_the_next_priority_without_a_waiting_call() {
    let plane = Plane::start("timer");
    let (stuck, d) = (Stuck::new().await, Backend::start("d").await);
    let next = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let of_next = next.local_addr().expect("bound");
    let of_c = localities("c", &[("x", &[stuck.address]), ("y", &[of_next])]);
    let channel = start(&plane, of_c, d.address).await;

    let (say, said) = mpsc::channel();
    thread::spawn(move || say.send(next.accept().is_ok()));
    let connected = wait(said);
    pause();
    give_up(call_to(&channel, "/test.Name/Get")).await;
    advance(FAILOVER).await;
    assert_eq!(connected.await.expect("no panic"), Ok(true), "R-EDS-21: the timer ends by itself");
}

#[tokio::test]
async fn priorities_keep_their_children_when_their_order_changes() {
    let plane = Plane::start("order");
    let (stuck, b, c) = (Stuck::new().await, Backend::start("b").await, Backend::start("c").await);
    let of_c = localities("c", &[("x", &[stuck.address]), ("y", &[b.address])]);
    let channel = start(&plane, of_c, b.address).await;

    let (end, ended) = mpsc::channel::<()>();
    let still = wait(ended);
    pause();
    let start = Instant::now();
    give_up(call_to(&channel, "/test.Name/Get")).await;
    advance(FAILOVER).await;
    until(&channel, Ok("b")).await;
    // R-EDS-22: the former first priority is the second now, and its 10 s have passed.
    let moved = localities("c", &[("z", &[]), ("x", &[stuck.address]), ("y", &[c.address])]);
    plane.put(ENDPOINTS, [moved, localities("d", &[("r", &[b.address])])]);
    until(&channel, Ok("c")).await;
    assert_eq!(start.elapsed(), FAILOVER, "no call waited for another timer");
    drop(end);
    assert!(still.await.expect("no panic").is_err());
}
