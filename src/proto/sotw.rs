//! The messages of the state-of-the-world variant on the wire.

use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;
use prost::Message;

use super::{DecodeError, generated, node};
use crate::fields::{Fields, Value};
use crate::message::Any;
use crate::message::sotw::{Item, Request, Response};
use crate::name::TypeUrl;
use crate::type_url;

/// Decodes a `DiscoveryRequest`.
///
/// # Errors
///
/// If the bytes are not such a message.
pub fn decode_request(bytes: Bytes) -> Result<Request, DecodeError> {
    request(generated::DiscoveryRequest::decode(bytes).map_err(DecodeError::new("DiscoveryRequest"))?)
}

pub(super) fn request(request: generated::DiscoveryRequest) -> Result<Request, DecodeError> {
    let mut names = super::names(request.resource_names);
    names.extend(super::locator_names(request.resource_locators));
    Ok(Request {
        node: request.node.as_ref().map(node::decode).transpose()?.map(Arc::new),
        type_url: request.type_url.into(),
        names,
        version: request.version_info.into(),
        nonce: request.response_nonce.into(),
        error: request.error_detail.map(super::status),
    })
}

/// Encodes a `DiscoveryRequest`.
pub fn encode_request(request: &Request) -> Vec<u8> {
    request_out(request).encode_to_vec()
}

pub(super) fn request_out(request: &Request) -> generated::DiscoveryRequest {
    generated::DiscoveryRequest {
        version_info: request.version.as_str().into(),
        node: request.node.as_deref().map(node::encode),
        resource_names: super::names_out(&request.names),
        type_url: request.type_url.as_str().into(),
        response_nonce: request.nonce.as_str().into(),
        error_detail: request.error.as_ref().map(super::status_out),
        resource_locators: Vec::new(),
    }
}

/// Decodes a `DiscoveryResponse`. The bodies of the resources are slices of `bytes`.
///
/// # Errors
///
/// If the bytes are not such a message. The content of a resource is not examined: a malformed wrapper becomes
/// [`Item::Malformed`].
pub fn decode_response(bytes: Bytes) -> Result<Response, DecodeError> {
    match decode_plain(&bytes) {
        Some(response) => Ok(response),
        None => decode_any(bytes),
    }
}

/// Reads the resources in place, one by one, and leaves the rest to prost: a hundred thousand equal type URLs need not
/// be copied. Returns `None` for anything unusual, which [`decode_any`] handles.
fn decode_plain(bytes: &Bytes) -> Option<Response> {
    let (mut resources, mut rest) = (Vec::new(), Vec::new());
    let mut type_url = TypeUrl::from(type_url::CLUSTER);
    let mut fields = Fields::new(bytes);
    while let Some(field) = fields.next_raw() {
        match field.ok()? {
            (2, Value::Bytes(resource), _) => {
                let any = super::read_any(bytes, resource, &type_url)?;
                if any.type_url != type_url {
                    type_url = any.type_url.clone();
                }
                resources.push(item(any, &type_url));
            }
            (_, _, raw) => rest.extend_from_slice(raw),
        }
    }
    Some(response(generated::DiscoveryResponse::decode(rest.as_slice()).ok()?, resources))
}

/// Decodes any response.
fn decode_any(bytes: Bytes) -> Result<Response, DecodeError> {
    let mut message = generated::DiscoveryResponse::decode(bytes).map_err(DecodeError::new("DiscoveryResponse"))?;
    let type_url = TypeUrl::from(message.type_url.as_str());
    let resources = core::mem::take(&mut message.resources).into_iter();
    let resources = resources.map(|any| item(super::any(any, &type_url), &type_url)).collect();
    Ok(response(message, resources))
}

fn response(message: generated::DiscoveryResponse, resources: Vec<Item>) -> Response {
    Response {
        version: message.version_info.into(),
        resources,
        type_url: message.type_url.into(),
        nonce: message.nonce.into(),
        control_plane: message.control_plane.unwrap_or_default().identifier,
        errors: super::errors(message.resource_errors),
    }
}

/// Encodes a `DiscoveryResponse`.
pub fn encode_response(response: &Response) -> Vec<u8> {
    let resources = response.resources.iter().map(|item| match item {
        Item::Bare(any) => super::any_out(any),
        Item::Wrapped(resource) => wrapper(super::resource_out(resource).encode_to_vec().into()),
        Item::Malformed => wrapper(Bytes::from_static(&[0xff])),
    });
    generated::DiscoveryResponse {
        version_info: response.version.as_str().into(),
        resources: resources.collect(),
        canary: false,
        type_url: response.type_url.as_str().into(),
        nonce: response.nonce.as_str().into(),
        control_plane: super::control_plane_out(&response.control_plane),
        resource_errors: super::errors_out(&response.errors),
    }
    .encode_to_vec()
}

fn item(any: Any, type_url: &TypeUrl) -> Item {
    if any.type_url == type_url::RESOURCE {
        match generated::Resource::decode(any.value) {
            Ok(resource) => Item::Wrapped(super::resource(resource, type_url).into()),
            Err(_) => Item::Malformed,
        }
    } else {
        Item::Bare(any)
    }
}

fn wrapper(value: Bytes) -> generated::Any {
    generated::Any { type_url: type_url::RESOURCE.into(), value }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::message::ResourceError;
    use crate::proto::neighbours::same_for_all_neighbours;

    fn message() -> Vec<u8> {
        let any = |type_url: &str| Any { type_url: type_url.into(), value: Bytes::from_static(b"\x0a\x01a") };
        let wrapped = crate::message::Resource {
            name: "a".into(),
            version: "1".into(),
            aliases: Vec::new(),
            body: Some(any("type")),
            ttl: Some(core::time::Duration::from_secs(1)),
        };
        let empty = Any { type_url: "type".into(), value: Bytes::new() };
        encode_response(&Response {
            version: "v".into(),
            resources: vec![
                Item::Bare(any("type")),
                Item::Bare(any("other")),
                Item::Wrapped(wrapped.into()),
                Item::Malformed,
                Item::Bare(empty),
                Item::Bare(any(type_url::CLUSTER)),
            ],
            type_url: "type".into(),
            nonce: "n".into(),
            control_plane: "c".into(),
            errors: vec![ResourceError { name: "e".into(), status: None }],
        })
    }

    #[test]
    fn the_plain_decoder_reads_what_prost_reads() {
        let plain = decode_plain(&message().into()).expect("as usual");
        assert_eq!(plain.resources.len(), 6);
        same_for_all_neighbours(&message(), decode_plain, decode_any);
    }
}
