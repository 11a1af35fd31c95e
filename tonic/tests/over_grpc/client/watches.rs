//! Watchers of names, of the wildcard, of collections.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use xds_machine::watch::News;
use xds_machine::{WILDCARD, type_url};
use xds_machine_tonic::client::{Watch, WatchError, XdsResource};

use super::plane::Plane;
use super::{Cluster, Endpoints, Text, client};

/// Returns the next news as text.
async fn news<const TYPE: usize>(watch: &mut Watch<Text<TYPE>>) -> String
where
    Text<TYPE>: XdsResource,
{
    let event = timeout(Duration::from_secs(3600), watch.next()).await.expect("news").expect("not the end");
    let name = event.name;
    match event.news {
        News::Changed(Ok(content)) => format!("{name}: {}", content.0),
        News::Changed(Err(status)) => format!("{name} is gone: {}", status.message),
        News::Ambient(Some(status)) => format!("{name} has an error: {}", status.message),
        News::Ambient(None) => format!("{name} is well again"),
        News::Synced => "that is all".into(),
        other => format!("{name}: {other:?}"),
    }
}

async fn is_silent<const TYPE: usize>(watch: &mut Watch<Text<TYPE>>)
where
    Text<TYPE>: XdsResource,
{
    assert!(timeout(Duration::from_secs(3600), watch.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_first_watcher_of_a_name_subscribes_it_and_the_last_ends_the_subscription() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let mut one = client.watch::<Cluster>("a").await.expect("a name");
    let mut two = client.watch::<Cluster>("a").await.expect("a name");
    let (mut peer, first) = plane.accept().await;
    assert_eq!(peer.path, "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources");
    assert_eq!((first.node.expect("a node").id.as_str(), &first.subscribe[..]), ("me", &["a".into()][..]));
    peer.send(type_url::CLUSTER, "1", &[("a", "x")], &[]).await;
    assert_eq!(peer.request().await.nonce, "1");
    assert_eq!((news(&mut one).await, news(&mut two).await), ("a: x".into(), "a: x".into()));

    // A later watcher gets the known content, without a request.
    let mut three = client.watch::<Cluster>("a").await.expect("a name");
    assert_eq!(news(&mut three).await, "a: x");
    drop((one, two));
    peer.hears_nothing().await;
    drop(three);
    assert!(peer.next().await.is_none(), "nothing is watched: the stream ends");

    // The next watcher opens a new stream.
    let mut again = client.watch::<Cluster>("a").await.expect("a name");
    let (peer, first) = plane.accept().await;
    assert_eq!(first.subscribe, ["a"]);
    peer.send(type_url::CLUSTER, "1", &[("a", "y")], &[]).await;
    assert_eq!(news(&mut again).await, "a: y");
}

#[tokio::test(start_paused = true)]
async fn wildcard_and_collection_watchers_receive_each_resource() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).authority("x", []).start().expect("a client");
    let glob = "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/web/*";
    let mut all = client.watch::<Cluster>(WILDCARD).await.expect("a wildcard");
    let mut some = client.watch::<Endpoints>(glob).await.expect("a collection");
    let (mut peer, first) = plane.accept().await;
    assert_eq!((first.type_url.as_str(), &first.subscribe[..]), (type_url::CLUSTER, &[][..]), "the legacy form");
    let second = peer.request().await;
    assert_eq!((second.type_url.as_str(), &second.subscribe[..]), (type_url::ENDPOINT, &[glob.into()][..]));
    peer.send(type_url::CLUSTER, "1", &[("a", "x"), ("b", "y")], &[]).await;
    assert_eq!((news(&mut all).await, news(&mut all).await), ("a: x".into(), "b: y".into()));
    assert_eq!(news(&mut all).await, "that is all");
    peer.request().await;
    let one = glob.replace('*', "1");
    peer.send(type_url::ENDPOINT, "2", &[(&one, "z")], &[]).await;
    assert_eq!(news(&mut some).await, format!("{one}: z"));
    peer.request().await;
    peer.send(type_url::CLUSTER, "3", &[], &["a"]).await;
    assert_eq!(news(&mut all).await, "a is gone: the server removed the resource");
}

