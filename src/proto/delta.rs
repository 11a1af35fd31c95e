//! The messages of the incremental variant on the wire.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::{Buf, Bytes};
use prost::Message;

use super::{DecodeError, generated, node};
use crate::fields::{Fields, Value};
use crate::message::Resource;
use crate::message::delta::{Request, Response, Versions};
use crate::name::TypeUrl;
use crate::type_url;

/// Decodes a `DeltaDiscoveryRequest`.
///
/// # Errors
///
/// If the bytes are not such a message.
pub fn decode_request(bytes: Bytes) -> Result<Request, DecodeError> {
    let (message, versions) = read_request(bytes)?;
    request(message, versions)
}

/// Decodes a request and its claims (`initial_resource_versions`). The claims stay encoded.
pub(super) fn read_request(bytes: Bytes) -> Result<(generated::DeltaDiscoveryRequest, Versions), DecodeError> {
    let error = DecodeError::new("DeltaDiscoveryRequest");
    let (versions, rest) = match split(&bytes) {
        Some((before, versions, after)) => {
            (Some(versions), generated::DeltaDiscoveryRequest::decode(before.chain(after)))
        }
        None => (None, generated::DeltaDiscoveryRequest::decode(bytes)),
    };
    let mut message = rest.map_err(error)?;
    let decoded = core::mem::take(&mut message.initial_resource_versions);
    Ok((message, versions.unwrap_or_else(|| decoded.into_iter().collect())))
}

/// Splits a request into the part before the claims, the claims, and the part after them. `None` if there are no
/// claims, or if their encoding takes a decoder.
fn split(bytes: &Bytes) -> Option<(Bytes, Versions, Bytes)> {
    const CLAIMS: u32 = 5;
    let (mut fields, mut start) = (Fields::new(bytes), 0);
    loop {
        let (number, _, raw) = fields.next_raw()?.ok()?;
        if number == CLAIMS {
            break;
        }
        start += raw.len();
    }
    let (len, versions) = Versions::read(&bytes[start..])?;
    let end = start + len;
    let are_all = Fields::new(&bytes[end..]).all(|field| field.is_ok_and(|(number, _)| number != CLAIMS));
    // A few claims must not keep a large request in memory.
    let entries =
        if len < bytes.len() / 2 { Bytes::copy_from_slice(&bytes[start..end]) } else { bytes.slice(start..end) };
    (len > 0 && are_all).then(|| (bytes.slice(..start), versions.with_entries(entries), bytes.slice(end..)))
}

pub(super) fn request(request: generated::DeltaDiscoveryRequest, versions: Versions) -> Result<Request, DecodeError> {
    let mut subscribe = super::names(request.resource_names_subscribe);
    subscribe.extend(super::locator_names(request.resource_locators_subscribe));
    let mut unsubscribe = super::names(request.resource_names_unsubscribe);
    unsubscribe.extend(super::locator_names(request.resource_locators_unsubscribe));
    Ok(Request {
        node: request.node.as_ref().map(node::decode).transpose()?.map(Arc::new),
        type_url: request.type_url.into(),
        subscribe,
        unsubscribe,
        initial_versions: versions,
        nonce: request.response_nonce.into(),
        error: request.error_detail.map(super::status),
    })
}

/// Encodes a `DeltaDiscoveryRequest`.
pub fn encode_request(request: &Request) -> Vec<u8> {
    write_request(request_out(request), &request.initial_versions)
}

/// Encodes a request and its claims, with the fields in the order of their numbers.
pub(super) fn write_request(mut before: generated::DeltaDiscoveryRequest, versions: &Versions) -> Vec<u8> {
    let after = generated::DeltaDiscoveryRequest {
        response_nonce: core::mem::take(&mut before.response_nonce),
        error_detail: before.error_detail.take(),
        resource_locators_subscribe: core::mem::take(&mut before.resource_locators_subscribe),
        resource_locators_unsubscribe: core::mem::take(&mut before.resource_locators_unsubscribe),
        ..generated::DeltaDiscoveryRequest::default()
    };
    let mut bytes = before.encode_to_vec();
    bytes.extend_from_slice(&versions.encoded());
    bytes.extend(after.encode_to_vec());
    bytes
}

