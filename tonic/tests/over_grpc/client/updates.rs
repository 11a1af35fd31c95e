//! Types as a whole.

use std::time::Duration;

use tokio::time::timeout;
use xds_machine::client::{Action, Rejection, Update};
use xds_machine::{servers, type_url};
use xds_machine_tonic::client::{Report, Updates, WatchError};

use super::plane::Plane;
use super::{Cluster, Endpoints, client};

/// Returns the next update; other reports are skipped.
pub(super) async fn update(updates: &mut Updates) -> Update {
    loop {
        if let Report::Action(servers::Action::Client { action: Action::Apply(update), .. }) =
            updates.next().await.expect("a report")
        {
            return update;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn updates_wait_for_their_verdict() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let mut updates = client.updates().await.expect("a client");
    updates.subscribe(type_url::CLUSTER, ["a", "b"]).await.expect("names");
    let (mut peer, first) = plane.accept().await;
    assert_eq!(first.subscribe, ["a", "b"]);
    assert!(matches!(updates.next().await, Some(Report::Opened { type_url: None, .. })));
    peer.send(type_url::CLUSTER, "1", &[("a", "x"), ("b", "y")], &[]).await;
    peer.send(type_url::CLUSTER, "2", &[("a", "z")], &[]).await;
    let first = update(&mut updates).await;
    peer.hears_nothing().await;
    let again = first.clone();
    updates.verdict(first.reject([Rejection::new("b", "no")])).await.expect("it waits");
    assert_eq!(peer.request().await.error.expect("a NACK").message, "b: no");
    let second = update(&mut updates).await;
    assert_eq!(second.nonce(), "2");
    updates.verdict(second.accept()).await.expect("it waits");
    assert_eq!(peer.request().await.nonce, "2");
    let misuse = updates.verdict(again.accept()).await.expect_err("it has one");
    assert_eq!(misuse.to_string(), format!("no update for {} waits for this verdict", type_url::CLUSTER));

    updates.unsubscribe(type_url::CLUSTER, ["a"]);
    assert_eq!(peer.request().await.unsubscribe, ["a"]);
    peer.end(tonic::Code::Aborted, "enough").await;
    let Some(Report::Closed { reason, again_in: Some(_), .. }) = updates.next().await else { panic!("a close") };
    assert_eq!(reason, "Aborted: enough");
}

/// USERS, V10: an update that the program drops is rejected, which the server is told, and the type goes on. An update
/// that is still somewhere, or has its verdict, is not.
#[tokio::test(start_paused = true)]
async fn an_update_dropped_without_a_verdict_is_rejected() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let mut updates = client.updates().await.expect("a client");
    updates.subscribe(type_url::CLUSTER, ["a"]).await.expect("a name");
    let (mut peer, _) = plane.accept().await;
    let drops: [fn(Update); 3] = [drop, |update| drop(update.accept()), |update| drop(update.reject_all("not sent"))];
    for (nonce, give_up) in ["1", "2", "3"].into_iter().zip(drops) {
        peer.send(type_url::CLUSTER, nonce, &[("a", nonce)], &[]).await;
        let update = update(&mut updates).await;
        let other = update.clone();
        give_up(update);
        peer.hears_nothing().await;
        give_up(other);
        let nack = peer.request().await;
        let message = nack.error.expect("a NACK").message;
        assert_eq!((nack.nonce.as_str(), message.as_str()), (nonce, "a: the application gave no verdict"));
    }
    let row = client.dump().await.remove(0);
    assert_eq!(row.error.map(|error| error.status.message), Some("the application gave no verdict".into()));
    peer.send(type_url::CLUSTER, "4", &[("a", "x")], &[]).await;
    let good = update(&mut updates).await;
    updates.verdict(good.accept()).await.expect("it waits");
    let ack = peer.request().await;
    assert_eq!((ack.nonce.as_str(), ack.error), ("4", None));
    peer.hears_nothing().await;
}

/// The update of an owner that leaves without a verdict does not block its type, which is free for other owners.
#[tokio::test(start_paused = true)]
async fn a_dropped_owner_acks_its_update_and_frees_its_type() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let mut updates = client.updates().await.expect("a client");
    updates.subscribe(type_url::CLUSTER, ["a"]).await.expect("a name");
    let _other = client.watch::<Endpoints>("b").await.expect("a name");
    let in_use = WatchError::InUse { type_url: type_url::CLUSTER.into() };
    assert_eq!(client.watch::<Cluster>("a").await.expect_err("in use"), in_use);
    let (mut peer, _) = plane.accept().await;
    peer.request().await;
    peer.send(type_url::CLUSTER, "1", &[("a", "x")], &[]).await;
    let _unjudged = update(&mut updates).await;
    drop(updates);
    let answer = peer.request().await;
    assert_eq!((answer.nonce.as_str(), answer.error), ("1", None));
    assert_eq!(peer.request().await.unsubscribe, ["a"]);
    let mut watch = client.watch::<Cluster>("a").await.expect("the type is free");
    assert_eq!(peer.request().await.subscribe, ["a"]);
    peer.send(type_url::CLUSTER, "2", &[("a", "y")], &[]).await;
    assert!(watch.next().await.is_some());
}

