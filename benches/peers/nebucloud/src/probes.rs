//! Further questions to the server.

use std::time::{Duration, Instant};

use harness::Probe;
use harness::data::{TYPE_URL, name};
use xds_server::services::ads::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest};
use xds_types::google::rpc::Status;

use crate::Store;
use crate::stream::{Protocol, Stream};

/// The time without a response that counts as "nothing".
const WHILE: Duration = Duration::from_millis(500);

pub async fn all() -> Vec<Probe> {
    vec![
        change().await,
        nack().await,
        star().await,
        last_name().await,
        initial_versions().await,
        missing().await,
        removed_before_its_ack().await,
    ]
}

type Delta = DeltaDiscoveryRequest;

async fn delta(store: &Store, first: Delta) -> Stream<Delta> {
    Stream::open(&store.service, first).await.expect("a stream")
}

fn subscribe(names: &[String]) -> Delta {
    Delta { resource_names_subscribe: names.to_vec(), ..Delta::new() }
}

fn said(response: Option<DeltaDiscoveryResponse>) -> String {
    let Some(response) = response else { return "nothing".into() };
    let mut names: Vec<_> = response.resources.into_iter().map(|resource| resource.name).collect();
    names.sort();
    format!("resources {names:?}, removed {:?}", response.removed_resources)
}

async fn change() -> Probe {
    let mut store = Store::new(2);
    let mut stream = delta(&store, Delta::new()).await;
    let _ = stream.take().await;
    store.change(0, 1);
    let got = said(stream.next(WHILE).await);
    let right = got != "nothing";
    Probe::new("delta, wildcard, 2 resources, ACK; 1 changes", "it is sent", format!("{got} in 500 ms"), right)
}

async fn nack() -> Probe {
    let store = Store::new(2);
    let mut stream = Stream::<DiscoveryRequest>::open(&store.service, DiscoveryRequest::new()).await.expect("a stream");
    let (start, mut sent) = (Instant::now(), 0);
    while start.elapsed() < WHILE {
        let Some(response) = stream.next(WHILE).await else { break };
        sent += 1;
        let error_detail = Some(Status { code: 3, message: "no".into(), ..Status::default() });
        stream.say(DiscoveryRequest { version_info: String::new(), error_detail, ..DiscoveryRequest::ack(&response) });
    }
    Probe::new(
        "SotW, wildcard, 2 resources; the client rejects each response (no version, error_detail)",
        "1 response: what was rejected is not sent again until it changes",
        format!("{sent} responses in 500 ms, all the same"),
        sent == 1,
    )
}

async fn star() -> Probe {
    let store = Store::new(2);
    let mut stream = delta(&store, subscribe(&["*".into()])).await;
    let got = said(stream.next(WHILE).await);
    let right = got != "nothing";
    Probe::new("delta, subscribe to \"*\", 2 resources", "both are sent", got, right)
}

async fn last_name() -> Probe {
    let store = Store::new(3);
    let mut stream = delta(&store, subscribe(&[name(0)])).await;
    let _ = stream.take().await;
    stream.say(Delta { resource_names_unsubscribe: vec![name(0)], type_url: TYPE_URL.into(), ..Delta::default() });
    let first = said(stream.next(WHILE).await);
    stream.ask();
    let then = said(stream.next(WHILE).await);
    let right = first == "nothing" && then == "nothing";
    Probe::new(
        "delta, 3 resources, subscribe to one, ACK, unsubscribe from it; then a request without names",
        "nothing is sent: who wants nothing gets nothing",
        format!("{first}; then {then}"),
        right,
    )
}

async fn initial_versions() -> Probe {
    let store = Store::new(2);
    let mut stream = delta(&store, Delta::new()).await;
    let versions = match stream.next(WHILE).await {
        Some(response) => response.resources.into_iter().map(|resource| (resource.name, resource.version)).collect(),
        None => std::collections::HashMap::new(),
    };
    let mut stream = delta(&store, Delta { initial_resource_versions: versions, ..Delta::new() }).await;
    let got = said(stream.next(WHILE).await);
    let right = got == "resources [], removed []";
    Probe::new(
        "delta, wildcard, 2 resources; a new stream with the versions of both in initial_resource_versions",
        "an empty response: the client has both",
        got,
        right,
    )
}

async fn missing() -> Probe {
    let store = Store::new(2);
    let mut stream = delta(&store, subscribe(&["nobody".into()])).await;
    let got = said(stream.next(WHILE).await);
    let right = got.contains("removed [\"nobody\"]");
    Probe::new("delta, subscribe to a name that does not exist", "it is said to be removed", got, right)
}

async fn removed_before_its_ack() -> Probe {
    let mut store = Store::new(2);
    let mut stream = delta(&store, Delta::new()).await;
    let _ = stream.next(WHILE).await;
    store.resources.remove(0);
    store.publish();
    stream.ask();
    let got = said(stream.next(WHILE).await);
    let right = got.contains(&format!("removed [\"{}\"]", name(0)));
    Probe::new(
        "delta, wildcard, 2 resources are sent; 1 is removed before the ACK",
        "it is said to be removed",
        got,
        right,
    )
}