/// USERS, V6: each watcher of the wildcard hears when it knows all, be it nothing; also one that comes later.
#[tokio::test(start_paused = true)]
async fn each_wildcard_watcher_hears_that_the_answer_is_complete() {
    for count in [0, 1, 3] {
        let mut plane = Plane::new();
        let client = client(&[&plane]).start().expect("a client");
        let mut first = client.watch::<Cluster>(WILDCARD).await.expect("a wildcard");
        let (mut peer, _) = plane.accept().await;
        let all = &[("a", "x"), ("b", "bad"), ("c", "z")][..count];
        peer.send(type_url::CLUSTER, "1", all, &[]).await;
        peer.request().await;
        let told = ["a: x", "b is gone: this is bad", "c: z"];
        for line in told[..count].iter().copied().chain(["that is all"]) {
            assert_eq!(news(&mut first).await, line);
        }
        // What is rejected is not held, so that a later watcher is not told of it.
        let mut second = client.watch::<Cluster>(WILDCARD).await.expect("a wildcard");
        let held = told[..count].iter().copied().filter(|line| !line.contains("gone"));
        for line in held.chain(["that is all"]) {
            assert_eq!(news(&mut second).await, line);
        }
        peer.send(type_url::CLUSTER, "2", &[("late", "y")], &[]).await;
        for watch in [&mut first, &mut second] {
            assert_eq!(news(watch).await, "late: y");
            is_silent(watch).await;
        }
        // The wildcard is subscribed to anew, and not answered yet.
        drop((first, second));
        let mut third = client.watch::<Cluster>(WILDCARD).await.expect("a wildcard");
        is_silent(&mut third).await;
    }
}

/// An empty answer to a name, which was asked for first, says nothing of the wildcard.
#[tokio::test(start_paused = true)]
async fn an_answer_to_a_name_does_not_complete_the_wildcard() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let mut one = client.watch::<Cluster>("a").await.expect("a name");
    let (mut peer, _) = plane.accept().await;
    let mut all = client.watch::<Cluster>(WILDCARD).await.expect("a wildcard");
    assert_eq!(peer.request().await.subscribe, ["*"]);
    peer.send(type_url::CLUSTER, "1", &[], &["a"]).await;
    for watch in [&mut one, &mut all] {
        assert_eq!(news(watch).await, "a is gone: the resource does not exist");
        is_silent(watch).await;
    }
    peer.send(type_url::CLUSTER, "2", &[("b", "y")], &[]).await;
    assert_eq!((news(&mut all).await, news(&mut all).await), ("b: y".into(), "that is all".into()));
}

/// A program that must not serve half a table waits for all its types, watched or followed.
#[tokio::test(start_paused = true)]
async fn a_caller_can_wait_until_several_types_are_complete() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let both = [type_url::CLUSTER, type_url::ENDPOINT];
    let _watch = client.watch::<Cluster>(WILDCARD).await.expect("a wildcard");
    let mut updates = client.updates().await.expect("a client");
    updates.subscribe(type_url::ENDPOINT, [WILDCARD]).await.expect("a wildcard");
    let (mut peer, _) = plane.accept().await;
    peer.request().await;
    let is_pending = async |types: &[&'static str]| {
        let synced = client.synced(types.iter().copied());
        timeout(Duration::from_secs(3600), synced).await.is_err()
    };
    assert!(is_pending(&both[..1]).await);
    peer.send(type_url::CLUSTER, "1", &[], &[]).await;
    assert_eq!(client.synced([type_url::CLUSTER]).await, Ok(()));
    let waits = tokio::spawn({
        let client = client.clone();
        async move { client.synced(both).await }
    });
    peer.send(type_url::ENDPOINT, "2", &[("e", "x")], &[]).await;
    let update = super::updates::update(&mut updates).await;
    assert!(update.answers_wildcard());
    assert!(is_pending(&both).await, "the update has no verdict");
    updates.verdict(update.accept()).await.expect("it waits");
    assert_eq!(waits.await.expect("no panic"), Ok(()));
    drop(updates);
    assert!(is_pending(&both).await, "the type is not watched any more");
    client.close().await;
    assert_eq!(client.synced([type_url::CLUSTER]).await, Err(WatchError::Closed));
}

/// The NACK names the rejected resource and the reason, the others are applied, and a watcher keeps its content.
#[tokio::test(start_paused = true)]
async fn a_resource_that_cannot_be_decoded_is_rejected() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let mut a = client.watch::<Cluster>("a").await.expect("a name");
    let mut b = client.watch::<Cluster>("b").await.expect("a name");
    let (mut peer, _) = plane.accept().await;
    peer.send(type_url::CLUSTER, "1", &[("a", "x"), ("b", "bad")], &[]).await;
    let nack = peer.request().await;
    assert_eq!((nack.nonce.as_str(), nack.error.expect("a NACK").message.as_str()), ("1", "b: this is bad"));
    assert_eq!(news(&mut a).await, "a: x");
    assert_eq!(news(&mut b).await, "b is gone: this is bad");
    peer.send(type_url::CLUSTER, "2", &[("a", "bad"), ("b", "y")], &[]).await;
    assert_eq!(peer.request().await.error.expect("a NACK").message, "a: this is bad");
    assert_eq!(news(&mut a).await, "a has an error: this is bad");
    assert_eq!(news(&mut b).await, "b: y");
    peer.send(type_url::CLUSTER, "3", &[("a", "x")], &[]).await;
    assert_eq!(peer.request().await.error, None);
    assert_eq!(news(&mut a).await, "a is well again");
}

