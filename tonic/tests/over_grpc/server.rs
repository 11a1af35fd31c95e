//! The control plane over HTTP/2: services, groups, verdicts, observers.

use std::time::Duration;

use tonic::Code;
use tonic::metadata::MetadataValue;
use tonic::transport::Server;
use xds_machine::message::Node;
use xds_machine::service::Variant;
use xds_machine::{Delta, Nonce, Sotw, type_url};
use xds_machine_tonic::server::{ControlPlane, Group, Limits};

use super::support::{Notes, Peer, clusters, connect, endpoints, path, resource, sotw_request};

const WINDOW: u32 = 65_535;

fn group(name: &str, content: &'static str) -> Group {
    let group = Group::new(name);
    group.replace(&clusters(), [resource("c", content)]);
    group.replace(&endpoints(), [resource("c", content)]);
    group
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, body)| (name.to_string(), body.to_string())).collect()
}

#[tokio::test(start_paused = true)]
async fn ads_and_type_services_are_served_in_both_variants() {
    let plane = ControlPlane::new(group("all", "one"));
    let channel = connect(plane.service(), WINDOW).await;

    let mut ads = Peer::<Delta>::ads(&channel).await;
    ads.subscribe(Node::new("n"), type_url::CLUSTER, &["c", "d"]).await;
    let (response, resources) = ads.resources().await;
    assert_eq!((resources, &*response.removed), (pairs(&[("c", "one")]), &["d".into()][..]));

    let mut cds = Peer::<Delta>::open(&channel, path(Variant::Delta, Some(type_url::CLUSTER))).await.expect("CDS");
    cds.subscribe(Node::new("n"), "", &[]).await;
    assert_eq!(cds.resources().await.1, pairs(&[("c", "one")]));

    let mut eds = Peer::<Sotw>::open(&channel, path(Variant::Sotw, Some(type_url::ENDPOINT))).await.expect("EDS");
    eds.send(sotw_request("", &["c"], &Nonce::default())).await;
    let response = eds.next().await;
    assert_eq!((response.type_url.as_str(), response.resources.len()), (type_url::ENDPOINT, 1));
    eds.send(sotw_request(type_url::ENDPOINT, &["c"], &response.nonce)).await;

    let mut ads = Peer::<Sotw>::ads(&channel).await;
    ads.send(sotw_request(type_url::CLUSTER, &[], &Nonce::default())).await;
    assert_eq!(ads.next().await.resources.len(), 1);

    let methods = plane.streams().iter().map(|stream| (stream.method().variant, stream.method().type_url)).collect();
    let (sotw, delta) = (Variant::Sotw, Variant::Delta);
    let expected: Vec<_> =
        vec![(delta, None), (delta, Some(type_url::CLUSTER)), (sotw, Some(type_url::ENDPOINT)), (sotw, None)];
    assert_eq!(expected, Vec::<_>::from_iter::<Vec<_>>(methods));
}

