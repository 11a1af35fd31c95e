//! Conversations with clients, good and rude ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tonic::Code;
use xds_machine::message::{Node, delta};
use xds_machine::{Delta, Nonce, Sotw, Status, type_url};

use crate::messages::*;
use crate::support::{ControlPlane, Dir, Peer};

#[tokio::test(flavor = "multi_thread")]
async fn a_delta_conversation_is_served_and_logged() {
    let dir = Dir::new("cp-delta");
    dir.put("clusters.json", clusters(&[("c1", 1), ("c2", 1)]));
    dir.put("endpoints.json", endpoints(&["c1", "c2"]));
    let control_plane = ControlPlane::start(&dir);
    let mut peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;

    let mut request = delta_request(type_url::CLUSTER, &[]);
    request.node = Some(Arc::new(Node::new("n")));
    peer.send(request).await;
    let all = peer.next().await;
    peer.send(delta_answer(type_url::CLUSTER, &all.nonce, None)).await;
    peer.send(delta_request(type_url::ENDPOINT, &["c1", "c9"])).await;
    let first = peer.next().await;
    assert_eq!((names(&first), first.removed.len()), (vec!["c1"], 1));
    peer.send(delta_answer(type_url::ENDPOINT, &first.nonce, None)).await;
    control_plane.events(7); // before the file changes, lest that event is logged first

    // A changed cluster causes its endpoints to be sent again.
    dir.put("clusters.json", clusters(&[("c1", 2)]));
    let mut changed = peer.next().await;
    assert_eq!((names(&changed), changed.removed.len()), (vec!["c1"], 1));
    let again = peer.next().await;
    assert_eq!(names(&again), ["c1"]);
    peer.send(delta_answer(type_url::ENDPOINT, &again.nonce, None)).await;

    // A rejected version is not sent again: the next response holds the next change.
    peer.send(delta_answer(type_url::CLUSTER, &changed.nonce, Some("no"))).await;
    control_plane.events(11);
    dir.put("more.json", clusters(&[("c3", 1)]));
    changed = peer.next().await;
    assert_eq!(names(&changed), ["c3"]);
    peer.send(delta_answer(type_url::CLUSTER, &all.nonce, None)).await;
    control_plane.events(13);
    drop(peer);

    let (cds, eds) = (type_url::CLUSTER, type_url::ENDPOINT);
    let event = |event: &str, type_url: &str, mut rest: Value| {
        let more = rest.as_object_mut().expect("an object");
        more.extend([
            ("event".into(), event.into()),
            ("stream".into(), 1.into()),
            ("node".into(), "n".into()),
            ("type_url".into(), type_url.into()),
        ]);
        rest
    };
    let stale = "the nonce of no response that waits for an answer";
    let events = control_plane.events(14);
    let expected = [
        json!({"event": "open", "stream": 1}),
        event("subscribed", cds, json!({"names": ["*"]})),
        event("send", cds, json!({"nonce": "1.1", "resources": ["c1", "c2"], "removed": []})),
        event("ack", cds, json!({"nonce": "1.1"})),
        event("subscribed", eds, json!({"names": ["c1", "c9"]})),
        event("send", eds, json!({"nonce": "1.2", "resources": ["c1"], "removed": ["c9"]})),
        event("ack", eds, json!({"nonce": "1.2"})),
        event("send", cds, json!({"nonce": "1.3", "resources": ["c1"], "removed": ["c2"]})),
        event("send", eds, json!({"nonce": "1.4", "resources": ["c1"], "removed": []})),
        event("ack", eds, json!({"nonce": "1.4"})),
        event("nack", cds, json!({"nonce": "1.3", "code": 13, "message": "no"})),
        event("send", cds, json!({"nonce": "1.5", "resources": ["c3"], "removed": []})),
        event("drop_stale", cds, json!({"nonce": "1.1", "message": stale})),
    ];
    for (at, expected) in expected.iter().enumerate() {
        assert_eq!(events[at], *expected, "event {at}");
    }
    assert_eq!(events[13]["event"], "close");
}

