//! Back-pressure and the end: clients that read slowly or not at all, and a control plane that shuts down.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use tokio::io::AsyncReadExt;
use tokio::time::Instant;
use tokio_stream::StreamExt;
use tonic::Code;
use tonic::body::Body;
use tonic::transport::Server;
use tower::{Service, ServiceExt};
use xds_machine::message::{Node, delta};
use xds_machine::proto::Wire;
use xds_machine::server::Resource;
use xds_machine::service::Variant;
use xds_machine::{Delta, type_url};
use xds_machine_tonic::server::{ControlPlane, Group, XdsService};

use super::support::{Notes, Peer, channel, clusters, connect, endpoints, path, resource};

const WINDOW: u32 = 65_535;
const MANY: usize = 2_000;
/// The most that hyper takes beyond the window: a page that begins in it, and the next one (a page has 37 KB).
const AHEAD: usize = 80_000;

/// A group with clusters of some 500 KB in all.
fn large() -> Group {
    let group = Group::new("all");
    group.replace(&clusters(), (0..MANY).map(|at| Resource::new(format!("c{at}"), vec![b'x'; 200])));
    group.replace(&endpoints(), [resource("e", "0")]);
    group
}

fn observed(group: &Group, notes: &Notes) -> ControlPlane {
    let group = group.clone();
    ControlPlane::builder(move |_, _| Ok(group.clone())).observe(notes.clone()).build()
}

/// The service, and the bytes that HTTP/2 has polled of each response.
#[derive(Clone)]
struct Counted(XdsService, Arc<Mutex<Vec<usize>>>);

impl Service<http::Request<Body>> for Counted {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (answer, counts) = (self.0.call(request), self.1.clone());
        Box::pin(async move {
            let at = {
                let mut counts = counts.lock().expect("no panic");
                counts.push(0);
                counts.len() - 1
            };
            Ok(answer.await?.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    counts.lock().expect("no panic")[at] += frame.data_ref().map_or(0, Bytes::len);
                    frame
                }))
            }))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_holds_about_its_window_and_delays_no_other() {
    let (group, notes) = (large(), Notes::default());
    let plane = observed(&group, &notes);
    let counted = Counted(plane.service(), Arc::default());
    let counts = counted.1.clone();
    let polled = |at: usize| counts.lock().expect("no panic")[at];

    let channel = connect(counted.clone(), WINDOW).await;
    let mut stalled = Peer::<Delta>::ads(&channel).await;
    stalled.subscribe(Node::new("stalled"), type_url::CLUSTER, &["*"]).await;
    stalled.subscribe(Node::new("stalled"), type_url::ENDPOINT, &["e"]).await;
    notes.wait("1 sent Cluster", 1).await;

    // Other clients are served meanwhile, also with changes that concern the stalled client.
    let channel = connect(counted, WINDOW).await;
    let mut good = Peer::<Delta>::ads(&channel).await;
    good.subscribe(Node::new("good"), type_url::CLUSTER, &["*"]).await;
    let (response, resources) = good.resources().await;
    assert_eq!(resources.len(), MANY);
    good.ack(&response).await;
    for content in ["1", "2", "3"] {
        group.update(|cache| cache.insert(&clusters(), resource("c7", content)));
        let (response, resources) = good.resources().await;
        assert_eq!(resources, [("c7".into(), content.into())]);
        good.ack(&response).await;
    }
    assert!(polled(1) > MANY * 200, "all of it was sent to the client that reads");
    assert!(polled(0) <= WINDOW as usize + AHEAD, "{} bytes were polled", polled(0));
    assert_eq!(notes.all().iter().filter(|note| note.starts_with("1 sent")).count(), 1);
    let behind = group.push().acked(Duration::from_secs(1)).await.behind;
    assert_eq!(behind.iter().map(|stream| stream.id().0).collect::<Vec<_>>(), [1]);

    // The client reads again: it receives the first response, then the last of the changes, and no other.
    let (response, resources) = stalled.resources().await;
    assert_eq!((resources.len(), response.type_url.as_str()), (MANY, type_url::CLUSTER));
    stalled.ack(&response).await;
    let (response, mut resources) = stalled.resources().await;
    let (first, other) = (response.type_url.clone(), stalled.resources().await);
    resources.extend(other.1);
    resources.sort();
    assert_eq!(resources, [("c7".into(), "3".into()), ("e".into(), "0".into())]);
    assert_ne!(first, other.0.type_url);
}

