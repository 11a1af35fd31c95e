//! Further questions to the client.

use std::time::Duration;

use bytes::Bytes;
use harness::Probe;
use harness::data::name;
use tokio::time::{Instant, timeout, timeout_at};
use transport::client::response;
use transport::{Report, Stub};
use xds_client::{ClientConfig, Node, ResourceEvent, ResourceWatcher, TonicTransportBuilder, XdsClient};

use crate::{Cluster, client};

/// The time without an event that counts as "nothing".
const WHILE: Duration = Duration::from_secs(1);

pub async fn all() -> Vec<Probe> {
    vec![large().await, last_name().await, watched_again().await, no_server().await]
}

fn plain(address: &str) -> XdsClient {
    client(ClientConfig::new(Node::new("peers", "1"), address), TonicTransportBuilder::new())
}

/// Returns the event that a watcher receives within [`WHILE`], as text.
async fn hears(watcher: &mut ResourceWatcher<Cluster>) -> String {
    match timeout(WHILE, watcher.next()).await {
        Err(_) => "nothing".into(),
        Ok(None) => "the end".into(),
        Ok(Some(ResourceEvent::ResourceChanged { result: Ok(cluster), .. })) => {
            format!("the resource, round {}", cluster.0.last().copied().unwrap_or_default())
        }
        Ok(Some(ResourceEvent::ResourceChanged { result: Err(error), .. })) => format!("an error: {error}"),
        Ok(Some(ResourceEvent::AmbientError { error, .. })) => format!("an ambient error: {error}"),
    }
}

async fn large() -> Probe {
    const N: usize = 40_000;
    let (mut stub, all) = (Stub::start().await.expect("a server"), response(N, 0));
    let client = plain(&stub.address);
    let mut watcher = client.watch::<Cluster>("").await;
    let (mut streams, mut acknowledged, until) = (0, false, Instant::now() + 5 * WHILE);
    while let Ok(report) = timeout_at(until, stub.report()).await {
        match report {
            Report::Opened => streams += 1,
            Report::Request(said) if said.nonce == "0" => acknowledged = true,
            Report::Request(_) => stub.respond(all.clone()),
            Report::Closed => {}
        }
    }
    let heard = hears(&mut watcher).await;
    Probe::new(
        format!(
            "wildcard, as it comes from `new`; a response of 40,000 resources ({} bytes) to each first request",
            all.len()
        ),
        "an ACK, or an error that somebody hears",
        format!("{streams} streams in 5 s, acknowledged: {acknowledged}, the watcher hears {heard}"),
        acknowledged || heard.contains("error"),
    )
}

async fn last_name() -> Probe {
    let mut stub = Stub::start().await.expect("a server");
    let client = plain(&stub.address);
    let watcher = client.watch::<Cluster>(name(0)).await;
    stub.request().await;
    drop(watcher);
    let said = timeout(WHILE, stub.request()).await;
    let got = said.as_ref().map_or("nothing in 1 s".into(), |said| format!("a request with names {:?}", said.names));
    Probe::new("watch one name; drop the watcher", "a request without it", got, said.is_ok())
}

/// Returns a response of these resources.
fn of(names: &[usize], nonce: &str) -> Bytes {
    use benches::data::{body, clusters};
    use benches::floor::{Any, SotwResponse};
    let type_url = clusters().to_string();
    let any = |at: &usize| Any { type_url: type_url.clone(), value: body(&name(*at), 0) };
    let resources = names.iter().map(any).collect();
    let response =
        SotwResponse { version_info: nonce.into(), resources, type_url: type_url.clone(), nonce: nonce.into() };
    Bytes::from(transport::client::encode(&response))
}

async fn watched_again() -> Probe {
    let mut stub = Stub::start().await.expect("a server");
    let client = plain(&stub.address);
    let mut both = (client.watch::<Cluster>(name(0)).await, client.watch::<Cluster>(name(1)).await);
    while stub.request().await.names.len() < 2 {}
    stub.respond(of(&[0, 1], "1"));
    let first = (hears(&mut both.0).await, hears(&mut both.1).await);
    drop(both.0);
    while stub.request().await.names.len() > 1 {}
    stub.respond(of(&[1], "2"));
    let second = hears(&mut both.1).await;
    let mut again = client.watch::<Cluster>(name(0)).await;
    let got = hears(&mut again).await; // the server has not answered yet
    let right = got == "nothing";
    let got = format!("before the server's answer: {got} (before that: {first:?}, {second:?})");
    Probe::new(
        "watch two names, both are sent; drop one watcher, the other name alone is sent; watch the first again",
        "nothing until the server has answered",
        got,
        right,
    )
}

async fn no_server() -> Probe {
    let config = ClientConfig::new(Node::new("peers", "1"), "http://127.0.0.1:9");
    let config = config.with_resource_initial_timeout(Some(WHILE / 4));
    let client = client(config, TonicTransportBuilder::new());
    let mut watcher = client.watch::<Cluster>(name(0)).await;
    let got = hears(&mut watcher).await;
    let right = !got.contains("not exist");
    Probe::new(
        "an existence timer of 250 ms, no server at the address; watch a name",
        "not that it does not exist: nobody was asked",
        got,
        right,
    )
}
