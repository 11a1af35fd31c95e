//! The messages of CSDS on the wire.

mod encode;
mod matchers;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;
use prost::Message;

pub use self::encode::{encode_client, encode_response, encoded_client_len};
use super::{DecodeError, generated, node};
use crate::client::ResourceStatus;
use crate::csds::{ClientConfig, ConfigStatus, ErrorState, Item, Request, Response, Timestamp};
use crate::error::{Code, Status};

/// The error for a response that is longer than the limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a status of {len} bytes, limit {limit}: ask for it without contents, or for fewer clients")]
pub struct TooLong {
    /// The length of the encoded response in bytes.
    pub len: usize,
    /// The limit in bytes.
    pub limit: usize,
}

impl From<TooLong> for Status {
    fn from(error: TooLong) -> Self {
        Self::new(Code::ResourceExhausted, alloc::format!("{error}"))
    }
}

/// Decodes a `ClientStatusRequest`.
///
/// # Errors
///
/// If the bytes are not such a message, or a matcher lacks a part, or is not supported (`custom`).
pub fn decode_request(bytes: Bytes) -> Result<Request, DecodeError> {
    const NAME: &str = "ClientStatusRequest";
    let request = generated::ClientStatusRequest::decode(bytes).map_err(DecodeError::new(NAME))?;
    let matchers = request.node_matchers.into_iter().enumerate();
    let matchers = matchers.map(|(at, matcher)| matchers::node(matcher, &alloc::format!("node_matchers[{at}]")));
    Ok(Request {
        matchers: matchers.collect::<Result<_, _>>().map_err(|reason| DecodeError { message: NAME, reason })?,
        node: request.node.as_ref().map(node::decode).transpose()?.map(Arc::new),
        exclude_contents: request.exclude_resource_contents,
    })
}

/// Encodes a `ClientStatusRequest`.
pub fn encode_request(request: &Request) -> Vec<u8> {
    let request = generated::ClientStatusRequest {
        node_matchers: request.matchers.iter().map(matchers::node_out).collect(),
        node: request.node.as_deref().map(node::encode),
        exclude_resource_contents: request.exclude_contents,
    };
    request.encode_to_vec()
}

/// Decodes a `ClientStatusResponse`. The contents of the resources are slices of `bytes`. An item has a version if any
/// of its fields indicates content.
///
/// # Errors
///
/// If the bytes are not such a message.
pub fn decode_response(bytes: Bytes) -> Result<Response, DecodeError> {
    let response = generated::ClientStatusResponse::decode(bytes).map_err(DecodeError::new("ClientStatusResponse"))?;
    let client = |client: generated::ClientConfig| {
        Ok(ClientConfig {
            node: client.node.as_ref().map(node::decode).transpose()?.map(Arc::new),
            scope: client.client_scope,
            items: client.generic_xds_configs.into_iter().map(item).collect(),
        })
    };
    Ok(Response { clients: response.config.into_iter().map(client).collect::<Result<_, DecodeError>>()? })
}

fn item(item: generated::GenericXdsConfig) -> Item {
    let time = |time: generated::Timestamp| Timestamp { seconds: time.seconds, nanos: time.nanos };
    let has_content = !item.version_info.is_empty() || item.xds_config.is_some() || item.last_updated.is_some();
    Item {
        type_url: item.type_url.into(),
        name: item.name.into(),
        version: has_content.then(|| item.version_info.into()),
        contents: item.xds_config.map(|any| any.value),
        updated: item.last_updated.map(time),
        config_status: CONFIG.iter().find(|(_, number)| *number == item.config_status).map(|(status, _)| *status),
        client_status: CLIENT.iter().find(|(_, number)| *number == item.client_status).map(|(status, _)| *status),
        error: item.error_state.map(|error| {
            let at = error.last_update_attempt.map(time);
            Box::new(ErrorState { details: error.details, version: error.version_info.into(), at })
        }),
    }
}

/// The numbers of `ConfigStatus`; 0 is unknown.
const CONFIG: [(ConfigStatus, i32); 4] =
    [(ConfigStatus::Synced, 1), (ConfigStatus::NotSent, 2), (ConfigStatus::Stale, 3), (ConfigStatus::Error, 4)];

/// The numbers of `ClientResourceStatus`; 0 is unknown.
const CLIENT: [(ResourceStatus, i32); 6] = [
    (ResourceStatus::Requested, 1),
    (ResourceStatus::DoesNotExist, 2),
    (ResourceStatus::Acked, 3),
    (ResourceStatus::Nacked, 4),
    (ResourceStatus::ReceivedError, 5),
    (ResourceStatus::TimedOut, 6),
];