pub(super) fn request_out(request: &Request) -> generated::DeltaDiscoveryRequest {
    generated::DeltaDiscoveryRequest {
        node: request.node.as_deref().map(node::encode),
        type_url: request.type_url.as_str().into(),
        resource_names_subscribe: super::names_out(&request.subscribe),
        resource_names_unsubscribe: super::names_out(&request.unsubscribe),
        initial_resource_versions: BTreeMap::new(), // written from their bytes
        response_nonce: request.nonce.as_str().into(),
        error_detail: request.error.as_ref().map(super::status_out),
        resource_locators_subscribe: Vec::new(),
        resource_locators_unsubscribe: Vec::new(),
    }
}

/// Decodes a `DeltaDiscoveryResponse`. The bodies of the resources are slices of `bytes`.
///
/// # Errors
///
/// If the bytes are not such a message. The content of a resource is not examined.
pub fn decode_response(bytes: Bytes) -> Result<Response, DecodeError> {
    match decode_plain(&bytes) {
        Some(response) => Ok(response),
        None => decode_any(bytes),
    }
}

/// Reads the resources in place, one by one, and leaves the rest to prost. Returns `None` for anything unusual, which
/// [`decode_any`] handles.
fn decode_plain(bytes: &Bytes) -> Option<Response> {
    let (mut resources, mut rest) = (Vec::<Resource>::new(), Vec::new());
    let mut type_url = TypeUrl::from(type_url::CLUSTER);
    let mut fields = Fields::new(bytes);
    while let Some(field) = fields.next_raw() {
        match field.ok()? {
            (2, Value::Bytes(resource), _) => {
                let resource = super::read_resource(bytes, resource, &type_url)?;
                if let Some(body) = resource.body.as_ref().filter(|body| body.type_url != type_url) {
                    type_url = body.type_url.clone();
                }
                resources.push(resource);
            }
            (_, _, raw) => rest.extend_from_slice(raw),
        }
    }
    Some(with_resources(generated::DeltaDiscoveryResponse::decode(rest.as_slice()).ok()?, resources))
}

/// Decodes any response.
fn decode_any(bytes: Bytes) -> Result<Response, DecodeError> {
    let message = generated::DeltaDiscoveryResponse::decode(bytes);
    Ok(response(message.map_err(DecodeError::new("DeltaDiscoveryResponse"))?))
}

pub(super) fn response(mut message: generated::DeltaDiscoveryResponse) -> Response {
    let type_url = TypeUrl::from(message.type_url.as_str());
    let resources = core::mem::take(&mut message.resources).into_iter();
    let resources = resources.map(|resource| super::resource(resource, &type_url)).collect();
    with_resources(message, resources)
}

/// Makes a response of a message and the resources that were taken from it.
fn with_resources(message: generated::DeltaDiscoveryResponse, resources: Vec<Resource>) -> Response {
    let mut removed = super::names(message.removed_resources);
    removed.extend(message.removed_resource_names.into_iter().map(|name| name.name.into()));
    Response {
        system_version: message.system_version_info.into(),
        resources,
        removed,
        nonce: message.nonce.into(),
        control_plane: message.control_plane.unwrap_or_default().identifier,
        errors: super::errors(message.resource_errors),
        type_url: message.type_url.into(),
    }
}

/// Encodes a `DeltaDiscoveryResponse`.
pub fn encode_response(response: &Response) -> Vec<u8> {
    response_out(response).encode_to_vec()
}