#[tokio::test(start_paused = true)]
async fn a_router_serves_the_control_plane_beside_another_service() {
    /// A service with a name of its own, which answers everything with one status.
    #[derive(Clone)]
    struct Health;
    impl tonic::server::NamedService for Health {
        const NAME: &'static str = "grpc.health.v1.Health";
    }
    impl tower::Service<http::Request<tonic::body::Body>> for Health {
        type Response = http::Response<tonic::body::Body>;
        type Error = std::convert::Infallible;
        type Future = std::future::Ready<Result<Self::Response, Self::Error>>;
        fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
            std::task::Poll::Ready(Ok(()))
        }
        fn call(&mut self, _: http::Request<tonic::body::Body>) -> Self::Future {
            std::future::ready(Ok(tonic::Status::already_exists("healthy").into_http()))
        }
    }
    let notes = Notes::default();
    let all = group("all", "one");
    let plane = ControlPlane::builder(move |_, _| Ok(all.clone())).observe(notes.clone()).build();
    let (near, far) = tokio::io::duplex(64 << 10);
    let incoming = tokio_stream::once(Ok::<_, std::io::Error>(far));
    let router = Server::builder().add_service(Health).add_service(plane.service());
    tokio::spawn(router.serve_with_incoming(incoming));
    let channel = super::support::channel(near, WINDOW).await;

    let mut cds = Peer::<Delta>::open(&channel, path(Variant::Delta, Some(type_url::CLUSTER))).await.expect("CDS");
    cds.subscribe(Node::new("n"), "", &[]).await;
    assert_eq!(cds.resources().await.1, pairs(&[("c", "one")]));

    let status = async |path: &'static str| {
        let status = Peer::<Delta>::open(&channel, path.parse().expect("a path")).await.err().expect("an error");
        (status.code(), status.message().to_owned())
    };
    assert_eq!(status("/grpc.health.v1.Health/Check").await, (Code::AlreadyExists, "healthy".into()));
    let fetch = "/envoy.service.cluster.v3.ClusterDiscoveryService/FetchClusters";
    assert_eq!(status(fetch).await, (Code::Unimplemented, format!("no such method: {fetch}")));
    let last = notes.all().pop().expect("a note");
    assert_eq!(last, format!("refused {fetch}: Unimplemented no such method: {fetch}"));
}

