//! Writes discovery responses, and the fields of other long messages. A protobuf message is the concatenation of its
//! fields, so the part that several responses share is encoded once. The output is byte for byte that of prost
//! (`tests/protocol/wire/`).

mod cluster;
mod encode;

pub(crate) use cluster::endpoints_of;
pub(crate) use encode::{Element, Envelope, Writer, field_len, number_len, string_len};
