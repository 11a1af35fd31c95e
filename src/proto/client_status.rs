//! The messages of CSDS on the wire.

mod matchers;

use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;
use prost::Message;
use prost::encoding::{WireType, encode_varint, encoded_len_varint};

use super::{DecodeError, generated, node};
use crate::client::ResourceStatus;
use crate::csds::{ClientConfig, ConfigStatus, ErrorState, Item, Request, Response, Timestamp};
use crate::error::{Code, Status};
use crate::name::{TypeUrl, Version};

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
/// If the bytes are not such a message, or a matcher says nothing, or what is not supported (`custom`).
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
/// of its fields speaks of content.
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
        error: item.error_state.map(|error| ErrorState {
            details: error.details,
            version: error.version_info.into(),
            at: error.last_update_attempt.map(time),
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

/// Encodes a `ClientStatusResponse`, item by item: a hundred thousand items need no strings of their own.
///
/// # Errors
///
/// If the message is longer than `limit` bytes; nothing is written then.
pub fn encode_response(response: &Response, limit: usize) -> Result<Vec<u8>, TooLong> {
    let len = response.len();
    if len > limit {
        return Err(TooLong { len, limit });
    }
    let mut buffer = Vec::with_capacity(len);
    response.put(&mut buffer);
    debug_assert_eq!(buffer.len(), len, "lengths are exact");
    Ok(buffer)
}

/// Returns the length of an encoded client, as a part of a response.
pub fn encoded_client_len(client: &ClientConfig) -> usize {
    let mut counted = Counted(0);
    message(&mut counted, 1, client);
    counted.0
}

/// What fields are written to: a buffer, or a count of the bytes.
trait Sink {
    fn varint(&mut self, value: u64);
    fn bytes(&mut self, bytes: &[u8]);
}

struct Counted(usize);

impl Sink for Counted {
    #[inline]
    fn varint(&mut self, value: u64) {
        self.0 += encoded_len_varint(value);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn varint(&mut self, value: u64) {
        encode_varint(value, self);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A message that is written field by field.
trait Put {
    fn put(&self, to: &mut impl Sink);

    fn len(&self) -> usize {
        let mut counted = Counted(0);
        self.put(&mut counted);
        counted.0
    }
}

fn key(to: &mut impl Sink, number: u64, wire_type: WireType) {
    to.varint(number << 3 | wire_type as u64);
}

/// Writes a field that proto3 omits when it is empty.
fn text(to: &mut impl Sink, number: u64, text: &[u8]) {
    if !text.is_empty() {
        key(to, number, WireType::LengthDelimited);
        to.varint(text.len() as u64);
        to.bytes(text);
    }
}

fn number(to: &mut impl Sink, field: u64, value: i64) {
    if value != 0 {
        key(to, field, WireType::Varint);
        to.varint(value as u64); // as protobuf does: negative numbers have ten bytes
    }
}

fn message(to: &mut impl Sink, number: u64, message: &impl Put) {
    key(to, number, WireType::LengthDelimited);
    to.varint(message.len() as u64);
    message.put(to);
}

impl Put for Response {
    fn put(&self, to: &mut impl Sink) {
        self.clients.iter().for_each(|client| message(to, 1, client));
    }
}

impl Put for ClientConfig {
    fn put(&self, to: &mut impl Sink) {
        if let Some(node) = &self.node {
            let node = node::encode(node);
            key(to, 1, WireType::LengthDelimited);
            to.varint(node.len() as u64);
            to.bytes(&node);
        }
        self.items.iter().for_each(|item| message(to, 3, item));
        text(to, 4, self.scope.as_bytes());
    }
}

impl Put for Item {
    fn put(&self, to: &mut impl Sink) {
        text(to, 1, self.type_url.as_str().as_bytes());
        text(to, 2, self.name.as_str().as_bytes());
        text(to, 3, self.version.as_ref().map_or(&[], Version::as_bytes));
        if let Some(contents) = &self.contents {
            message(to, 4, &Any(&self.type_url, contents));
        }
        if let Some(updated) = &self.updated {
            message(to, 5, updated);
        }
        let config = CONFIG.iter().find(|(status, _)| Some(*status) == self.config_status);
        number(to, 6, config.map_or(0, |(_, number)| (*number).into()));
        let client = CLIENT.iter().find(|(status, _)| Some(*status) == self.client_status);
        number(to, 7, client.map_or(0, |(_, number)| (*number).into()));
        if let Some(error) = &self.error {
            message(to, 8, error);
        }
    }
}

/// The content of a resource, of its item's type.
struct Any<'a>(&'a TypeUrl, &'a Bytes);

impl Put for Any<'_> {
    fn put(&self, to: &mut impl Sink) {
        text(to, 1, self.0.as_str().as_bytes());
        text(to, 2, self.1);
    }
}

impl Put for Timestamp {
    fn put(&self, to: &mut impl Sink) {
        number(to, 1, self.seconds);
        number(to, 2, self.nanos.into());
    }
}

impl Put for ErrorState {
    fn put(&self, to: &mut impl Sink) {
        if let Some(at) = &self.at {
            message(to, 2, at);
        }
        text(to, 3, self.details.as_bytes());
        text(to, 4, self.version.as_bytes());
    }
}
