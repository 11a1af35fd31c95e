//! The wire format: messages are encoded byte for byte as prost encodes them, in chunks or in one buffer, and decode to
//! the original message.
//!
//! The server composes responses by hand from parts that streams share (`src/wire`), so the reference here is prost
//! itself: messages built field by field, with the code that prost generates, and encoded by it.

#![allow(unreachable_pub)]

mod plain;
mod strategies;

use bytes::{BufMut, Bytes};
use plain::Plain;
use proptest::prelude::*;
use prost::Message;
use std::time::Duration;
use strategies::Script;
use xds_machine::message::delta::Versions;
use xds_machine::message::{Node, feature};
use xds_machine::server::{self, Action, Cache, Config, Resource, Server, StreamId};
use xds_machine::{Delta, Instant, Sotw, TypeUrl, WILDCARD, proto};

use crate::hash;

/// Plays a script with a server, and checks each response that it sends.
fn check_responses<V: Plain>(script: &Script) {
    let type_url = TypeUrl::from(script.type_url.as_str());
    let mut cache = Cache::new(1);
    let (before, after) = script.resources.split_at(script.resources.len() - script.late.min(script.resources.len()));
    before.iter().for_each(|resource| _ = cache.insert(&type_url, resource.clone()));
    if script.published {
        cache.publish::<V>();
    }
    after.iter().for_each(|resource| _ = cache.insert(&type_url, resource.clone())); // on pages that are not published
    let config = match &script.control_plane {
        Some(identifier) => Config::ads().with_control_plane(identifier.as_str()),
        None => Config::ads(),
    };
    let mut server = Server::<V>::new(config, StreamId(script.stream));
    let mut names = script.names.clone();
    if script.wildcard {
        names.push(WILDCARD.into());
    }
    let mut now = Instant::EPOCH;
    let mut nonce = None;
    let mut turn = |server: &mut Server<V>, cache: &Cache, now: Instant| {
        let request = V::ask(&type_url, &names, script.node.clone(), nonce.take());
        server.handle_request(now, request).expect("a good request");
        if let Some(response) = server.poll_transmit(now, cache) {
            nonce = Some(response.nonce().clone());
            check_response(&response);
        }
        while let Some(action) = server.poll_action() {
            assert!(!matches!(action, Action::Close(_)), "{action:?}");
        }
    };
    turn(&mut server, &cache, now);
    // Each turn answers the last response, and sends what is due next: a change and removals, then heartbeats.
    for resource in script.resources.iter().step_by(3) {
        cache.remove(&type_url, resource.name().as_str());
    }
    cache.insert(&type_url, Resource::new("late", &b"\x0a\x04late"[..]));
    turn(&mut server, &cache, now);
    turn(&mut server, &cache, now);
    if let Some(due) = server.poll_timeout() {
        now = now.max(due);
        server.handle_timeout(now);
        turn(&mut server, &cache, now);
    }
}

fn check_response<V: Plain>(response: &server::Response<V>) {
    let chunks: Vec<Bytes> = response.chunks().collect();
    assert!(chunks.iter().all(|chunk| !chunk.is_empty()) || chunks.len() == 1, "no chunk is for nothing");
    let in_chunks = chunks.concat();
    let mut in_one = Vec::new().limit(usize::MAX);
    response.encode(&mut in_one);
    assert_eq!(in_one.into_inner(), in_chunks, "chunks or one buffer: the same bytes");
    assert_eq!(response.encoded_len(), in_chunks.len());

    let message = V::message(response);
    assert_eq!(V::plain(&message), in_chunks, "the bytes that prost would write");
    assert_eq!(V::encode(&message), in_chunks, "and those of the message");
    assert_eq!(V::decode(in_chunks.into()).expect("what we write can be read"), message);

    // The message has the names of the response: the view and the copy do not drift apart.
    let names: Vec<&str> = response.resources().map(|resource| resource.name().as_str()).collect();
    let sent = V::names(&message);
    assert!(sent.is_empty() || sent == names, "{sent:?} sent, {names:?} meant");
}

/// Checks a request or a response with any contents: its encoding, and that it decodes to itself.
fn check_message<M: Clone + std::fmt::Debug + PartialEq>(
    message: &M,
    plain: &[u8],
    encode: impl Fn(&M) -> Vec<u8>,
    decode: impl Fn(Bytes) -> Result<M, proto::DecodeError>,
) {
    let encoded = encode(message);
    assert_eq!(encoded, plain, "the bytes that prost would write");
    assert_eq!(&decode(encoded.into()).expect("what we write can be read"), message);
}

