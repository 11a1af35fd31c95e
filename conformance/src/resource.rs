//! The resources that the kit gives to a server: real messages of the xDS API, small, each with a revision inside.
//!
//! A server may decode a resource and encode it again, so the kit never compares bytes: the revision is a field that
//! any server keeps, and that differs whenever the resource does.

use std::time::Duration;

use xds_machine::type_url;

/// The short names of the types, as stories have them.
pub const TYPES: [(&str, &str); 4] =
    [("cds", type_url::CLUSTER), ("eds", type_url::ENDPOINT), ("lds", type_url::LISTENER), ("rds", type_url::ROUTE)];

/// Returns the type URL of a short name, or the word itself.
pub fn type_url(word: &str) -> &str {
    TYPES.iter().find(|(short, _)| *short == word).map_or(word, |(_, url)| url)
}

/// Returns the short name of a type URL, or the URL itself.
pub fn short(type_url: &str) -> &str {
    TYPES.iter().find(|(_, url)| *url == type_url).map_or(type_url, |(short, _)| short)
}

/// Returns whether a word is the short name of a type.
pub fn is_common(word: &str) -> bool {
    TYPES.iter().any(|(short, _)| *short == word)
}

/// Returns whether SotW responses of the type hold the complete state (xds_protocol.rst, "Grouping Resources into
/// Responses").
pub fn is_full_state(type_url: &str) -> bool {
    [type_url::CLUSTER, type_url::LISTENER].contains(&type_url)
}

/// A resource as a control puts it into a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Put {
    /// The type URL.
    pub type_url: String,
    /// The name.
    pub name: String,
    /// The revision, which the content carries.
    pub revision: u64,
    /// The time to live, where the feature `ttl` is named.
    pub ttl: Option<Duration>,
    /// Another name, where the feature `alias` is named.
    pub alias: Option<String>,
}

impl Put {
    /// Returns the encoded resource, as in `Any.value`.
    pub fn body(&self) -> Vec<u8> {
        body(&self.type_url, &self.name, self.revision)
    }

    /// Returns the resource as JSON, without `@type`; the same content as [`body`](Self::body).
    pub fn json(&self) -> serde_json::Value {
        let Self { name, revision, .. } = self;
        match self.type_url.as_str() {
            type_url::CLUSTER => serde_json::json!({
                "name": name, "type": "EDS", "connectTimeout": format!("{revision}s"),
                "edsClusterConfig": {"edsConfig": {"ads": {}, "resourceApiVersion": "V3"}},
            }),
            type_url::ENDPOINT => {
                serde_json::json!({"clusterName": name, "policy": {"overprovisioningFactor": revision}})
            }
            type_url::LISTENER => serde_json::json!({"name": name, "perConnectionBufferLimitBytes": revision}),
            type_url::ROUTE => serde_json::json!({"name": name, "internalOnlyHeaders": [format!("r{revision}")]}),
            _ => serde_json::json!({"name": name, "revision": revision}),
        }
    }
}

/// Encodes a resource of this name and revision.
pub fn body(type_url: &str, name: &str, revision: u64) -> Vec<u8> {
    let mut body = field(1, name.as_bytes());
    match type_url {
        type_url::CLUSTER => {
            body.extend([0x10, 3]); // type: EDS
            let source = [field(3, &[]), vec![0x30, 2]].concat(); // ads, resource_api_version: V3
            body.extend(field(3, &field(1, &source)));
            body.extend(field(4, &number(1, revision))); // connect_timeout.seconds
        }
        type_url::ENDPOINT => body.extend(field(4, &field(3, &number(1, revision)))), // policy.overprovisioning_factor
        type_url::LISTENER => body.extend(field(5, &number(1, revision))), // per_connection_buffer_limit_bytes
        type_url::ROUTE => body.extend(field(3, format!("r{revision}").as_bytes())), // internal_only_headers
        _ => body.extend(number(15, revision)),
    }
    body
}

