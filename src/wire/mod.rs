//! Writes discovery responses: a protobuf message is the concatenation of its fields, so the part that many
//! responses share is encoded once. Byte for byte what prost would write (`tests/protocol/wire/`).

mod cluster;
mod encode;

pub(crate) use cluster::endpoints_of;
pub(crate) use encode::{Element, Envelope, Writer};
