//! `rime-xds` as a server. The crate has a store, and the changes since the last ACK; requests, nonces and messages are
//! left to the caller. Here, as for any caller, an update becomes a `DeltaDiscoveryResponse`, encoded by prost.

use std::process::ExitCode;

use benches::alloc;
use benches::floor::{Any, DeltaResponse, Resource};
use futures_util::FutureExt;
use harness::data::{TYPE_URL, body, name};
use harness::{Probe, Sent, Server, Variant, serve};
use prost::Message;
use rime_xds::{Plane, ResourceMap, Subscriber, Update};
use tokio::sync::watch;
use xxhash_rust::xxh3::xxh3_64;

#[global_allocator]
static COUNTING: alloc::Counting = alloc::Counting;

fn main() -> ExitCode {
    serve::<Rime>()
}

struct Rime {
    plane: Plane,
    changed: watch::Receiver<()>,
    streams: Vec<Subscriber>,
}

impl Server for Rime {
    const DRIVE: &'static str = "direct: its Update, of which we make a response with prost, for it makes no message";

    fn new(n: usize, variant: Variant) -> Result<Self, String> {
        if variant == Variant::Sotw {
            return Err("it has no state of the world".into());
        }
        let (mut plane, changed) = Plane::new();
        // All resources at once, because `apply` copies the map.
        plane.reconcile((0..n).map(name).map(|name| (name.clone(), body(&name, 0))).collect::<ResourceMap>());
        Ok(Self { plane, changed, streams: Vec::new() })
    }

    fn open(&mut self) -> Result<Sent, String> {
        let mut stream = rime_xds::Server::new(self.plane.snapshot()).subscribe(self.changed.clone());
        let update = stream.initial();
        let sent = answer(&mut stream, update);
        self.streams.push(stream);
        Ok(sent)
    }

    fn change(&mut self, at: usize, round: u8, _: bool) -> Result<Sent, String> {
        let name = name(at);
        let body = body(&name, round);
        self.plane.apply(&name, body);
        let mut first = None;
        for stream in &mut self.streams {
            let update = stream.changed().now_or_never().flatten().ok_or("a stream hears of no change")?;
            let sent = answer(stream, update);
            first.get_or_insert(sent);
        }
        first.ok_or_else(|| "no stream".into())
    }

    fn probes() -> Vec<Probe> {
        vec![removed_before_its_ack(), rejected()]
    }
}

/// Sends an update, and takes its ACK, which has only the nonce: the names and versions are those of the update.
fn answer(stream: &mut Subscriber, update: Update) -> Sent {
    let Update { resources, removed } = update;
    let hashes: Vec<u64> = resources.iter().map(|(_, body)| xxh3_64(body)).collect();
    let resource = |((name, body), hash): (&(String, bytes::Bytes), &u64)| Resource {
        version: format!("{hash:016x}"),
        resource: Some(Any { type_url: TYPE_URL.into(), value: body.clone() }),
        name: name.clone(),
    };
    let response = DeltaResponse {
        system_version_info: "1".into(),
        resources: resources.iter().zip(&hashes).map(resource).collect(),
        type_url: TYPE_URL.into(),
        nonce: "1".into(),
        removed_resources: removed.clone(),
    };
    let bytes = std::hint::black_box(response.encode_to_vec()).len();
    resources.iter().zip(&hashes).for_each(|((name, _), &hash)| stream.acknowledge(name, hash));
    removed.iter().for_each(|name| stream.acknowledge_removed(name));
    Sent { bytes, resources: resources.len() }
}

/// Returns the names that an update adds or changes, and those that it removes.
fn said(update: Option<Option<Update>>) -> (Vec<String>, Vec<String>) {
    let Some(Update { resources, removed }) = update.flatten() else { return (Vec::new(), Vec::new()) };
    let mut names: Vec<_> = resources.into_iter().map(|(name, _)| name).collect();
    names.sort();
    (names, removed)
}

/// Returns a plane with two resources, and a stream that was sent both.
fn two() -> (Plane, Subscriber) {
    let (mut plane, changed) = Plane::new();
    ["a", "b"].iter().for_each(|name| _ = plane.apply(name, body(name, 0)));
    let mut stream = rime_xds::Server::new(plane.snapshot()).subscribe(changed);
    stream.initial();
    (plane, stream)
}

fn removed_before_its_ack() -> Probe {
    let (mut plane, mut stream) = two();
    plane.remove("a");
    let first = said(stream.changed().now_or_never());
    stream.acknowledge("b", xxh3_64(&body("b", 0)));
    plane.apply("b", body("b", 1));
    let then = said(stream.changed().now_or_never());
    let right = first.1.iter().chain(&then.1).any(|name| name == "a");
    Probe::new(
        "a and b are sent; a is removed before the ACK; b changes",
        "an update says that a is removed",
        format!("(resources, removed): {first:?}, then {then:?}: the client keeps a for ever"),
        right,
    )
}

fn rejected() -> Probe {
    let (mut plane, mut stream) = two();
    ["a", "b"].iter().for_each(|name| stream.acknowledge(name, xxh3_64(&body(name, 0))));
    plane.apply("a", body("a", 1));
    let first = said(stream.changed().now_or_never());
    // The client rejects the change. The crate has no call for that.
    plane.apply("b", body("b", 1));
    let then = said(stream.changed().now_or_never());
    let right = then.0 == ["b"];
    Probe::new(
        "a and b are sent and acknowledged; a changes and the client rejects it; b changes",
        "only b is sent: what was rejected is not sent again until it changes",
        format!("(resources, removed): {first:?}, then {then:?}: it knows no NACK"),
        right,
    )
}
