//! Extensions: messages of any type, inside `google.protobuf.Any` and perhaps a TypedStruct.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use bytes::Bytes;
use prost::Message;

use super::generated::{Any, TypedStruct};
use super::message::NOT_PRESENT;
use crate::faults::Walk;

/// The types of an extension whose configuration is JSON.
const TYPED_STRUCTS: [&str; 2] = ["xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct"];

/// An extension.
pub(super) struct Extension {
    /// The message type, without the prefix of its URL.
    pub(super) kind: String,
    /// The encoded message; `None` if the configuration is JSON in a TypedStruct.
    pub(super) value: Option<Bytes>,
}

/// Reads the type of an extension.
pub(super) fn extension(walk: &mut Walk, any: Option<&Any>) -> Option<Extension> {
    let Some(any) = any else {
        walk.fault(NOT_PRESENT);
        return None;
    };
    let kind = kind(walk, &any.type_url)?;
    if !TYPED_STRUCTS.contains(&kind) {
        return Some(Extension { kind: kind.to_owned(), value: Some(any.value.clone()) });
    }
    walk.within(format_args!("value[{kind}]"), |walk| match TypedStruct::decode(any.value.clone()) {
        Ok(inner) => Some(Extension { kind: self::kind(walk, &inner.type_url)?.to_owned(), value: None }),
        Err(error) => {
            walk.fault(format!("can't parse: {error}"));
            None
        }
    })
}

/// Returns the message type of a type URL: the part after the last slash.
fn kind<'a>(walk: &mut Walk, type_url: &'a str) -> Option<&'a str> {
    let kind = type_url.rsplit_once('/').map(|(_, kind)| kind).filter(|kind| !kind.is_empty());
    if type_url.is_empty() {
        walk.fault_at("type_url", NOT_PRESENT);
    } else if kind.is_none() {
        walk.fault_at("type_url", format!("invalid value {type_url:?}"));
    }
    kind
}
