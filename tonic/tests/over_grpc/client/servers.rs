//! Reconnects, fallback, the states of servers, and the end.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use tonic::Code;
use xds_machine::client::ResourceStatus;
use xds_machine::servers::{Policy, ServerId};
use xds_machine::type_url;
use xds_machine::watch::News;
use xds_machine_tonic::client::{Phase, ServerState, WatchError, XdsClient};

use super::plane::Plane;
use super::{Cluster, client};

/// Waits until the state of a server is as expected.
async fn state(client: &XdsClient, server: usize, is: impl Fn(&ServerState) -> bool) -> ServerState {
    let mut states = client.states();
    let found = states.until(|states| is(&states[server]));
    timeout(Duration::from_secs(3600), found).await.expect("the state").expect("a client").remove(server)
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_is_opened_again_after_a_backoff_that_only_a_response_resets() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let mut watch = client.watch::<Cluster>("a").await.expect("a name");
    let (peer, _) = plane.accept().await;
    let mut waits = Vec::new();
    let mut last = peer;
    for _ in 0..3 {
        let start = Instant::now();
        last.end(Code::Unavailable, "full").await;
        (last, _) = plane.accept().await;
        waits.push(start.elapsed().as_secs_f64());
    }
    // 1 s, 1.6 s and 2.56 s, each 20 % more or less.
    for (wait, expected) in waits.iter().zip([1.0, 1.6, 2.56]) {
        assert!((0.79 * expected..1.21 * expected).contains(wait), "{waits:?}");
    }
    last.send(type_url::CLUSTER, "1", &[("a", "x")], &[]).await;
    last.request().await;
    let (start, mut log) = (Instant::now(), Vec::new());
    last.end(Code::Ok, "").await;
    let (_peer, again) = plane.accept().await;
    assert!(start.elapsed() < Duration::from_millis(1210), "a response resets the backoff");
    let claimed: Vec<_> = again.initial_versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    assert_eq!(claimed, ["a 1"]);
    while let Ok(Some(event)) = timeout(Duration::from_millis(1), watch.next()).await {
        log.push(event.news);
    }
    assert!(matches!(&log[..], [News::Changed(Ok(content))] if content.0 == "x"), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn the_second_server_is_used_while_the_first_is_unreachable() {
    let (mut primary, mut fallback) = (Plane::new(), Plane::new());
    primary.set_up(false);
    let client = client(&[&primary, &fallback]).start().expect("a client");
    assert_eq!(state(&client, 0, |_| true).await.phase, Phase::Unused);
    let mut watch = client.watch::<Cluster>("a").await.expect("a name");
    let (peer, first) = fallback.accept().await;
    assert_eq!(first.subscribe, ["a"]);
    let down = state(&client, 0, |state| state.last_error.is_some()).await;
    assert_eq!(down.last_error.as_deref(), Some("nobody listens"));
    assert!(matches!(down.phase, Phase::Waiting(at) if at > Instant::now()), "{down:?}");
    assert_eq!(state(&client, 1, |_| true).await.phase, Phase::Connected);

    let ready = tokio::spawn({
        let client = client.clone();
        async move { client.ready().await }
    });
    peer.send(type_url::CLUSTER, "1", &[("a", "x")], &[]).await;
    assert_eq!(ready.await.expect("no panic"), Ok(()));
    assert_eq!(state(&client, 1, |_| true).await.phase, Phase::Answering);
    assert!(matches!(watch.next().await.expect("news").news, News::Changed(Ok(content)) if content.0 == "x"));
    let dump = client.dump().await;
    let rows: Vec<_> =
        dump.iter().map(|row| (row.server.0, row.authoritative, row.name.as_str(), row.status)).collect();
    assert_eq!(rows, [(0, false, "a", ResourceStatus::Acked), (1, true, "a", ResourceStatus::Acked)]);
    assert_eq!(dump[1].version.as_ref().map(|version| version.as_str()), Some("1"));

    // The first server is reachable again, and its response ends the use of the second.
    primary.set_up(true);
    let (peer, _) = primary.accept().await;
    peer.send(type_url::CLUSTER, "1", &[("a", "y")], &[]).await;
    assert!(matches!(watch.next().await.expect("news").news, News::Changed(Ok(content)) if content.0 == "y"));
    let unused = state(&client, 1, |state| state.phase == Phase::Unused).await;
    assert_eq!(unused.last_error.as_deref(), Some("the server is not used any more"));
    assert_eq!(state(&client, 0, |_| true).await, {
        let mut expected = unused.clone();
        (expected.server, expected.phase, expected.last_error) = (ServerId(0), Phase::Answering, None);
        expected
    });
}

/// A watcher of a type that is watched first during an outage is notified of the outage too.
#[tokio::test(start_paused = true)]
async fn watchers_receive_the_error_of_an_outage() {
    for policy in [Policy::Grpc, Policy::Envoy] {
        let plane = Plane::new();
        plane.set_up(false);
        let client = client(&[&plane]).policy(policy).start().expect("a client");
        let mut early = client.watch::<Cluster>("a").await.expect("a name");
        let mut late = None;
        for _ in 0..2 {
            let watch = late.as_mut().unwrap_or(&mut early);
            let News::Changed(Err(status)) = watch.next().await.expect("news").news else { panic!("an error") };
            assert_eq!(status.message, "server 0 can't be reached");
            late = Some(client.watch::<Cluster>("b").await.expect("a name"));
        }
        let mut other = client.watch::<super::Endpoints>("b").await.expect("a name");
        // At once, and not with the next failure.
        let told = timeout(Duration::from_millis(1), other.next()).await.expect("news");
        assert!(matches!(told.expect("not the end").news, News::Changed(Err(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_or_oversized_response_ends_the_stream_with_the_reason() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).max_response_bytes(100).start().expect("a client");
    let _watch = client.watch::<Cluster>("a").await.expect("a name");
    for (bytes, reason) in [
        (
            vec![0xff; 12],
            "InvalidArgument: malformed DeltaDiscoveryResponse: failed to decode Protobuf message: invalid varint",
        ),
        (vec![0; 101], "ResourceExhausted: a response of 101 bytes, limit 100"),
    ] {
        let (mut peer, _) = plane.accept().await;
        peer.send_bytes(&bytes).await;
        assert!(peer.next().await.is_none(), "the stream ends");
        state(&client, 0, |state| state.last_error.as_deref() == Some(reason)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn close_ends_streams_and_watches() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let mut watch = client.watch::<Cluster>("a").await.expect("a name");
    let (mut peer, _) = plane.accept().await;
    peer.send(type_url::CLUSTER, "1", &[("a", "x")], &[]).await;
    peer.request().await;
    let start = Instant::now();
    let server = async {
        assert!(peer.next().await.is_none(), "the client closes its half, and waits for the server's");
        peer.end(Code::Ok, "").await;
    };
    let handle = client.clone();
    tokio::join!(handle.close(), client.close(), server);
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(watch.next().await.is_some(), "what was not read yet can be read");
    assert!(watch.next().await.is_none());
    assert_eq!(client.ready().await, Err(WatchError::Closed));
    assert_eq!(client.dump().await, []);
    client.close().await;
}

/// USERS, V9: what a caller looks at is a copy, which may live across other calls; the last states outlive the client.
#[tokio::test(start_paused = true)]
async fn states_are_copies_and_outlive_the_client() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let mut states = client.states();
    assert_eq!(states.get(), client.server_states());
    let _watch = client.watch::<Cluster>("a").await.expect("a name");
    let (peer, _) = plane.accept().await;
    // One statement: the copy lives while the client's task answers.
    let (seen, rows) = (client.server_states(), client.dump().await.len());
    assert_eq!((seen[0].phase, rows), (Phase::Connected, 1));
    peer.send(type_url::CLUSTER, "1", &[("a", "x")], &[]).await;
    while states.next().await.expect("a change")[0].phase != Phase::Answering {}
    peer.end(Code::Unavailable, "enough").await;
    state(&client, 0, |state| state.last_error.is_some()).await;
    let waits = tokio::spawn(async move { states.until(|states| states.len() > 1).await });
    client.close().await;
    assert_eq!(waits.await.expect("no panic"), None);
    let last = client.server_states().remove(0);
    assert_eq!((last.phase, last.last_error.as_deref()), (Phase::Unused, Some("Unavailable: enough")));
    assert_eq!(client.ready().await, Err(WatchError::Closed));
}

#[tokio::test(start_paused = true)]
async fn close_waits_a_second_for_a_server_that_does_not_end_its_stream() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let _watch = client.watch::<Cluster>("a").await.expect("a name");
    let (mut peer, _) = plane.accept().await;
    let start = Instant::now();
    client.close().await;
    assert_eq!(start.elapsed(), Duration::from_secs(1));
    assert!(peer.next().await.is_none());
    assert_eq!(client.watch::<Cluster>("b").await.err(), Some(WatchError::Closed));
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_with_the_last_handle() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let watch = client.watch::<Cluster>("a").await.expect("a name");
    let (mut peer, _) = plane.accept().await;
    drop(client);
    peer.hears_nothing().await;
    drop(watch);
    while peer.next().await.is_some() {}
    drop(peer);
    assert!(plane.stream().await.is_none(), "and none is opened");
}