#[tokio::test(start_paused = true)]
async fn streams_share_the_pages_that_they_are_sent() {
    let plane = ControlPlane::new(large());
    let mut bodies = Vec::new();
    for _ in 0..2 {
        // The service in plain tower: without a tonic server, and with another type of body.
        let request = delta::Request { subscribe: vec!["*".into()], ..delta::Request::new(type_url::CLUSTER) };
        let message = Delta::encode_request(&request);
        let message = [&[0], &u32::to_be_bytes(message.len() as u32)[..], &message].concat();
        let request = http::Request::post(path(Variant::Delta, None).as_str()).body(Full::new(Bytes::from(message)));
        let response = plane.service().oneshot(request.expect("a request")).await.expect("infallible");
        assert_eq!(response.headers()["content-type"], "application/grpc");
        bodies.push(response.into_body());
    }
    let mut pages = 0;
    loop {
        let mut frames = Vec::new();
        for body in &mut bodies {
            frames.push(body.frame().await.expect("trailers come first").expect("no error"));
        }
        let [Some(first), Some(second)] = [0, 1].map(|at: usize| frames[at].data_ref()) else {
            assert_eq!(frames[0].trailers_ref().expect("trailers")["grpc-status"], "0");
            break;
        };
        if first.len() >= 1024 {
            assert_eq!(first.as_ptr(), second.as_ptr());
            pages += 1;
        }
    }
    assert!(pages >= MANY / 128, "{pages} pages");
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_the_streams_and_refuses_new_ones() {
    let plane = ControlPlane::new(large());
    let channel = connect(plane.service(), WINDOW).await;
    let mut silent = Peer::<Delta>::ads(&channel).await;
    let mut idle = Peer::<Delta>::ads(&channel).await;
    idle.subscribe(Node::new("idle"), type_url::ENDPOINT, &["e"]).await;
    let (response, _) = idle.resources().await;
    idle.ack(&response).await;
    let far = connect(plane.service(), WINDOW).await;
    let mut stalled = Peer::<Delta>::ads(&far).await;
    stalled.subscribe(Node::new("stalled"), type_url::CLUSTER, &["*"]).await;
    while plane.streams()[2].types().iter().all(|of| of.sent.is_none()) {
        tokio::task::yield_now().await;
    }

    let (start, limit) = (Instant::now(), Duration::from_secs(5));
    let left = plane.drain(limit).await;
    assert_eq!(start.elapsed(), limit);
    assert_eq!(left.iter().map(|stream| stream.id().0).collect::<Vec<_>>(), [3]);
    let shut = (Code::Unavailable, "the control plane shuts down".to_owned());
    for peer in [&mut silent, &mut idle] {
        assert_eq!(peer.status().await, shut);
    }
    let status = Peer::<Delta>::open(&channel, path(Variant::Delta, None)).await.err().expect("an error");
    assert_eq!((status.code(), status.message().to_owned()), shut);

    // The stalled client receives the status after the response that was under way.
    assert_eq!(stalled.resources().await.1.len(), MANY);
    assert_eq!(stalled.status().await, shut);
    assert_eq!(plane.streams().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_draining_server_runs_until_its_clients_are_gone_or_the_limit_expires() {
    for reads in [true, false] {
        let plane = ControlPlane::new(large());
        let (near, far) = tokio::io::duplex(64 << 10);
        let incoming = tokio_stream::once(Ok::<_, std::io::Error>(far)).chain(tokio_stream::pending());
        let router = Server::builder().add_service(plane.service());
        let server = router.serve_with_incoming_shutdown(incoming, plane.draining());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (run, limit) = (plane.clone(), Duration::from_secs(5));
        let run = tokio::spawn(async move { run.run(server, async { _ = stopped.await }, limit).await });

        let channel = channel(near, WINDOW).await;
        let mut peer = Peer::<Delta>::ads(&channel).await;
        peer.subscribe(Node::new("n"), type_url::CLUSTER, &["*"]).await;
        if reads {
            peer.resources().await;
        }
        while plane.streams()[0].types().iter().all(|of| of.sent.is_none()) {
            tokio::task::yield_now().await;
        }
        let start = Instant::now();
        stop.send(()).expect("it runs");
        run.await.expect("no panic").expect("no error");
        assert_eq!(start.elapsed(), if reads { Duration::ZERO } else { limit });
        if reads {
            assert_eq!(peer.status().await.0, Code::Unavailable);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_drain_ends_connections_whose_clients_stall() {
    let plane = ControlPlane::new(large());
    let (near, far) = tokio::io::duplex(64 << 10);
    let (mut mute, other) = tokio::io::duplex(64 << 10);
    let accepted = tokio_stream::iter([far, other]).map(Ok::<_, std::io::Error>).chain(tokio_stream::pending());
    let router = Server::builder().add_service(plane.service());
    let server = router.serve_with_incoming_shutdown(plane.incoming(accepted), plane.draining());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (run, limit) = (plane.clone(), Duration::from_secs(5));
    let run = tokio::spawn(async move { run.run(server, async { _ = stopped.await }, limit).await });

    let channel = channel(near, WINDOW).await;
    let mut stalled = Peer::<Delta>::ads(&channel).await;
    stalled.subscribe(Node::new("stalled"), type_url::CLUSTER, &["*"]).await;
    while plane.streams()[0].types().iter().all(|of| of.sent.is_none()) {
        tokio::task::yield_now().await;
    }
    let start = Instant::now();
    stop.send(()).expect("it runs");
    run.await.expect("no panic").expect("no error");
    assert_eq!(start.elapsed(), limit);
    assert_eq!(plane.streams().len(), 0, "the stream is gone though nobody read its end");
    let status = stalled.message().await.expect_err("the connection is gone");
    assert_ne!(status.message(), "the control plane shuts down");
    // A connection whose client never sent anything is gone as well.
    let mut greeting = Vec::new();
    mute.read_to_end(&mut greeting).await.expect("the end");
}
