//! Further questions to the server.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use harness::Probe;
use harness::data::{TYPE_URL, name};
use quilkin_xds::discovery::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
use quilkin_xds::generated::google::rpc::Status;

use crate::Plane;
use crate::stream::{Stream, ack, subscribe};

/// The time without a response that counts as "nothing".
const WHILE: Duration = Duration::from_millis(500);

pub async fn all() -> Vec<Probe> {
    vec![nack().await, names_in_an_ack().await, unknown_type().await, removed_before_its_ack().await]
}

fn said(response: Option<DeltaDiscoveryResponse>) -> String {
    let Some(response) = response else { return "nothing".into() };
    let mut names: Vec<_> = response.resources.into_iter().map(|resource| resource.name).collect();
    names.sort();
    format!("resources {names:?}, removed {:?}", response.removed_resources)
}

async fn nack() -> Probe {
    let plane = Plane::new(2);
    let mut stream = Stream::open(&plane.plane, subscribe(&[])).await.expect("a stream");
    let (start, mut sent) = (Instant::now(), 0);
    while start.elapsed() < WHILE {
        let Some(response) = stream.next(WHILE).await else { break };
        sent += 1;
        let error_detail = Some(Status { code: 3, message: "no".into(), ..Status::default() });
        stream.say(DeltaDiscoveryRequest { error_detail, ..ack(&response.nonce) });
    }
    Probe::new(
        "delta, wildcard, 2 resources; the client rejects each response (nonce, error_detail)",
        "1 response: what was rejected is not sent again until it changes",
        format!("{sent} responses in 500 ms, all the same"),
        sent == 1,
    )
}

async fn names_in_an_ack() -> Probe {
    let plane = Plane::new(2);
    let (a, b) = (name(0), name(1));
    let mut stream = Stream::open(&plane.plane, subscribe(&[&a])).await.expect("a stream");
    let first = stream.next(WHILE).await.expect("the first resource");
    stream.say(DeltaDiscoveryRequest { resource_names_subscribe: vec![b.clone()], ..ack(&first.nonce) });
    let got = said(stream.next(WHILE).await);
    let right = got.contains(&b);
    Probe::new("delta, 2 resources, subscribe to one; the ACK subscribes to the other", "the other is sent", got, right)
}

async fn unknown_type() -> Probe {
    let plane = Plane::new(2);
    let mut stream = Stream::open(&plane.plane, subscribe(&[])).await.expect("a stream");
    let first = stream.next(WHILE).await.expect("everything");
    stream.say(ack(&first.nonce));
    stream.say(DeltaDiscoveryRequest { type_url: format!("{TYPE_URL}s"), ..DeltaDiscoveryRequest::default() });
    let got = match AssertUnwindSafe(stream.next(WHILE)).catch_unwind().await {
        Ok(response) => said(response),
        Err(panic) => {
            let panic = panic.downcast_ref::<String>().map_or("", String::as_str);
            format!("the stream panics: {panic}")
        }
    };
    let right = !got.contains("panics");
    let expected = "no panic: the type is refused, or the stream ends with a status";
    Probe::new(
        "delta, wildcard of a type, ACK; a request for a type that the server does not allow",
        expected,
        got,
        right,
    )
}

async fn removed_before_its_ack() -> Probe {
    let plane = Plane::new(2);
    let mut stream = Stream::open(&plane.plane, subscribe(&[])).await.expect("a stream");
    let first = stream.next(WHILE).await.expect("everything");
    plane.config.resources().remove(&name(0));
    plane.plane.push_update(TYPE_URL);
    let meanwhile = said(stream.next(WHILE).await);
    stream.say(ack(&first.nonce));
    let then = said(stream.next(WHILE).await);
    plane.config.change(1, 1);
    plane.plane.push_update(TYPE_URL);
    let last = said(stream.next(WHILE).await);
    let right = meanwhile.contains("removed [\"") || then.contains("removed [\"");
    Probe::new(
        "delta, wildcard, 2 resources are sent; 1 is removed, then the ACK comes",
        "it is said to be removed",
        format!("{meanwhile}; after the ACK: {then}; when another resource changes: {last}"),
        right,
    )
}
