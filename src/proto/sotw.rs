//! The messages of the state-of-the-world variant on the wire.

use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;
use prost::Message;

use super::{DecodeError, generated, node};
use crate::message::sotw::{Item, Request, Response};
use crate::name::TypeUrl;
use crate::resource_type::type_url;

/// Reads a `DiscoveryRequest`.
///
/// # Errors
///
/// If the bytes are no such message.
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

/// Writes a `DiscoveryRequest`.
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

/// Reads a `DiscoveryResponse`. The bodies of the resources are slices of `bytes`.
///
/// # Errors
///
/// If the bytes are no such message. What is inside a resource is not looked at: a broken wrapper becomes
/// [`Item::Malformed`].
pub fn decode_response(bytes: Bytes) -> Result<Response, DecodeError> {
    let response = generated::DiscoveryResponse::decode(bytes).map_err(DecodeError::new("DiscoveryResponse"))?;
    let type_url = TypeUrl::from(response.type_url);
    Ok(Response {
        version: response.version_info.into(),
        resources: response.resources.into_iter().map(|any| item(any, &type_url)).collect(),
        nonce: response.nonce.into(),
        control_plane: response.control_plane.unwrap_or_default().identifier,
        errors: super::errors(response.resource_errors),
        type_url,
    })
}

/// Writes a `DiscoveryResponse`.
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

fn item(any: generated::Any, type_url: &TypeUrl) -> Item {
    if any.type_url == type_url::RESOURCE {
        match generated::Resource::decode(any.value) {
            Ok(resource) => Item::Wrapped(super::resource(resource, type_url).into()),
            Err(_) => Item::Malformed,
        }
    } else {
        Item::Bare(super::any(any, type_url))
    }
}

fn wrapper(value: Bytes) -> generated::Any {
    generated::Any { type_url: type_url::RESOURCE.into(), value }
}