pub(super) fn response_out(response: &Response) -> generated::DeltaDiscoveryResponse {
    generated::DeltaDiscoveryResponse {
        system_version_info: response.system_version.as_str().into(),
        resources: response.resources.iter().map(super::resource_out).collect(),
        type_url: response.type_url.as_str().into(),
        nonce: response.nonce.as_str().into(),
        removed_resources: super::names_out(&response.removed),
        control_plane: super::control_plane_out(&response.control_plane),
        removed_resource_names: Vec::new(),
        resource_errors: super::errors_out(&response.errors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::neighbours::same_for_all_neighbours;

    const HEAD: [u8; 6] = [0x12, 1, b't', 0x1a, 1, b'*'];
    const A1: [u8; 8] = [0x2a, 6, 0x0a, 1, b'a', 0x12, 1, b'1'];
    const A2: [u8; 8] = [0x2a, 6, 0x0a, 1, b'a', 0x12, 1, b'2'];
    const B1: [u8; 8] = [0x2a, 6, 0x0a, 1, b'b', 0x12, 1, b'1'];
    const NONCE: [u8; 3] = [0x32, 1, b'n'];

    fn claims(parts: &[&[u8]]) -> Versions {
        let bytes = Bytes::from(parts.concat());
        let by_prost = generated::DeltaDiscoveryRequest::decode(bytes.clone()).expect("a message");
        let request = decode_request(bytes).expect("a message");
        let by_prost: Versions = by_prost.initial_resource_versions.into_iter().collect();
        assert_eq!(request.initial_versions, by_prost, "as prost decodes them");
        assert_eq!((request.type_url.as_str(), &request.subscribe[..]), ("t", &["*".into()][..]));
        request.initial_versions
    }

    #[test]
    fn claims_are_those_that_prost_decodes() {
        let both = Versions::from([("a", "1"), ("b", "1")]);
        assert_eq!(claims(&[&HEAD]), Versions::default());
        assert_eq!(claims(&[&HEAD, &A1, &B1, &NONCE]), both);
        assert_eq!(claims(&[&B1, &A1, &HEAD]), both, "before everything else");
        assert_eq!(claims(&[&A1, &HEAD, &B1]), both, "apart");
        assert_eq!(claims(&[&HEAD, &A1, &B1, &A2]), [("a", "2"), ("b", "1")].into(), "the last of a name counts");
        assert_eq!(claims(&[&A2, &HEAD, &A1]), [("a", "1")].into(), "the same, apart");
        assert_eq!(claims(&[&HEAD, &[0x2a, 3, 0x12, 1, b'1']]), [("", "1")].into(), "no name");
    }

    #[test]
    fn claims_are_encoded_in_the_order_of_names() {
        let request = decode_request([&HEAD[..], &B1, &A1, &NONCE].concat().into()).expect("a message");
        assert_eq!(encode_request(&request), [&HEAD[..], &A1, &B1, &NONCE].concat());
    }

    #[test]
    fn claims_share_the_request_unless_they_are_a_small_part_of_it() {
        let share = |bytes: Vec<u8>| {
            let bytes = Bytes::from(bytes);
            let request = decode_request(bytes.clone()).expect("a message");
            drop(request.type_url);
            let shared = !bytes.is_unique();
            drop(request.initial_versions);
            (shared, bytes.is_unique())
        };
        assert_eq!(share([&HEAD[..], &A1, &B1].concat()), (true, true));
        let name = [&[0x1a, 100][..], &[b'x'; 100]].concat();
        assert_eq!(share([&HEAD[..], &name, &A1, &B1].concat()), (false, true));
    }

    #[test]
    fn malformed_claims_are_refused() {
        let refusal = |bytes: &[u8]| {
            decode_request([&HEAD[..], bytes].concat().into()).map_err(|error| alloc::format!("{error}"))
        };
        for bytes in [&[0x2a, 3, 0x0a, 1, 0xff][..], &[0x2a, 9, 0x0a, 1, b'a'], &[0x28, 1], &[0x2a]] {
            let error = refusal(bytes).expect_err("no message");
            assert!(error.starts_with("malformed DeltaDiscoveryRequest: "), "{error}");
        }
    }

    fn resource(name: &str, type_url: &str) -> Resource {
        let value = Bytes::from_static(b"\x0a\x01a");
        let body = Some(crate::message::Any { type_url: type_url.into(), value });
        Resource { name: name.into(), version: "1".into(), aliases: Vec::new(), body, ttl: None }
    }

    fn message() -> Vec<u8> {
        let ttl = Some(core::time::Duration::from_secs(1));
        encode_response(&Response {
            system_version: "v".into(),
            resources: Vec::from([
                resource("a", "type"),
                resource("b", "other"),
                Resource { ttl, aliases: Vec::from(["d".into()]), ..resource("c", "type") },
                Resource { body: None, ..resource("e", "") },
                Resource { version: "".into(), ..resource("", type_url::CLUSTER) },
            ]),
            removed: Vec::from(["r".into()]),
            nonce: "n".into(),
            control_plane: "c".into(),
            errors: Vec::from([crate::message::ResourceError { name: "e".into(), status: None }]),
            type_url: "type".into(),
        })
    }

    #[test]
    fn the_plain_decoder_reads_what_prost_reads() {
        let plain = decode_plain(&message().into()).expect("as usual");
        assert_eq!(plain.resources.len(), 5);
        same_for_all_neighbours(&message(), decode_plain, decode_any);
    }

    #[test]
    fn a_body_is_a_slice_of_the_response() {
        let bytes = Bytes::from(message());
        let response = decode_response(bytes.clone()).expect("a message");
        let bodies = response.resources.iter().filter_map(|resource| resource.body.as_ref());
        assert!(bodies.map(|body| &body.value).all(|value| bytes.as_ptr_range().contains(&value.as_ptr())));
    }
}
