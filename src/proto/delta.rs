//! The messages of the incremental variant on the wire.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::{Buf, Bytes};
use prost::Message;

use super::{DecodeError, generated, node};
use crate::fields::Fields;
use crate::message::delta::{Request, Response, Versions};
use crate::name::TypeUrl;

/// Decodes a `DeltaDiscoveryRequest`.
///
/// # Errors
///
/// If the bytes are not such a message.
pub fn decode_request(bytes: Bytes) -> Result<Request, DecodeError> {
    let (message, versions) = read_request(bytes)?;
    request(message, versions)
}

/// Decodes a request and what it claims. The claims stay encoded.
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

/// Splits a request into what is before the claims, the claims, and what is after them. `None` if nothing is claimed,
/// or in an encoding that takes a decoder.
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

/// Encodes a request and what it claims, the fields in the order of their numbers.
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
    let response = generated::DeltaDiscoveryResponse::decode(bytes);
    Ok(self::response(response.map_err(DecodeError::new("DeltaDiscoveryResponse"))?))
}

pub(super) fn response(response: generated::DeltaDiscoveryResponse) -> Response {
    let type_url = TypeUrl::from(response.type_url);
    let mut removed = super::names(response.removed_resources);
    removed.extend(response.removed_resource_names.into_iter().map(|name| name.name.into()));
    Response {
        system_version: response.system_version_info.into(),
        resources: response.resources.into_iter().map(|resource| super::resource(resource, &type_url)).collect(),
        removed,
        nonce: response.nonce.into(),
        control_plane: response.control_plane.unwrap_or_default().identifier,
        errors: super::errors(response.resource_errors),
        type_url,
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