/// Returns the revision in an encoded resource; `None` if the kit did not make it.
pub fn revision(type_url: &str, body: &[u8]) -> Option<u64> {
    match type_url {
        type_url::CLUSTER => as_number(find(find(body, 4)?.bytes()?, 1)?),
        type_url::ENDPOINT => as_number(find(find(find(body, 4)?.bytes()?, 3)?.bytes()?, 1)?),
        type_url::LISTENER => as_number(find(find(body, 5)?.bytes()?, 1)?),
        type_url::ROUTE => std::str::from_utf8(find(body, 3)?.bytes()?).ok()?.strip_prefix('r')?.parse().ok(),
        _ => as_number(find(body, 15)?),
    }
}

/// A field of a message.
#[derive(Clone, Copy)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Number(_) => None,
        }
    }
}

fn as_number(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Number(number) => Some(number),
        Value::Bytes(_) => None,
    }
}

/// Returns the number in the first field of this number.
pub(crate) fn first_number(body: &[u8], number: u64) -> Option<u64> {
    as_number(find(body, number)?)
}

/// Returns the bytes in the first field of this number.
pub(crate) fn first_bytes(body: &[u8], number: u64) -> Option<&[u8]> {
    find(body, number)?.bytes()
}

/// Returns the first field of this number.
fn find(mut body: &[u8], number: u64) -> Option<Value<'_>> {
    loop {
        let (key, rest) = varint(body)?;
        let (value, rest) = match key & 7 {
            0 => varint(rest).map(|(value, rest)| (Value::Number(value), rest))?,
            2 => {
                let (len, rest) = varint(rest)?;
                let len = usize::try_from(len).ok().filter(|len| *len <= rest.len())?;
                (Value::Bytes(&rest[..len]), &rest[len..])
            }
            1 => (Value::Bytes(rest.get(..8)?), &rest[8..]),
            5 => (Value::Bytes(rest.get(..4)?), &rest[4..]),
            _ => return None,
        };
        if key >> 3 == number {
            return Some(value);
        }
        body = rest;
    }
}

/// Returns whether bytes are a message at all, which the kit's bad resource is not.
pub fn decodes(mut body: &[u8]) -> bool {
    while !body.is_empty() {
        let Some((key, rest)) = varint(body) else { return false };
        let len = match key & 7 {
            0 => varint(rest).map(|(_, after)| rest.len() - after.len()),
            1 => Some(8),
            2 => {
                varint(rest).and_then(|(len, after)| (rest.len() - after.len()).checked_add(usize::try_from(len).ok()?))
            }
            5 => Some(4),
            _ => None,
        };
        match len.and_then(|len| rest.get(len..)) {
            Some(rest) => body = rest,
            None => return false,
        }
    }
    true
}

/// Reads a varint. Returns the bytes after it, too.
pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at).min(63);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

fn put_varint(mut value: u64, to: &mut Vec<u8>) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

pub(crate) fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    put_varint(bytes.len() as u64, &mut field);
    field.extend_from_slice(bytes);
    field
}

fn number(field: u8, value: u64) -> Vec<u8> {
    let mut bytes = vec![field << 3];
    put_varint(value, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_of_every_type_carry_their_revision() {
        for (short, type_url) in TYPES.into_iter().chain([("own", "type.googleapis.com/kit.Own")]) {
            for rev in [1, 127, 128, 300_000] {
                assert_eq!(revision(type_url, &body(type_url, "a name", rev)), Some(rev), "{short}");
            }
        }
    }

    #[test]
    fn truncated_or_invalid_bytes_have_no_revision() {
        let good = body(type_url::CLUSTER, "a", 7);
        for len in 0..good.len() {
            assert_eq!(revision(type_url::CLUSTER, &good[..len]), None, "{len} bytes");
        }
        assert_eq!(revision(type_url::CLUSTER, &[0x0a, 0xff, 0xff, 0xff]), None);
        assert_eq!(revision(type_url::CLUSTER, &[0xff; 20]), None);
        assert!(decodes(&good) && decodes(&[]) && !decodes(&[0x0a, 0xff, 0xff, 0xff]) && !decodes(&good[..2]));
    }
}
