//! Decodes bytes to messages, encodes them again, and passes decoded messages to a machine.

use std::fmt::Debug;

use bytes::Bytes;
use xds_machine::client::{self, Client};
use xds_machine::load::{self, Collector, CollectorConfig, Reporter};
use xds_machine::message::Node;
use xds_machine::server::{self, Cache, Resource, Server, StreamId};
use xds_machine::{Delta, Instant, Sotw, TypeUrl, WILDCARD, proto, type_url};

const NOW: Instant = Instant::EPOCH;

/// Fuzzes a load report, and gives it to a collector.
pub fn load_request(data: &[u8]) {
    use proto::load_stats::{decode_request, encode_request};
    if let Some(request) = again(Bytes::copy_from_slice(data), decode_request, encode_request) {
        let _ = Collector::new(CollectorConfig::new()).handle_request(request);
    }
}

/// Fuzzes the answer to load reports, and gives it to a reporter.
pub fn load_response(data: &[u8]) {
    use proto::load_stats::{decode_response, encode_response};
    if let Some(response) = again(Bytes::copy_from_slice(data), decode_response, encode_response) {
        let mut reporter = Reporter::new(load::Config::new(Node::new("n")));
        reporter.handle_open();
        let _ = reporter.handle_response(NOW, response);
        let due = reporter.poll_timeout();
        assert!(due.is_none_or(|due| due.since_epoch().as_secs() >= 1), "a report each {due:?}");
    }
}

/// Fuzzes one message. The first byte selects its kind.
pub fn wire(data: &[u8]) {
    let Some((&which, data)) = data.split_first() else { return };
    let bytes = Bytes::copy_from_slice(data);
    match which % 4 {
        0 => {
            if let Some(request) = again(bytes, proto::sotw::decode_request, proto::sotw::encode_request) {
                serve::<Sotw>(request.type_url.clone(), request);
            }
        }
        1 => {
            if let Some(request) = again(bytes, proto::delta::decode_request, proto::delta::encode_request) {
                serve::<Delta>(request.type_url.clone(), request);
            }
        }
        2 => {
            if let Some(response) = again(bytes, proto::sotw::decode_response, proto::sotw::encode_response) {
                receive::<Sotw>(response.type_url.clone(), response);
            }
        }
        _ => {
            if let Some(response) = again(bytes, proto::delta::decode_response, proto::delta::encode_response) {
                receive::<Delta>(response.type_url.clone(), response);
            }
        }
    }
}

/// Checks that a decoded message can be encoded, and then decodes to an equal message.
fn again<M: Clone + Debug + PartialEq>(
    bytes: Bytes,
    decode: impl Fn(Bytes) -> Result<M, proto::DecodeError>,
    encode: impl Fn(&M) -> Vec<u8>,
) -> Option<M> {
    let message = decode(bytes).ok()?;
    let written = encode(&message);
    let read = decode(written.clone().into()).expect("what we write can be read");
    assert_eq!(read, message, "what was read, written and read again");
    assert_eq!(encode(&read), written);
    Some(message)
}

/// Passes a request to a server, and checks its state and the lengths of its responses.
fn serve<V: server::Variant>(type_url: TypeUrl, request: V::Request) {
    let mut cache = Cache::new(1);
    cache.insert(&type_url, Resource::new("a", &b"\x0a\x01a"[..]));
    let mut server = Server::<V>::new(server::Config::ads(), StreamId(1));
    let before = server.clone();
    if server.handle_request(NOW, request).is_err() {
        assert_eq!(server, before);
    }
    while let Some(response) = server.poll_transmit(NOW, &cache) {
        let encoded: usize = response.chunks().map(|chunk| chunk.len()).sum();
        assert_eq!(encoded, response.encoded_len());
    }
    assert_eq!(server.check_invariants(), Ok(()));
}

/// Passes a response to a client that subscribed to the wildcard of the type.
fn receive<V: client::Variant>(type_url: TypeUrl, response: V::Response) {
    let mut client = Client::<V>::new(client::Config::new(Node::new("n")));
    client.resources_mut(&type_url).subscribe([WILDCARD]).expect("a good name");
    client.resources_mut(&type_url::CLUSTER.into()).subscribe([WILDCARD]).expect("a good name");
    client.handle_open();
    while client.poll_transmit().is_some() {}
    let before = client.clone();
    if client.handle_response(NOW, response).is_err() {
        assert_eq!(client, before);
    }
    while let Some(action) = client.poll_action() {
        if let client::Action::Apply(update) = action {
            client.handle_verdict(NOW, update.accept()).expect("the update is out");
        }
    }
    while client.poll_transmit().is_some() {}
    assert_eq!(client.check_invariants(), Ok(()));
}
