//! Encodes a `ClientStatusResponse` item by item: a hundred thousand items need no strings of their own. The length of an
//! item is counted once, and kept until the item is written.

use alloc::vec::Vec;

use bytes::Bytes;

use super::{CLIENT, CONFIG, TooLong};
use crate::csds::{ClientConfig, ErrorState, Item, Response, Timestamp};
use crate::name::Version;
use crate::proto::node;
use crate::wire::{Writer, field_len, number_len, string_len};

/// Encodes a `ClientStatusResponse`.
///
/// # Errors
///
/// If the message is longer than `limit` bytes; nothing is written then.
pub fn encode_response(response: &Response, limit: usize) -> Result<Vec<u8>, TooLong> {
    let clients: Vec<Measured<'_>> = response.clients.iter().map(Measured::new).collect();
    let len = clients.iter().map(|client| field_len(client.len)).sum();
    if len > limit {
        return Err(TooLong { len, limit });
    }
    Ok(Writer::fill(len, |to| clients.iter().for_each(|client| client.put(to))))
}

/// Returns the length of an encoded client, as a part of a response.
pub fn encoded_client_len(client: &ClientConfig) -> usize {
    field_len(Measured::new(client).len)
}

/// A client with the lengths of its items.
struct Measured<'a> {
    client: &'a ClientConfig,
    node: Option<Bytes>,
    items: Vec<usize>,
    /// The length of the client, without the head of its field.
    len: usize,
}

impl<'a> Measured<'a> {
    fn new(client: &'a ClientConfig) -> Self {
        let node = client.node.as_deref().map(node::encode);
        let items: Vec<usize> = client.items.iter().map(item_len).collect();
        let len = node.as_ref().map_or(0, |node| field_len(node.len()))
            + items.iter().map(|len| field_len(*len)).sum::<usize>()
            + string_len(client.scope.len());
        Self { client, node, items, len }
    }

    fn put(&self, to: &mut Writer<'_>) {
        to.head(1, self.len);
        if let Some(node) = &self.node {
            to.bytes(1, node);
        }
        for (item, len) in self.client.items.iter().zip(&self.items) {
            to.head(3, *len);
            put_item(item, to);
        }
        to.string(4, self.client.scope.as_bytes());
    }
}

/// Returns the numbers of the two statuses; 0 is unknown.
fn statuses(item: &Item) -> [u64; 2] {
    let config = CONFIG.iter().find(|(status, _)| Some(*status) == item.config_status);
    let client = CLIENT.iter().find(|(status, _)| Some(*status) == item.client_status);
    [config.map(|(_, number)| *number), client.map(|(_, number)| *number)].map(|number| int(number.unwrap_or(0).into()))
}

fn version(item: &Item) -> &[u8] {
    item.version.as_ref().map_or(&[], Version::as_bytes)
}

/// Returns a number as protobuf encodes it: a negative one has ten bytes.
fn int(value: i64) -> u64 {
    value as u64
}

fn item_len(item: &Item) -> usize {
    string_len(item.type_url.as_str().len())
        + string_len(item.name.as_str().len())
        + string_len(version(item).len())
        + item.contents.as_ref().map_or(0, |contents| field_len(any_len(item, contents)))
        + item.updated.as_ref().map_or(0, |updated| field_len(time_len(updated)))
        + statuses(item).map(number_len).iter().sum::<usize>()
        + item.error.as_ref().map_or(0, |error| field_len(error_len(error)))
}

fn put_item(item: &Item, to: &mut Writer<'_>) {
    let type_url = item.type_url.as_str().as_bytes();
    to.string(1, type_url);
    to.string(2, item.name.as_str().as_bytes());
    to.string(3, version(item));
    if let Some(contents) = &item.contents {
        to.head(4, any_len(item, contents));
        to.string(1, type_url);
        to.string(2, contents);
    }
    if let Some(updated) = &item.updated {
        put_time(5, updated, to);
    }
    let [config, client] = statuses(item);
    to.number(6, config);
    to.number(7, client);
    if let Some(error) = &item.error {
        to.head(8, error_len(error));
        if let Some(at) = &error.at {
            put_time(2, at, to);
        }
        to.string(3, error.details.as_bytes());
        to.string(4, error.version.as_bytes());
    }
}

/// Returns the length of the content of a resource, an `Any` of the item's type.
fn any_len(item: &Item, contents: &[u8]) -> usize {
    string_len(item.type_url.as_str().len()) + string_len(contents.len())
}

fn time_len(time: &Timestamp) -> usize {
    number_len(int(time.seconds)) + number_len(int(time.nanos.into()))
}

fn put_time(number: u8, time: &Timestamp, to: &mut Writer<'_>) {
    to.head(number, time_len(time));
    to.number(1, int(time.seconds));
    to.number(2, int(time.nanos.into()));
}

fn error_len(error: &ErrorState) -> usize {
    error.at.as_ref().map_or(0, |at| field_len(time_len(at)))
        + string_len(error.details.len())
        + string_len(error.version.as_bytes().len())
}
