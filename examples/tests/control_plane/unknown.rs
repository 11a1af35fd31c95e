//! What can't be read is not known, and nothing that it may hold is said to be removed.

use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::sync::Arc;

use xds_machine::message::Node;
use xds_machine::{Delta, Nonce, ResourceName, Sotw, Version, type_url};

use crate::messages::*;
use crate::support::{ControlPlane, Dir, Peer};

const WRONG: &str =
    "{\"resources\": [{\"@type\": \"type.googleapis.com/envoy.config.cluster.v3.Cluster\", \"nam\": \"b\"}]}";

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_a_broken_file_removes_nothing() {
    let dir = Dir::new("cp-unknown-restart");
    dir.put("a.json", clusters(&[("a", 1)]));
    dir.put("b.json", WRONG);
    let control_plane = ControlPlane::start(&dir);
    control_plane.said(&format!("{}: resources[0].nam: Cluster has no such field", dir.0.join("b.json").display()));

    // Both held b before the restart.
    let mut delta = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
    let mut request = delta_request(type_url::CLUSTER, &[]);
    request.node = Some(Arc::new(Node::new("n")));
    request.initial_versions = [(ResourceName::from("b"), Version::from("1"))].into_iter().collect();
    delta.send(request).await;
    let mut sotw = Peer::<Sotw>::open(control_plane.channel(), ADS_SOTW).await;
    sotw.send(sotw_request(type_url::CLUSTER, &[], &Nonce::default())).await;
    control_plane.events(4);

    // The first answers come when b is known.
    dir.put("b.json", clusters(&[("b", 1)]));
    let first = delta.next().await;
    assert_eq!((names(&first), first.removed.len()), (vec!["a", "b"], 0));
    assert_eq!(items(&sotw.next().await), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_new_file_can_not_be_read_nothing_is_removed() {
    let dir = Dir::new("cp-unknown-new");
    dir.put("a.json", clusters(&[("a", 1), ("b", 1)]));
    dir.put("c.json", clusters(&[("c", 1)]));
    let control_plane = ControlPlane::start(&dir);
    let mut peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
    let mut request = delta_request(type_url::CLUSTER, &[]);
    request.node = Some(Arc::new(Node::new("n")));
    peer.send(request).await;
    let first = peer.next().await;
    assert_eq!(names(&first), ["a", "b", "c"]);
    peer.send(delta_answer(type_url::CLUSTER, &first.nonce, None)).await;

    // b moves to another file, which has an error; c goes for good.
    dir.put("b.json", WRONG);
    control_plane.said(&format!("{}: resources[0].nam: Cluster has no such field", dir.0.join("b.json").display()));
    dir.put("a.json", clusters(&[("a", 2)]));
    std::fs::remove_file(dir.0.join("c.json")).expect("removed");
    let changed = peer.next().await;
    assert_eq!((names(&changed), changed.removed.len()), (vec!["a"], 0));
    peer.send(delta_answer(type_url::CLUSTER, &changed.nonce, None)).await;
    control_plane.news(4);

    dir.put("b.json", clusters(&[("b", 2)]));
    let complete = peer.next().await;
    assert_eq!((names(&complete), complete.removed.len()), (vec!["b"], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_being_written_is_not_read() {
    let dir = Dir::new("cp-half");
    dir.put("a.yaml", yaml(&["a", "b"]));
    let mut control_plane = ControlPlane::start(&dir);
    let mut peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
    let mut request = delta_request(type_url::CLUSTER, &[]);
    request.node = Some(Arc::new(Node::new("n")));
    peer.send(request).await;
    let first = peer.next().await;
    assert_eq!(names(&first), ["a", "b"]);
    peer.send(delta_answer(type_url::CLUSTER, &first.nonce, None)).await;

    // The first half is a whole document, and its writer pauses.
    let whole = yaml(&["a", "b", "c"]);
    let half = yaml(&["a"]).len();
    let mut file = File::create(dir.0.join("a.yaml")).expect("a file");
    file.write_all(&whole.as_bytes()[..half]).expect("half");
    dir.put("d.json", clusters(&[("d", 1)]));
    let other = peer.next().await;
    assert_eq!((names(&other), other.removed.len()), (vec!["d"], 0), "others are not held up");
    peer.send(delta_answer(type_url::CLUSTER, &other.nonce, None)).await;

    file.write_all(&whole.as_bytes()[half..]).expect("the rest");
    drop(file);
    let rest = peer.next().await;
    assert_eq!((names(&rest), rest.removed.len()), (vec!["c"], 0));

    // SIGHUP reads all files again, and SIGTERM still ends the program.
    signal(&control_plane, "HUP");
    control_plane.said("SIGHUP: all files are read again");
    dir.put("d.json", clusters(&[("d", 2)]));
    peer.send(delta_answer(type_url::CLUSTER, &rest.nonce, None)).await;
    assert_eq!(names(&peer.next().await), ["d"]);
    signal(&control_plane, "TERM");
    assert_eq!(control_plane.ended(), Some(0));
}

fn yaml(names: &[&str]) -> String {
    let of = |name: &&str| format!("- {{'@type': {}, name: {name}, connect_timeout: 1s}}\n", type_url::CLUSTER);
    format!("resources:\n{}", names.iter().map(of).collect::<String>())
}

fn signal(control_plane: &ControlPlane, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), control_plane.id().to_string()]).status();
    assert!(sent.expect("a program").success());
}
