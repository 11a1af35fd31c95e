//! Groups of nodes, each with a sub-folder.

use std::fs;
use std::sync::Arc;

use xds_machine::message::{Node, delta};
use xds_machine::{Delta, type_url};

use crate::messages::*;
use crate::support::{ControlPlane, Dir, Peer};

/// Opens a stream of a node whose cluster names its group, and subscribes to all clusters.
async fn open(control_plane: &ControlPlane, group: &str) -> Peer<Delta> {
    let peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
    let node = Some(Arc::new(Node::new("n").with_cluster(group)));
    peer.send(delta::Request { node, ..delta_request(type_url::CLUSTER, &[]) }).await;
    peer
}

/// Receives a response and accepts it. Returns names with their timeouts, and the removed names.
async fn next(peer: &mut Peer<Delta>) -> (Vec<(String, u8)>, Vec<String>) {
    let response = peer.next().await;
    peer.send(delta_answer(type_url::CLUSTER, &response.nonce, None)).await;
    let seconds = |body: &xds_machine::message::Any| *body.value.last().expect("seconds");
    let resources = response.resources.iter();
    let mut resources: Vec<_> = resources
        .map(|resource| (resource.name.to_string(), resource.body.as_ref().map(seconds).expect("content")))
        .collect();
    resources.sort();
    (resources, response.removed.iter().map(ToString::to_string).collect())
}

fn owned(resources: &[(&str, u8)], removed: &[&str]) -> (Vec<(String, u8)>, Vec<String>) {
    let resources = resources.iter().map(|(name, seconds)| ((*name).to_owned(), *seconds)).collect();
    (resources, removed.iter().map(ToString::to_string).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_of_a_group_override_those_for_all_nodes() {
    let dir = Dir::new("cp-groups");
    dir.put("all.json", clusters(&[("a", 1), ("b", 1)]));
    fs::create_dir(dir.0.join("edge")).expect("a folder");
    dir.put("edge/own.json", clusters(&[("b", 7), ("c", 7)]));
    let control_plane = ControlPlane::start_with(&dir, &["--group-by", "cluster"]);
    let mut edge = open(&control_plane, "edge").await;
    assert_eq!(next(&mut edge).await, owned(&[("a", 1), ("b", 7), ("c", 7)], &[]));
    let mut others = Vec::new();
    for group in ["", "other", "Edge", "edge/", "./edge", "..", "edge/../edge"] {
        let mut peer = open(&control_plane, group).await;
        assert_eq!(next(&mut peer).await, owned(&[("a", 1), ("b", 1)], &[]), "{group:?}");
        others.push(peer);
    }

    // The resources for all nodes change. In a group with a resource of the same name, the change stays hidden.
    dir.put("all.json", clusters(&[("a", 2), ("b", 2)]));
    assert_eq!(next(&mut edge).await, owned(&[("a", 2)], &[]));
    for peer in &mut others {
        assert_eq!(next(peer).await, owned(&[("a", 2), ("b", 2)], &[]));
    }
    // A resource that the group no longer has is replaced by the one for all nodes.
    dir.put("edge/own.json", clusters(&[("c", 8)]));
    assert_eq!(next(&mut edge).await, owned(&[("b", 2), ("c", 8)], &[]));
}

#[tokio::test(flavor = "multi_thread")]
async fn added_and_removed_group_folders_take_effect_on_open_streams() {
    let dir = Dir::new("cp-groups-late");
    dir.put("all.json", clusters(&[("a", 1), ("b", 1)]));
    let control_plane = ControlPlane::start_with(&dir, &["--group-by", "cluster"]);
    let mut edge = open(&control_plane, "edge").await;
    assert_eq!(next(&mut edge).await, owned(&[("a", 1), ("b", 1)], &[]));
    let mut other = open(&control_plane, "other").await;
    next(&mut other).await;

    // A folder made aside and moved into place.
    let aside = Dir::new("cp-groups-late-aside");
    aside.put("own.json", clusters(&[("b", 7), ("c", 7)]));
    fs::rename(&aside.0, dir.0.join("edge")).expect("moved");
    assert_eq!(next(&mut edge).await, owned(&[("b", 7), ("c", 7)], &[]));
    let mut late = open(&control_plane, "edge").await;
    assert_eq!(next(&mut late).await, owned(&[("a", 1), ("b", 7), ("c", 7)], &[]));

    fs::remove_dir_all(dir.0.join("edge")).expect("removed");
    for peer in [&mut edge, &mut late] {
        assert_eq!(next(peer).await, owned(&[("b", 1)], &["c"]));
    }
    // Streams of a group without a folder still see the resources for all nodes.
    dir.put("all.json", clusters(&[("a", 3), ("b", 1)]));
    for peer in [&mut edge, &mut late, &mut other] {
        assert_eq!(next(peer).await, owned(&[("a", 3)], &[]));
    }
    // And again a folder, made in place.
    fs::create_dir(dir.0.join("edge")).expect("a folder");
    dir.put("edge/own.json", clusters(&[("d", 9)]));
    for peer in [&mut edge, &mut late] {
        assert_eq!(next(peer).await, owned(&[("d", 9)], &[]));
    }
    dir.put("all.json", clusters(&[("a", 3)]));
    assert_eq!(next(&mut other).await, owned(&[], &["b"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_group_by_sub_folders_are_not_read() {
    let dir = Dir::new("cp-groups-off");
    dir.put("all.json", clusters(&[("a", 1)]));
    fs::create_dir(dir.0.join("edge")).expect("a folder");
    dir.put("edge/own.json", clusters(&[("b", 7)]));
    let control_plane = ControlPlane::start(&dir);
    let mut edge = open(&control_plane, "edge").await;
    assert_eq!(next(&mut edge).await, owned(&[("a", 1)], &[]));
    assert_eq!(control_plane.news(1).len(), 1);
}
