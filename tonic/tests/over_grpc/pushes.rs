//! What a push and the states of streams say of clients that reject, leave, and come back.

use std::time::Duration;

use xds_machine::message::{Node, delta};
use xds_machine::server::{Cache, DeliveryStatus};
use xds_machine::{Delta, type_url};
use xds_machine_tonic::server::{ControlPlane, Group, Outcome, StreamInfo};

use crate::support::{Notes, Peer, clusters, connect, resource};

const WINDOW: u32 = 1 << 20;
const LIMIT: Duration = Duration::from_secs(30);

/// A group with one cluster, its control plane, and clients that have accepted the cluster.
struct Setup {
    group: Group,
    plane: ControlPlane,
    notes: Notes,
    channel: tonic::transport::Channel,
}

impl Setup {
    async fn new() -> Self {
        let (group, notes) = (Group::new("all"), Notes::default());
        group.replace(&clusters(), [resource("a", "one")]);
        let all = group.clone();
        let plane = ControlPlane::builder(move |_, _| Ok(all.clone())).observe(notes.clone()).build();
        let channel = connect(plane.service(), WINDOW).await;
        Self { group, plane, notes, channel }
    }

    /// Opens a stream of a node, which subscribes to all clusters and receives the first answer.
    async fn open(&self, node: &str) -> (Peer<Delta>, delta::Response) {
        let mut peer = Peer::<Delta>::ads(&self.channel).await;
        peer.subscribe(Node::new(node), type_url::CLUSTER, &["*"]).await;
        let (response, _) = peer.resources().await;
        (peer, response)
    }

    async fn open_and_accept(&self, node: &str) -> Peer<Delta> {
        let acks = self.count(" ack ");
        let (peer, response) = self.open(node).await;
        peer.ack(&response).await;
        self.notes.wait(" ack ", acks + 1).await;
        peer
    }

    fn count(&self, text: &str) -> usize {
        self.notes.all().iter().filter(|line| line.contains(text)).count()
    }

    fn info(&self) -> StreamInfo {
        self.plane.streams().pop().expect("a stream")
    }
}

fn insert(name: &'static str, body: &'static str) -> impl FnOnce(&mut Cache) {
    move |cache| _ = cache.insert(&clusters(), resource(name, body))
}

fn counts(outcome: &Outcome) -> (usize, usize, usize, usize) {
    (outcome.accepted.len(), outcome.rejected.len(), outcome.closed.len(), outcome.behind.len())
}

fn rejected(stream: &StreamInfo) -> Vec<String> {
    let rejected = stream.types().remove(0).rejected;
    rejected.into_iter().flat_map(|rejected| rejected.standing).map(|resource| resource.name.to_string()).collect()
}

/// USERS, V1: the client closed its stream instead of answering, as one does that crashes.
#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_without_an_answer_has_not_accepted() {
    let setup = Setup::new().await;
    let mut peer = setup.open_and_accept("n").await;
    let (_, push) = setup.group.update(insert("deadly", "x"));
    let verdicts = tokio::spawn(push.acked(LIMIT));
    peer.resources().await;
    drop(peer);
    let outcome = verdicts.await.expect("no panic");
    assert_eq!((outcome.is_accepted(), counts(&outcome)), (false, (0, 0, 1, 0)));
}

/// A push follows a node to its next streams, and ends with what the last of them says.
#[tokio::test(start_paused = true)]
async fn a_push_follows_a_node_to_its_next_stream() {
    for accepts in [true, false] {
        let setup = Setup::new().await;
        let mut peer = setup.open_and_accept("n").await;
        let mut other = setup.open_and_accept("other").await;
        let (_, push) = setup.group.update(insert("b", "one"));
        let verdicts = tokio::spawn(push.acked(LIMIT));
        peer.resources().await;
        drop(peer);
        setup.notes.wait(" closed ", 1).await;
        // The second stream ends without an answer too.
        let (peer, _) = setup.open("n").await;
        drop(peer);
        setup.notes.wait(" closed ", 2).await;
        let (third, response) = setup.open("n").await;
        if accepts {
            third.ack(&response).await;
        } else {
            third.nack(&response, "b: no").await;
        }
        let (response, _) = other.resources().await;
        other.ack(&response).await;
        let outcome = verdicts.await.expect("no panic");
        let expected = if accepts { (2, 0, 0, 0) } else { (1, 1, 0, 0) };
        assert_eq!((outcome.is_accepted(), counts(&outcome)), (accepts, expected));
    }
}