#[tokio::test(flavor = "multi_thread")]
async fn sotw_new_names_and_changes_are_answered_and_plain_nacks_are_not() {
    let dir = Dir::new("cp-sotw");
    dir.put("clusters.json", clusters(&[("c1", 1), ("c2", 1)]));
    dir.put("endpoints.json", endpoints(&["c1", "c2"]));
    let control_plane = ControlPlane::start(&dir);
    let mut peer = Peer::<Sotw>::open(control_plane.channel(), ADS_SOTW).await;

    let none = Nonce::default();
    peer.send(sotw_request(type_url::CLUSTER, &["c1", "c9"], &none)).await;
    let first = peer.next().await;
    assert_eq!(items(&first), 1);

    // A NACK that subscribes to another name is answered, with all resources of this type.
    let mut nack = sotw_request(type_url::CLUSTER, &["c1", "c2"], &first.nonce);
    nack.error = Some(Status { code: 3, message: "no".into() });
    peer.send(nack.clone()).await;
    let second = peer.next().await;
    assert_eq!(items(&second), 2);

    // A NACK without a new name is not answered: the next response is that of another type.
    nack.nonce = second.nonce.clone();
    peer.send(nack).await;
    peer.send(sotw_request(type_url::ENDPOINT, &["c1", "c2"], &none)).await;
    let endpoints = peer.next().await;
    assert_eq!((endpoints.type_url.as_str(), items(&endpoints)), (type_url::ENDPOINT, 2));
    peer.send(sotw_request(type_url::ENDPOINT, &["c1", "c2"], &endpoints.nonce)).await;
    control_plane.events(10);

    // A change is sent, and so is its reversal, each followed by the endpoints of the changed cluster.
    for timeout in [2, 1] {
        dir.put("clusters.json", clusters(&[("c1", timeout), ("c2", 1)]));
        let changed = peer.next().await;
        assert_eq!((changed.type_url.as_str(), items(&changed)), (type_url::CLUSTER, 2));
        peer.send(sotw_request(type_url::CLUSTER, &["c1", "c2"], &changed.nonce)).await;
        let again = peer.next().await;
        assert_eq!((again.type_url.as_str(), items(&again)), (type_url::ENDPOINT, 1));
        peer.send(sotw_request(type_url::ENDPOINT, &["c1", "c2"], &again.nonce)).await;
        if timeout == 1 {
            assert_eq!(changed.version, second.version, "the same content");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_services_of_single_types_are_served() {
    let dir = Dir::new("cp-single");
    dir.put("all.json", clusters(&[("c1", 1)]));
    dir.put("endpoints.json", endpoints(&["c1"]));
    let control_plane = ControlPlane::start(&dir);
    let mut cds = Peer::<Delta>::open(control_plane.channel(), CDS_DELTA).await;
    cds.send(delta_request("", &[])).await;
    let response = cds.next().await;
    assert_eq!((response.type_url.as_str(), names(&response)), (type_url::CLUSTER, vec!["c1"]));
    let mut eds = Peer::<Sotw>::open(control_plane.channel(), EDS_SOTW).await;
    eds.send(sotw_request(type_url::ENDPOINT, &["c1"], &Nonce::default())).await;
    assert_eq!(items(&eds.next().await), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_request_ends_its_stream_with_the_reason_and_no_other_stream() {
    let dir = Dir::new("cp-rude");
    dir.put("clusters.json", clusters(&[("c1", 1)]));
    let control_plane = ControlPlane::start(&dir);
    let channel = control_plane.channel();
    let mut good = Peer::<Delta>::open(channel.clone(), ADS_DELTA).await;
    good.send(delta_request(type_url::CLUSTER, &[])).await;
    let response = good.next().await;
    good.send(delta_answer(type_url::CLUSTER, &response.nonce, None)).await;

    let ends = async |path, bytes: Vec<u8>, code: Code, message: &str| {
        let mut peer = Peer::<Delta>::open(channel.clone(), path).await;
        peer.send_bytes(bytes).await;
        let status = peer.status().await;
        assert_eq!((status.code(), status.message()), (code, message));
    };
    let encode = xds_machine::proto::delta::encode_request;
    ends(ADS_DELTA, Vec::new(), Code::InvalidArgument, "type_url is required on an aggregated stream").await;
    let wrong = format!("request for {} on a stream of {}", type_url::LISTENER, type_url::CLUSTER);
    ends(CDS_DELTA, encode(&delta_request(type_url::LISTENER, &[])), Code::InvalidArgument, &wrong).await;
    let empty = format!("empty resource name in a request for {}", type_url::CLUSTER);
    ends(ADS_DELTA, encode(&delta_request(type_url::CLUSTER, &[""])), Code::InvalidArgument, &empty).await;
    let long = format!("resource name of 5000 bytes in a request for {}, limit 4096", type_url::CLUSTER);
    let name = "n".repeat(5000);
    ends(ADS_DELTA, encode(&delta_request(type_url::CLUSTER, &[&name])), Code::ResourceExhausted, &long).await;
    let garbage = "malformed DeltaDiscoveryRequest: failed to decode Protobuf message: invalid tag value: 0";
    ends(ADS_DELTA, vec![0], Code::InvalidArgument, garbage).await;

    // A client that ends its half of the stream is answered, and then the stream ends.
    let half = Peer::<Delta>::open(channel.clone(), ADS_DELTA).await;
    half.send(delta_request(type_url::CLUSTER, &["c1"])).await;
    let mut rest = half.end();
    assert_eq!(names(&rest.message().await.expect("no error").expect("a response")), ["c1"]);
    assert_eq!(rest.message().await.expect("no error"), None);

    dir.put("clusters.json", clusters(&[("c2", 1)]));
    let response = good.next().await;
    assert_eq!((names(&response), response.removed.len()), (vec!["c2"], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_client_delays_no_other_client_and_then_receives_the_latest_state() {
    let dir = Dir::new("cp-slow");
    let big = |timeout| {
        let clusters: Vec<Value> = (0..200)
            .map(|at| {
                let stat_name = "s".repeat(10_000); // more than the windows of HTTP/2
                json!({"@type": type_url::CLUSTER, "name": format!("c{at}"), "altStatName": stat_name,
                       "connectTimeout": format!("{timeout}s")})
            })
            .collect();
        json!({"resources": clusters}).to_string()
    };
    dir.put("clusters.json", big(1));
    let control_plane = ControlPlane::start(&dir);
    let mut slow = Vec::new();
    for _ in 0..3 {
        let peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
        peer.send(delta_request(type_url::CLUSTER, &[])).await;
        slow.push(peer);
    }
    let mut quick = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
    quick.send(delta_request(type_url::CLUSTER, &[])).await;
    for timeout in 2..6 {
        let response = quick.next().await;
        assert_eq!(response.resources.len(), 200);
        quick.send(delta_answer(type_url::CLUSTER, &response.nonce, None)).await;
        dir.put("clusters.json", big(timeout));
    }
    let seconds = |response: &delta::Response| {
        let body = response.resources[0].body.as_ref().expect("content");
        body.value.windows(4).find(|window| window[..3] == [0x22, 2, 8]).expect("connect_timeout")[3]
    };
    assert_eq!(seconds(&quick.next().await), 5);
    // Slow readers get the response that was sent first, and then only the latest state.
    for mut peer in slow {
        let response = peer.next().await;
        assert_eq!(seconds(&response), 1);
        peer.send(delta_answer(type_url::CLUSTER, &response.nonce, None)).await;
        assert_eq!(seconds(&peer.next().await), 5);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_changes_no_version() {
    let dir = Dir::new("cp-restart");
    dir.put("clusters.json", clusters(&[("c1", 1), ("c2", 1)]));
    let request = delta_request(type_url::CLUSTER, &[]);
    let mut held = BTreeMap::new();
    for life in 0..3 {
        let control_plane = ControlPlane::start(&dir);
        let mut peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
        peer.send(delta::Request { initial_versions: held.clone().into(), ..request.clone() }).await;
        let response = peer.next().await;
        match life {
            0 => assert_eq!(names(&response), ["c1", "c2"]),
            1 => assert_eq!(names(&response), [""; 0], "what is held is not sent again"),
            _ => assert_eq!((names(&response), response.removed.len()), (vec!["c3"], 1)),
        }
        let versions = response.resources.iter().map(|resource| (resource.name.clone(), resource.version.clone()));
        held.extend(versions);
        if life == 1 {
            dir.put("clusters.json", clusters(&[("c1", 1), ("c3", 1)]));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_parsed_causes_no_response() {
    let dir = Dir::new("cp-broken");
    dir.put("clusters.json", clusters(&[("c1", 1)]));
    let control_plane = ControlPlane::start(&dir);
    let mut peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
    peer.send(delta_request(type_url::CLUSTER, &[])).await;
    let first = peer.next().await;
    peer.send(delta_answer(type_url::CLUSTER, &first.nonce, None)).await;

    dir.put("clusters.json", "{");
    control_plane.complaint(&format!(
        "{}: EOF while parsing an object at line 1 column 1 (what it held before is still served)",
        dir.0.join("clusters.json").display()
    ));
    dir.put("clusters.json", clusters(&[("c1", 2)]));
    let fixed = peer.next().await;
    assert_eq!((names(&fixed), fixed.removed.len()), (vec!["c1"], 0));
    assert_eq!(control_plane.events(5)[4]["event"], "send", "one for the first, one for the fix");
}