/// The seconds of a protobuf `Duration` are signed. Without a limit, a TTL without end would be read as negative.
#[test]
fn the_longest_ttl_is_encoded_as_the_longest_protobuf_duration() {
    let type_url = TypeUrl::from("t");
    let mut cache = Cache::new(1);
    cache.insert(&type_url, Resource::new("r", &b""[..]).with_ttl(Duration::MAX));
    let mut node = Node::new("n");
    node.client_features.push(feature::TTL.into());
    let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
    let request = Delta::ask(&type_url, &["r".into()], node, None);
    server.handle_request(Instant::EPOCH, request).expect("a good request");
    let response = server.poll_transmit(Instant::EPOCH, &cache).expect("the resource");
    let encoded: Vec<u8> = response.chunks().flatten().collect();
    assert_eq!(encoded.len(), response.encoded_len());
    let message = proto::delta::decode_response(encoded.into()).expect("a message");
    assert_eq!(message.resources[0].ttl, Some(Duration::new(i64::MAX as u64, 999_999_999)));
}

/// Encodes a claim of version 1.
fn claim(name: u8) -> [u8; 8] {
    [0x2a, 6, 0x0a, 1, name, 0x12, 1, b'1']
}

/// Another field may come between the entries of a map (protobuf, "Maps"): the map still has all of them.
#[test]
fn claims_with_another_field_between_them_are_all_decoded() {
    let nonce = [0x32, 1, b'n'];
    let bytes = [&claim(b'a')[..], &nonce[..], &claim(b'b')[..]].concat();
    let request = proto::delta::decode_request(bytes.into()).expect("a request");
    assert_eq!((request.initial_versions, request.nonce.as_str()), ([("a", "1"), ("b", "1")].into(), "n"));
}

/// Claims are equal in any order, and so are their hashes.
#[test]
fn the_order_of_claims_does_not_matter() {
    let bytes = [claim(b'b'), claim(b'a')].concat();
    let read = proto::delta::decode_request(bytes.into()).expect("a request").initial_versions;
    let made = Versions::from([("a", "1"), ("b", "1")]);
    assert_eq!((&read, hash(&read)), (&made, hash(&made)));
    let others = [Versions::from([("a", "1")]), Versions::from([("a", "2"), ("b", "1")]), Versions::default()];
    assert!(others.iter().all(|other| *other != made && hash(other) != hash(&made)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn responses_of_a_sotw_server_are_encoded_as_by_prost(script in strategies::script()) {
        check_responses::<Sotw>(&script);
    }

    #[test]
    fn responses_of_a_delta_server_are_encoded_as_by_prost(script in strategies::script()) {
        check_responses::<Delta>(&script);
    }

    #[test]
    fn sotw_requests_are_encoded_as_by_prost_and_decode_to_the_original(request in strategies::sotw_request()) {
        let plain = plain::sotw_request(&request).encode_to_vec();
        check_message(&request, &plain, proto::sotw::encode_request, proto::sotw::decode_request);
    }

    #[test]
    fn delta_requests_are_encoded_as_by_prost_and_decode_to_the_original(request in strategies::delta_request()) {
        let plain = plain::delta_request(&request).encode_to_vec();
        check_message(&request, &plain, proto::delta::encode_request, proto::delta::decode_request);
    }

    #[test]
    fn sotw_responses_are_encoded_as_by_prost_and_decode_to_the_original(response in strategies::sotw_response()) {
        let plain = Sotw::plain(&response);
        check_message(&response, &plain, proto::sotw::encode_response, proto::sotw::decode_response);
    }

    #[test]
    fn delta_responses_are_encoded_as_by_prost_and_decode_to_the_original(response in strategies::delta_response()) {
        let plain = Delta::plain(&response);
        check_message(&response, &plain, proto::delta::encode_response, proto::delta::decode_response);
    }

    /// Arbitrary bytes decode to an error, or to a message that decodes to itself once encoded.
    #[test]
    fn arbitrary_bytes_decode_to_an_error_or_to_a_stable_message(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        if let Ok(message) = proto::sotw::decode_request(bytes.clone()) {
            let again = proto::sotw::encode_request(&message);
            prop_assert_eq!(proto::sotw::decode_request(again.into()), Ok(message));
        }
        if let Ok(message) = proto::delta::decode_request(bytes.clone()) {
            let again = proto::delta::encode_request(&message);
            prop_assert_eq!(proto::delta::decode_request(again.into()), Ok(message));
        }
        if let Ok(message) = proto::sotw::decode_response(bytes.clone()) {
            let again = proto::sotw::encode_response(&message);
            prop_assert_eq!(proto::sotw::decode_response(again.into()), Ok(message));
        }
        if let Ok(message) = proto::delta::decode_response(bytes) {
            let again = proto::delta::encode_response(&message);
            prop_assert_eq!(proto::delta::decode_response(again.into()), Ok(message));
        }
    }
}
