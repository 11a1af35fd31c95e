//! The messages of the incremental variant on the wire.

use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;
use prost::Message;

use super::{DecodeError, generated, node};
use crate::message::delta::{Request, Response};
use crate::name::TypeUrl;

/// Decodes a `DeltaDiscoveryRequest`.
///
/// # Errors
///
/// If the bytes are not such a message.
pub fn decode_request(bytes: Bytes) -> Result<Request, DecodeError> {
    request(generated::DeltaDiscoveryRequest::decode(bytes).map_err(DecodeError::new("DeltaDiscoveryRequest"))?)
}

pub(super) fn request(request: generated::DeltaDiscoveryRequest) -> Result<Request, DecodeError> {
    let mut subscribe = super::names(request.resource_names_subscribe);
    subscribe.extend(super::locator_names(request.resource_locators_subscribe));
    let mut unsubscribe = super::names(request.resource_names_unsubscribe);
    unsubscribe.extend(super::locator_names(request.resource_locators_unsubscribe));
    let versions = request.initial_resource_versions.into_iter();
    Ok(Request {
        node: request.node.as_ref().map(node::decode).transpose()?.map(Arc::new),
        type_url: request.type_url.into(),
        subscribe,
        unsubscribe,
        initial_versions: versions.map(|(name, version)| (name.into(), version.into())).collect(),
        nonce: request.response_nonce.into(),
        error: request.error_detail.map(super::status),
    })
}

/// Encodes a `DeltaDiscoveryRequest`.
pub fn encode_request(request: &Request) -> Vec<u8> {
    request_out(request).encode_to_vec()
}

pub(super) fn request_out(request: &Request) -> generated::DeltaDiscoveryRequest {
    let versions = request.initial_versions.iter();
    generated::DeltaDiscoveryRequest {
        node: request.node.as_deref().map(node::encode),
        type_url: request.type_url.as_str().into(),
        resource_names_subscribe: super::names_out(&request.subscribe),
        resource_names_unsubscribe: super::names_out(&request.unsubscribe),
        initial_resource_versions: versions
            .map(|(name, version)| (name.as_str().into(), version.as_str().into()))
            .collect(),
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