#[tokio::test(start_paused = true)]
async fn a_slow_watcher_receives_only_the_latest_content() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let mut slow = client.watch::<Cluster>("a").await.expect("a name");
    let (mut peer, _) = plane.accept().await;
    for (nonce, text) in [("1", "x"), ("2", "y"), ("3", "z")] {
        peer.send(type_url::CLUSTER, nonce, &[("a", text)], &[]).await;
        assert_eq!(peer.request().await.nonce, nonce, "no watcher delays the ACK");
    }
    assert_eq!(news(&mut slow).await, "a: z");
    is_silent(&mut slow).await;
}

/// A resource is decoded once, whatever the number of its watchers.
#[tokio::test(start_paused = true)]
async fn many_watchers_share_one_decoded_resource() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let mut one = client.watch::<Cluster>("a").await.expect("a name");
    let mut all = client.watch::<Cluster>(WILDCARD).await.expect("a wildcard");
    let (peer, _) = plane.accept().await;
    peer.send(type_url::CLUSTER, "1", &[("a", "x")], &[]).await;
    let content = |event: Option<xds_machine::watch::Event<Arc<Cluster>>>| match event.expect("an event").news {
        News::Changed(Ok(content)) => content,
        other => panic!("{other:?}"),
    };
    assert!(Arc::ptr_eq(&content(one.next().await), &content(all.next().await)));
}

#[tokio::test(start_paused = true)]
async fn a_second_form_of_a_type_and_an_invalid_name_are_refused() {
    #[derive(Debug, PartialEq)]
    struct Other;
    impl XdsResource for Other {
        const TYPE_URL: &'static str = type_url::CLUSTER;
        type Error = &'static str;
        fn decode(_: &xds_machine::ResourceName, _: &bytes::Bytes) -> Result<Self, Self::Error> {
            Ok(Self)
        }
    }
    let plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let first = client.watch::<Cluster>("a").await.expect("a name");
    let refused = client.watch::<Other>("b").await.expect_err("another form").to_string();
    assert_eq!(refused, format!("{} is in use in another form", type_url::CLUSTER));
    drop(first);
    let other = client.watch::<Other>("b").await.expect("the type is free again");
    let refused = client.watch::<Endpoints>("").await.expect_err("no name");
    assert_eq!(refused.to_string(), "a resource name must not be empty");
    let refused = client.watch::<Endpoints>("xdstp://nobody/envoy.config.endpoint.v3.ClusterLoadAssignment/a").await;
    let reason = "no server is configured for xdstp://nobody/envoy.config.endpoint.v3.ClusterLoadAssignment/a";
    assert_eq!(refused.expect_err("no server").to_string(), reason);
    client.close().await;
    assert_eq!(client.watch::<Other>("b").await.expect_err("closed"), WatchError::Closed);
    drop(other);
}

#[tokio::test(start_paused = true)]
async fn each_type_may_have_a_stream_of_its_own() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).separate_streams().start().expect("a client");
    let mut a = client.watch::<Cluster>("a").await.expect("a name");
    let (cds, _) = plane.accept().await;
    let mut b = client.watch::<Endpoints>("b").await.expect("a name");
    let (eds, _) = plane.accept().await;
    assert_eq!(cds.path, "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters");
    assert_eq!(eds.path, "/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints");
    cds.send(type_url::CLUSTER, "1", &[("a", "x")], &[]).await;
    eds.send(type_url::ENDPOINT, "1", &[("b", "y")], &[]).await;
    assert_eq!((news(&mut a).await, news(&mut b).await), ("a: x".into(), "b: y".into()));
    eds.end(tonic::Code::Unavailable, "away").await;
    let (_, again) = plane.accept().await;
    assert_eq!(again.type_url, type_url::ENDPOINT);
    let types: Vec<_> = client.server_states().iter().map(|state| state.type_url).collect();
    assert_eq!(types, [Some(type_url::CLUSTER), Some(type_url::ENDPOINT)]);
}
