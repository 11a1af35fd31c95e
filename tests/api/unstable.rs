//! Dynamic parameters are passed on unchanged (`cargo test --features unstable --test machines unstable`).
#![cfg(feature = "unstable")]

use bytes::Bytes;
use xds_machine::proto::{self, unstable};

/// Encodes a field: its key and its contents.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).expect("a short field")];
    field.extend_from_slice(bytes);
    field
}

fn locator(name: &str, parameters: &[(&str, &str)]) -> Vec<u8> {
    let entry =
        |(key, value): &(&str, &str)| field(2, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat());
    [field(1, name.as_bytes())].into_iter().chain(parameters.iter().map(entry)).flatten().collect()
}

fn variant(name: &str, constraints: &[u8]) -> Vec<u8> {
    [field(1, name.as_bytes()), field(2, constraints)].concat()
}

#[test]
fn the_locators_of_a_delta_request_are_decoded_and_encoded_unchanged() {
    let bytes = Bytes::from(
        [
            field(2, b"T"),
            field(3, b"plain"),
            field(4, b"left"),
            field(8, &locator("a", &[("env", "prod"), ("version", "v1")])),
            field(8, &locator("a", &[("env", "test")])),
            field(8, &locator("b", &[])),
            field(9, &locator("c", &[("env", "prod")])),
        ]
        .concat(),
    );
    let (request, locators) = unstable::decode_delta_request(bytes.clone()).expect("a request");
    assert_eq!(request, proto::delta::decode_request(bytes.clone()).expect("a request"), "the machine sees the same");
    assert_eq!(request.subscribe, ["plain", "a", "a", "b"]);
    assert_eq!(request.unsubscribe, ["left", "c"]);
    assert_eq!(locators.subscribe[0].parameters.get("version").map(String::as_str), Some("v1"));
    assert_eq!(unstable::encode_delta_request(&request, &locators), bytes);
    assert_eq!(unstable::encode_delta_request(&request, &Default::default()), proto::delta::encode_request(&request));
}

#[test]
fn the_locators_of_a_sotw_request_are_decoded_and_encoded_unchanged() {
    let bytes = Bytes::from(
        [field(3, b"plain"), field(4, b"T"), field(7, &locator("a", &[("env", "prod")])), field(7, &locator("b", &[]))]
            .concat(),
    );
    let (request, locators) = unstable::decode_sotw_request(bytes.clone()).expect("a request");
    assert_eq!(request.names, ["plain", "a", "b"]);
    assert_eq!(unstable::encode_sotw_request(&request, &locators), bytes);
}

#[test]
fn the_variants_of_a_delta_response_are_decoded_and_encoded_unchanged() {
    let resource = |version: &[u8], name: Vec<u8>| field(2, &[field(1, version), name].concat());
    let bytes = Bytes::from(
        [
            resource(b"1", field(3, b"a")),
            resource(b"2", field(8, &variant("b", b"\x0a\x01x"))),
            resource(b"3", field(8, &variant("c", b""))),
            field(4, b"T"),
            field(5, b"n"),
            field(6, b"gone"),
            field(8, &variant("d", b"\xff not even a message")),
            field(9, &field(1, &variant("e", b"\x0a\x01y"))),
        ]
        .concat(),
    );
    let (response, variants) = unstable::decode_delta_response(bytes.clone()).expect("a response");
    assert_eq!(response.removed, ["gone", "d"]);
    let names: Vec<&str> = response.resources.iter().map(|resource| resource.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(unstable::encode_delta_response(&response, &variants), bytes);
}