/// Another node's stream is not taken for the next stream of a node that left; a node without an id can't be followed.
#[tokio::test(start_paused = true)]
async fn only_the_same_node_continues_a_stream() {
    for node in ["n", ""] {
        let setup = Setup::new().await;
        let peer = setup.open_and_accept(node).await;
        let (_, push) = setup.group.update(insert("b", "one"));
        let verdicts = tokio::spawn(push.acked(LIMIT));
        drop(peer);
        setup.notes.wait(" closed ", 1).await;
        let _other = setup.open_and_accept(if node.is_empty() { "" } else { "other" }).await;
        let outcome = verdicts.await.expect("no panic");
        assert_eq!((outcome.is_accepted(), counts(&outcome)), (false, (0, 0, 1, 0)));
    }
}

/// USERS, V2: in delta, an ACK of something else says nothing of what was rejected before.
#[tokio::test(start_paused = true)]
async fn a_rejection_stands_until_the_resource_is_accepted_or_changed() {
    let setup = Setup::new().await;
    let mut peer = setup.open_and_accept("n").await;
    let (_, push) = setup.group.update(insert("bad", "x"));
    let (response, _) = peer.resources().await;
    peer.nack(&response, "bad: no").await;
    setup.notes.wait(" nack ", 1).await;
    let outcome = push.acked(LIMIT).await;
    assert_eq!((outcome.is_accepted(), counts(&outcome)), (false, (0, 1, 0, 0)));
    assert_eq!(rejected(&setup.info()), ["bad"]);

    let (_, push) = setup.group.update(insert("good", "x"));
    let (response, _) = peer.resources().await;
    peer.ack(&response).await;
    setup.notes.wait(" ack ", 2).await;
    assert_eq!(rejected(&setup.info()), ["bad"], "the ACK of another resource");
    for push in [push, setup.group.push()] {
        let outcome = push.acked(LIMIT).await;
        assert_eq!((outcome.is_accepted(), counts(&outcome)), (false, (0, 1, 0, 0)));
        let rejected = &outcome.rejected[0].rejected;
        assert_eq!((rejected.error.message.as_str(), rejected.standing[0].name.as_str()), ("bad: no", "bad"));
    }
    let statuses = |setup: &Setup| -> Vec<(String, DeliveryStatus)> {
        let deliveries = setup.group.deliveries(&setup.info(), &clusters());
        deliveries.into_iter().map(|resource| (resource.name.to_string(), resource.status)).collect()
    };
    let (acknowledged, was_rejected) = (DeliveryStatus::Acknowledged, DeliveryStatus::Rejected);
    let expected = [("a", acknowledged), ("bad", was_rejected), ("good", acknowledged)];
    assert_eq!(statuses(&setup), expected.map(|(name, status)| (name.into(), status)));

    // A change that is accepted ends it; so does a removal.
    for mend in [true, false] {
        let (_, push) = setup.group.update(|cache| match mend {
            true => cache.insert(&clusters(), resource("bad", "mended")),
            false => cache.remove(&clusters(), "bad"),
        });
        let acks = setup.count(" ack ");
        let response = peer.next().await;
        peer.ack(&response).await;
        setup.notes.wait(" ack ", acks + 1).await;
        assert_eq!(rejected(&setup.info()), [""; 0]);
        assert_eq!(setup.info().types()[0].rejected, None);
        for push in [push, setup.group.push()] {
            let outcome = push.acked(LIMIT).await;
            assert_eq!((outcome.is_accepted(), counts(&outcome)), (true, (1, 0, 0, 0)));
        }
        if mend {
            setup.group.update(insert("bad", "worse"));
            let response = peer.next().await;
            peer.nack(&response, "worse: no").await;
            setup.notes.wait(" nack ", 2).await;
            assert_eq!(rejected(&setup.info()), ["bad"]);
        }
    }
}

/// USERS, V4: a rejection names the resources that its response had.
#[tokio::test(start_paused = true)]
async fn a_rejection_names_the_resources_of_its_response() {
    let setup = Setup::new().await;
    let mut peer = setup.open_and_accept("n").await;
    let (_, push) = setup.group.update(|cache| {
        cache.remove(&clusters(), "a");
        cache.insert(&clusters(), resource("b", "one"));
        cache.insert(&clusters(), resource("c", "one"))
    });
    let verdicts = tokio::spawn(push.acked(LIMIT));
    // In delta, removals may come in a response of their own.
    let response = peer.next().await;
    peer.nack(&response, "one of them").await;
    let response = peer.message();
    if let Ok(Ok(Some(response))) = tokio::time::timeout(Duration::from_secs(1), response).await {
        peer.ack(&response).await;
    }
    let outcome = verdicts.await.expect("no panic");
    let rejected = &outcome.rejected[0].rejected;
    let names: Vec<_> = rejected.resources.iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["b", "c"]);
    let standing: Vec<_> = rejected.standing.iter().map(|resource| resource.name.as_str()).collect();
    assert_eq!((standing, rejected.standing_count), (vec!["b", "c"], 2));
    assert!(rejected.standing.iter().all(|resource| resource.reason == "one of them"));
}
