//! The messages that the load writes, and the parts that it reads of responses: versions and nonces, found without
//! decoding.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

use super::Variant;
use crate::data::clusters;
use crate::floor::{DeltaRequest, SotwRequest};

/// Returns the length-prefixed request that acknowledges a response.
pub(super) fn ack(variant: Variant, received: &Received) -> Bytes {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let type_url = clusters().to_string();
    let response_nonce = text(&received.nonce);
    prefixed(match variant {
        Variant::Delta => DeltaRequest { type_url, response_nonce, ..Default::default() }.encode_to_vec(),
        Variant::Sotw => {
            let version_info = text(&received.version);
            SotwRequest { type_url, response_nonce, version_info, ..Default::default() }.encode_to_vec()
        }
    })
}

fn prefixed(message: Vec<u8>) -> Bytes {
    let mut all = BytesMut::with_capacity(5 + message.len());
    all.put_u8(0);
    all.put_u32(message.len() as u32);
    all.put_slice(&message);
    all.freeze()
}

/// Returns the first request of a stream in two pieces: prefix and node, and the part that all streams share. The
/// client subscribes to the wildcard.
pub(super) fn first(variant: Variant, stream: usize, shared: &Bytes) -> [Bytes; 2] {
    let id = format!("node-{stream}");
    let mut node = vec![0x0a, id.len() as u8];
    node.extend_from_slice(id.as_bytes());
    let tag = match variant {
        Variant::Delta => 0x0a,
        Variant::Sotw => 0x12,
    };
    let mut head = BytesMut::new();
    head.put_u8(0);
    head.put_u32((2 + node.len() + shared.len()) as u32);
    head.put_slice(&[tag, node.len() as u8]);
    head.put_slice(&node);
    [head.freeze(), shared.clone()]
}

/// Returns the shared part of a first request by a client that has nothing.
pub(super) fn nothing(variant: Variant) -> Bytes {
    let type_url = clusters().to_string();
    match variant {
        Variant::Delta => DeltaRequest { type_url, ..Default::default() }.encode_to_vec().into(),
        Variant::Sotw => SotwRequest { type_url, ..Default::default() }.encode_to_vec().into(),
    }
}

/// A response.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    pub(super) version: Vec<u8>,
    pub(super) nonce: Vec<u8>,
    pub(super) resources: usize,
}

/// Finds the ends of messages, and their short fields, in pieces of any size.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    place: Place,
    /// The bytes that are left of the message.
    left: usize,
    received: Received,
}

#[derive(Debug)]
enum Place {
    Prefix { read: usize, len: usize },
    Tag,
    Length { field: u8, len: usize, shift: u32 },
    Value { field: u8, left: usize },
}

impl Default for Place {
    fn default() -> Self {
        Self::Prefix { read: 0, len: 0 }
    }
}

const VERSION: u8 = 1;
const RESOURCES: u8 = 2;
const NONCE: u8 = 5;

impl Scanner {
    /// Reads on, until the end of a message or of the data.
    pub(super) fn read(&mut self, data: &mut &[u8]) -> Option<Received> {
        while let Some(&byte) = data.first() {
            let used = match &mut self.place {
                Place::Prefix { read, len } => {
                    *len = *len << 8 | usize::from(byte);
                    *read += 1;
                    if *read == 5 {
                        self.left = *len;
                        self.place = Place::Tag;
                    }
                    *data = &data[1..];
                    if self.left == 0 { continue } else { 0 }
                }
                Place::Tag => {
                    assert_eq!(byte & 0b1000_0111, 2, "the fields of a response have lengths");
                    self.place = Place::Length { field: byte >> 3, len: 0, shift: 0 };
                    1
                }
                Place::Length { field, len, shift } => {
                    *len |= usize::from(byte & 0x7f) << *shift;
                    *shift += 7;
                    if byte & 0x80 == 0 {
                        self.received.resources += usize::from(*field == RESOURCES);
                        self.place = if *len == 0 { Place::Tag } else { Place::Value { field: *field, left: *len } };
                    }
                    1
                }
                Place::Value { field, left } => {
                    let used = data.len().min(*left);
                    match *field {
                        VERSION => self.received.version.extend_from_slice(&data[..used]),
                        NONCE => self.received.nonce.extend_from_slice(&data[..used]),
                        _ => {}
                    }
                    *left -= used;
                    if *left == 0 {
                        self.place = Place::Tag;
                    }
                    used
                }
            };
            *data = &data[used..];
            self.left -= used;
            if self.left == 0 {
                self.place = Place::default();
                return Some(std::mem::take(&mut self.received));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cache;
    use crate::data::delta_response;

    #[test]
    fn a_response_is_found_in_pieces_of_any_size() {
        let response = delta_response(&cache(&clusters(), 300), &clusters());
        let bytes = [prefixed(response.encode_to_vec()), prefixed(response.encode_to_vec())].concat();
        for size in [1, 2, 7, 1000, bytes.len()] {
            let (mut scanner, mut found) = (Scanner::default(), Vec::new());
            for mut piece in bytes.chunks(size) {
                found.extend(std::iter::from_fn(|| scanner.read(&mut piece)));
            }
            assert_eq!(found.len(), 2, "pieces of {size}");
            for received in found {
                assert_eq!(received.resources, 300);
                assert_eq!(received.nonce, b"1.1");
                assert_eq!(received.version, response.system_version_info.as_bytes());
            }
        }
    }
}