/// Another owner can neither unsubscribe a name nor judge an update. A type whose last name was unsubscribed before the
/// verdict is free after the verdict.
#[tokio::test(start_paused = true)]
async fn an_update_belongs_to_its_owner() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let mut updates = client.updates().await.expect("a client");
    let other = client.updates().await.expect("a client");
    updates.subscribe(type_url::CLUSTER, ["a"]).await.expect("a name");
    let _endpoints = client.watch::<Endpoints>("b").await.expect("a name"); // keeps the stream open
    let (mut peer, _) = plane.accept().await;
    peer.request().await;
    peer.send(type_url::CLUSTER, "1", &[("a", "x")], &[]).await;
    other.unsubscribe(type_url::CLUSTER, ["a"]);
    let first = update(&mut updates).await;
    let misuse = other.verdict(first.clone().accept()).await.expect_err("not its update");
    assert_eq!(misuse.to_string(), format!("no update for {} waits for this verdict", type_url::CLUSTER));
    updates.unsubscribe(type_url::CLUSTER, ["a"]);
    assert_eq!(peer.request().await.unsubscribe, ["a"]);
    let in_use = WatchError::InUse { type_url: type_url::CLUSTER.into() };
    assert_eq!(client.watch::<Cluster>("a").await.expect_err("in use"), in_use);
    updates.verdict(first.accept()).await.expect("it waits");
    assert_eq!(peer.request().await.nonce, "1");
    let _watch = client.watch::<Cluster>("a").await.expect("the type is free");
    assert_eq!(peer.request().await.subscribe, ["a"]);
}

/// An owner that does not read holds the server back, and loses no report.
#[tokio::test(start_paused = true)]
async fn unread_reports_cause_back_pressure_and_none_is_lost() {
    let mut plane = Plane::new();
    let client = client(&[&plane]).start().expect("a client");
    let mut updates = client.updates().await.expect("a client");
    updates.subscribe(type_url::CLUSTER, ["a"]).await.expect("a name");
    let (mut peer, _) = plane.accept().await;
    // Responses that the machine rejects by itself: each is a report, and needs no verdict.
    let (mut sent, second) = (0, Duration::from_secs(1));
    loop {
        peer.send(type_url::CLUSTER, &sent.to_string(), &[("a", "x"), ("a", "x")], &[]).await;
        let Ok(nack) = timeout(second, peer.request()).await else { break };
        assert_eq!(nack.nonce.as_str(), sent.to_string());
        sent += 1;
        assert!(sent < 1000, "nothing holds the server back");
    }
    let mut rejected = 0;
    while rejected <= sent {
        let report = timeout(second, updates.next()).await.expect("a report").expect("not the end");
        if let Report::Action(servers::Action::Client { action: Action::Rejected { nonce, .. }, .. }) = report {
            assert_eq!(nonce.as_str(), rejected.to_string());
            rejected += 1;
        }
    }
    assert_eq!(peer.request().await.nonce.as_str(), sent.to_string());
}
