//! Encodes a `ClientStatusResponse` item by item: a hundred thousand items need no strings of their own.

use alloc::vec::Vec;

use bytes::Bytes;

use super::{CLIENT, CONFIG, TooLong};
use crate::csds::{ClientConfig, ErrorRef, Item, ItemRef, Response, Timestamp};
use crate::message::Node;
use crate::name::Version;
use crate::proto::node;
use crate::wire::{Writer, field_len, number_len, string_len};

/// The most bytes of the head of a field: its number, and a length of 64 bits.
const HEAD: usize = 11;

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

/// Encodes a `ClientStatusResponse` of one client, whose items are borrowed from the machine: `items` in the order of
/// their types and names, as [`dump`](crate::csds::dump()) yields them. Each item is read once, and copied only into
/// the message. Such responses one after the other are a response of several clients, as protobuf merges them.
///
/// # Errors
///
/// If the message is longer than `limit` bytes. Items beyond the limit are counted, and not written.
pub fn encode_client<'a>(
    node: Option<&Node>,
    scope: &str,
    items: impl IntoIterator<Item = ItemRef<'a>>,
    limit: usize,
) -> Result<Bytes, TooLong> {
    // The length comes before the items, and is known after them.
    let mut buffer = Vec::from([0; HEAD]);
    if let Some(node) = node {
        Writer::append(&mut buffer).bytes(1, &node::encode(node));
    }
    let mut items = items.into_iter();
    while let Some(item) = (buffer.len() <= limit.saturating_add(HEAD)).then(|| items.next()).flatten() {
        put_item(&item, &mut Writer::append(&mut buffer));
    }
    let unwritten: usize = items.map(|item| field_len(item_len(&item))).sum();
    Writer::append(&mut buffer).string(4, scope.as_bytes());
    let of_client = buffer.len() - HEAD + unwritten;
    let len = field_len(of_client);
    if len > limit {
        return Err(TooLong { len, limit });
    }
    let start = HEAD - (len - of_client);
    let mut head = Vec::with_capacity(HEAD);
    Writer::append(&mut head).head(1, of_client);
    buffer[start..HEAD].copy_from_slice(&head);
    Ok(Bytes::from(buffer).slice(start..))
}

/// Returns the length of an encoded client, as a part of a response.
pub fn encoded_client_len(client: &ClientConfig) -> usize {
    field_len(Measured::new(client).len)
}

/// A client with its length.
struct Measured<'a> {
    client: &'a ClientConfig,
    node: Option<Bytes>,
    /// The length of the client, without the head of its field.
    len: usize,
}

impl<'a> Measured<'a> {
    fn new(client: &'a ClientConfig) -> Self {
        let node = client.node.as_deref().map(node::encode);
        let items = client.items.iter().map(Item::borrowed);
        let len = node.as_ref().map_or(0, |node| field_len(node.len()))
            + items.map(|item| field_len(item_len(&item))).sum::<usize>()
            + string_len(client.scope.len());
        Self { client, node, len }
    }

    fn put(&self, to: &mut Writer<'_>) {
        to.head(1, self.len);
        if let Some(node) = &self.node {
            to.bytes(1, node);
        }
        self.client.items.iter().for_each(|item| put_item(&item.borrowed(), to));
        to.string(4, self.client.scope.as_bytes());
    }
}

/// Returns the numbers of the two statuses; 0 is unknown.
fn statuses(item: &ItemRef<'_>) -> [u64; 2] {
    let config = CONFIG.iter().find(|(status, _)| Some(*status) == item.config_status);
    let client = CLIENT.iter().find(|(status, _)| Some(*status) == item.client_status);
    [config.map(|(_, number)| *number), client.map(|(_, number)| *number)].map(|number| int(number.unwrap_or(0).into()))
}

fn bytes(version: Option<&Version>) -> &[u8] {
    version.map_or(&[], Version::as_bytes)
}

/// Returns a number as protobuf encodes it: a negative one has ten bytes.
fn int(value: i64) -> u64 {
    value as u64
}

fn item_len(item: &ItemRef<'_>) -> usize {
    string_len(item.type_url.as_str().len())
        + string_len(item.name.as_str().len())
        + string_len(bytes(item.version).len())
        + item.contents.as_ref().map_or(0, |contents| field_len(any_len(item, contents)))
        + item.updated.as_ref().map_or(0, |updated| field_len(time_len(updated)))
        + statuses(item).map(number_len).iter().sum::<usize>()
        + item.error.as_ref().map_or(0, |error| field_len(error_len(error)))
}

fn put_item(item: &ItemRef<'_>, to: &mut Writer<'_>) {
    let type_url = item.type_url.as_str().as_bytes();
    to.head(3, item_len(item));
    to.string(1, type_url);
    to.string(2, item.name.as_str().as_bytes());
    to.string(3, bytes(item.version));
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
        to.string(4, bytes(error.version));
    }
}

/// Returns the length of the content of a resource, an `Any` of the item's type.
fn any_len(item: &ItemRef<'_>, contents: &[u8]) -> usize {
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

fn error_len(error: &ErrorRef<'_>) -> usize {
    error.at.as_ref().map_or(0, |at| field_len(time_len(at)))
        + string_len(error.details.len())
        + string_len(bytes(error.version).len())
}