#[tokio::test(start_paused = true)]
async fn nodes_are_assigned_to_groups_or_refused() {
    let (edge, inner) = (group("edge", "for the edge"), group("inner", "for the inside"));
    let groups = (edge.clone(), inner.clone());
    let plane = ControlPlane::builder(move |node, call| match node.cluster.as_str() {
        "edge" => Ok(groups.0.clone()),
        "inner" if call.metadata().get("token").is_some() => Ok(groups.1.clone()),
        other => {
            let mut status = tonic::Status::permission_denied(format!("no group for {other:?}"));
            status.metadata_mut().insert("reason", MetadataValue::from_static("unknown"));
            Err(status)
        }
    })
    .build();
    let channel = connect(plane.service(), WINDOW).await;
    let node = |cluster: &str| Node { cluster: cluster.into(), ..Node::new("n") };

    let mut peer = Peer::<Delta>::ads(&channel).await;
    assert_eq!(plane.streams()[0].group(), None, "nothing was said yet");
    peer.subscribe(node("edge"), type_url::CLUSTER, &["*"]).await;
    assert_eq!(peer.resources().await.1, pairs(&[("c", "for the edge")]));
    assert_eq!(edge.streams().len(), 1);
    let stream = &plane.streams()[0];
    let info = (stream.id().0, stream.group(), stream.node().map(|node| node.id.as_str()), stream.peer());
    assert_eq!(info, (1, Some("edge"), Some("n"), None));

    for cluster in ["inner", ""] {
        let mut refused = Peer::<Delta>::ads(&channel).await;
        refused.subscribe(node(cluster), type_url::CLUSTER, &["*"]).await;
        let status = refused.message().await.expect_err("refused");
        assert_eq!((status.code(), status.message()), (Code::PermissionDenied, &*format!("no group for {cluster:?}")));
        assert_eq!(status.metadata().get("reason").expect("it is passed on"), "unknown");
    }
    let mut nobody = Peer::<Delta>::ads(&channel).await;
    nobody.send(xds_machine::message::delta::Request::new(type_url::CLUSTER)).await;
    assert_eq!(nobody.status().await, (Code::PermissionDenied, "no group for \"\"".into()));
    assert_eq!((plane.streams().len(), inner.streams().len()), (1, 0));

    // The group ends: the streams of its clients end, so that they reconnect.
    plane.disconnect("the group is gone", |stream| stream.group() == Some("edge"));
    assert_eq!(peer.status().await, (Code::Unavailable, "the group is gone".into()));
    assert_eq!((plane.streams().len(), edge.streams().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_type_is_not_answered_until_its_resources_are_loaded() {
    let group = Group::new("all");
    let plane = ControlPlane::new(group.clone());
    let channel = connect(plane.service(), WINDOW).await;
    let mut peer = Peer::<Delta>::ads(&channel).await;
    peer.subscribe(Node::new("n"), type_url::CLUSTER, &["c"]).await;
    peer.subscribe(Node::new("n"), type_url::ENDPOINT, &["e"]).await;
    group.replace(&endpoints(), []);
    assert_eq!(peer.next().await.type_url.as_str(), type_url::ENDPOINT, "and not the clusters");
    group.replace(&clusters(), [resource("c", "one")]);
    assert_eq!(peer.resources().await.1, pairs(&[("c", "one")]));
}

#[tokio::test(start_paused = true)]
async fn a_push_reports_which_streams_accepted_rejected_closed_or_are_behind() {
    let group = group("all", "one");
    let notes = Notes::default();
    let all = group.clone();
    let plane = ControlPlane::builder(move |_, _| Ok(all.clone())).observe(notes.clone()).build();
    let channel = connect(plane.service(), WINDOW).await;
    let mut peers = Vec::new();
    for node in ["good", "bad", "slow", "leaver", "idle"] {
        let mut peer = Peer::<Delta>::ads(&channel).await;
        let type_url = if node == "idle" { type_url::ENDPOINT } else { type_url::CLUSTER };
        peer.subscribe(Node::new(node), type_url, &["c"]).await;
        let (response, _) = peer.resources().await;
        peer.ack(&response).await;
        peers.push(peer);
    }
    notes.wait(" ack ", 5).await;
    let all = group.push().acked(Duration::ZERO).await;
    assert_eq!((all.accepted.len(), all.is_accepted()), (5, true), "everything that is held is acknowledged");

    let (changed, push) = group.update(|cache| cache.insert(&clusters(), resource("c", "two")));
    assert!(changed);
    let revision = push.revision();
    let verdicts = tokio::spawn(push.acked(Duration::from_secs(30)));
    for (at, peer) in peers.iter_mut().take(4).enumerate() {
        let (response, resources) = peer.resources().await;
        assert_eq!(resources, pairs(&[("c", "two")]));
        match at {
            0 => peer.ack(&response).await,
            1 => peer.nack(&response, "c: two is too many").await,
            _ => {}
        }
    }
    drop(peers.remove(3)); // the leaver
    let outcome = verdicts.await.expect("no panic");
    let ids = |streams: &[xds_machine_tonic::server::StreamInfo]| -> Vec<String> {
        streams.iter().map(|stream| stream.node().expect("a node").id.clone()).collect()
    };
    assert_eq!(outcome.revision, revision);
    assert_eq!(ids(&outcome.accepted), ["good", "idle"]);
    assert_eq!(ids(&outcome.behind), ["slow"]);
    assert_eq!(ids(&outcome.closed), ["leaver"]);
    let [rejection] = &outcome.rejected[..] else { panic!("{:?}", outcome.rejected) };
    assert_eq!(rejection.stream.node().expect("a node").id, "bad");
    assert_eq!((rejection.type_url.as_str(), rejection.rejected.revision), (type_url::CLUSTER, revision));
    assert_eq!(rejection.rejected.error.message, "c: two is too many");
    assert!(!outcome.is_accepted());

    // The rejection shows in the list of streams until something is accepted.
    let shown = |plane: &ControlPlane| plane.streams()[1].types().remove(0);
    let of = shown(&plane);
    assert_eq!((of.type_url.as_str(), of.wildcard, of.names), (type_url::CLUSTER, false, 1));
    assert_eq!(of.rejected, Some(rejection.rejected.clone()));
    assert_ne!(of.sent, of.accepted);
    let (_, push) = group.update(|cache| cache.insert(&clusters(), resource("c", "one")));
    for peer in [0, 1] {
        let (response, _) = peers[peer].resources().await;
        peers[peer].ack(&response).await;
    }
    drop(peers.remove(2)); // the slow one
    notes.wait(" closed ", 2).await;
    let outcome = push.acked(Duration::from_secs(30)).await;
    assert_eq!(
        (ids(&outcome.accepted), outcome.is_accepted()),
        (vec!["good".into(), "bad".into(), "idle".into()], true)
    );
    let of = shown(&plane);
    assert_eq!((of.rejected, of.sent), (None, of.accepted));
}

#[tokio::test(start_paused = true)]
async fn an_observer_receives_each_event_once_and_in_order() {
    let (notes, all) = (Notes::default(), group("all", "one"));
    let assigned = all.clone();
    let plane = ControlPlane::builder(move |_, _| Ok(assigned.clone()))
        .configure(|config| config.with_control_plane("test"))
        .observe(notes.clone())
        .build();
    let channel = connect(plane.service(), WINDOW).await;
    let mut peer = Peer::<Delta>::ads(&channel).await;
    peer.subscribe(Node::new("n"), type_url::CLUSTER, &["c", "d"]).await;
    let (first, _) = peer.resources().await;
    assert_eq!(first.control_plane, "test");
    peer.ack(&first).await;
    notes.wait(" ack ", 1).await;
    all.update(|cache| cache.insert(&clusters(), resource("d", "two")));
    let (second, _) = peer.resources().await;
    peer.nack(&second, "no").await;
    peer.ack(&first).await;
    notes.wait(" stale ", 1).await;
    drop(peer);
    notes.wait(" closed ", 1).await;
    let expected = [
        "1 opened",
        "1 request",
        "1 node n in -",
        "1 subscribed Cluster [\"c\", \"d\"] wildcard false in -",
        "1 sent Cluster 1.1 [\"c\"] removed 1",
        "1 request",
        "1 ack Cluster 1.1 in all",
        "1 sent Cluster 1.2 [\"d\"] removed 0",
        "1 request",
        "1 nack Cluster 1.2 no in all",
        "1 request",
        "1 stale Cluster 1.1 in all",
        "1 closed Cancelled the client is gone",
    ];
    assert_eq!(notes.all(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_stream_beyond_the_limit_is_refused_until_another_closes() {
    let all = group("all", "one");
    let limits = Limits { streams: 2, ..Limits::default() };
    let notes = Notes::default();
    let plane = ControlPlane::builder(move |_, _| Ok(all.clone())).limits(limits).observe(notes.clone()).build();
    let channel = connect(plane.service(), WINDOW).await;
    let _first = Peer::<Delta>::ads(&channel).await;
    let second = Peer::<Delta>::ads(&channel).await;
    let ads = || path(Variant::Delta, None);
    let status = Peer::<Delta>::open(&channel, ads()).await.err().expect("an error");
    let expected = (Code::ResourceExhausted, "2 streams are open, which is the limit");
    assert_eq!((status.code(), status.message()), expected);
    drop(second);
    notes.wait(" closed ", 1).await;
    Peer::<Delta>::open(&channel, ads()).await.expect("there is room again");
}

#[tokio::test(start_paused = true)]
async fn heartbeats_are_sent_before_the_resource_expires() {
    let all = Group::new("all");
    let ttl = Duration::from_secs(10);
    all.replace(&clusters(), [resource("c", "one").with_ttl(ttl)]);
    let plane = ControlPlane::new(all);
    let channel = connect(plane.service(), WINDOW).await;
    let mut peer = Peer::<Delta>::ads(&channel).await;
    let features = vec!["xds.config.supports-resource-ttl".into()];
    peer.subscribe(Node { client_features: features, ..Node::new("n") }, type_url::CLUSTER, &["c"]).await;
    let start = tokio::time::Instant::now();
    for _ in 0..3 {
        let response = peer.next().await;
        assert_eq!(response.resources[0].name, "c");
        peer.ack(&response).await;
    }
    let passed = start.elapsed();
    assert!(passed > ttl / 2 && passed < ttl * 2, "two heartbeats, each well before the resource expires: {passed:?}");
}
