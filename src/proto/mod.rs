//! The wire format: converts protobuf messages to [`message`](crate::message) and back.
//!
//! The prost types are private, so that a new version of prost does not change this crate's API.
//! [`server::Response`](crate::server::Response) encodes itself, from parts that streams share.

pub mod client_status;
pub mod delta;
#[rustfmt::skip]
#[allow(clippy::all, missing_docs, unreachable_pub)]
mod generated;
pub mod load_stats;
#[cfg(test)]
mod neighbours;
mod node;
pub mod sotw;
#[cfg(feature = "unstable")]
pub mod unstable;
mod wire;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use prost::Message;

pub use self::wire::Wire;
use crate::error::{Code, Status};
use crate::fields::{Fields, Value};
use crate::message::ResourceError;
use crate::message::{Any, Resource};
use crate::name::{ResourceName, TypeUrl};

/// The error for bytes that are not a message of the expected type.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("malformed {message}: {reason}")]
pub struct DecodeError {
    message: &'static str,
    reason: String,
}

impl DecodeError {
    fn new(message: &'static str) -> impl FnOnce(prost::DecodeError) -> Self {
        move |error| Self { message, reason: alloc::format!("{error}") }
    }
}

impl From<DecodeError> for Status {
    /// Makes the status that the stream is closed with.
    fn from(error: DecodeError) -> Self {
        Self::new(Code::InvalidArgument, error.to_string())
    }
}

fn status(status: generated::Status) -> Status {
    Status { code: status.code, message: status.message }
}

fn status_out(status: &Status) -> generated::Status {
    generated::Status { code: status.code, message: status.message.clone(), details: Vec::new() }
}

fn names(names: Vec<String>) -> Vec<ResourceName> {
    names.into_iter().map(ResourceName::from).collect()
}

fn names_out(names: &[ResourceName]) -> Vec<String> {
    names.iter().map(|name| name.as_str().into()).collect()
}

/// Converts an `Any`. Most resources have the type of their response, and share its string.
fn any(any: generated::Any, type_url: &TypeUrl) -> Any {
    let type_url = if *type_url == any.type_url.as_str() { type_url.clone() } else { any.type_url.into() };
    Any { type_url, value: any.value }
}

/// Reads an `Any` in a message, usually of this type. Returns `None` if the bytes are malformed.
#[inline]
fn read_any(message: &Bytes, bytes: &[u8], type_url: &TypeUrl) -> Option<Any> {
    let mut fields = Fields::new(bytes);
    if let (Some(Ok((1, Value::Bytes(url)))), Some(Ok((2, Value::Bytes(value))))) = (fields.next(), fields.next()) {
        if fields.is_at_end() && url == type_url.as_str().as_bytes() {
            return Some(Any { type_url: type_url.clone(), value: message.slice_ref(value) });
        }
    }
    decode_any(message.slice_ref(bytes), type_url)
}

/// Decodes an `Any` of another type, or whose fields are not in the usual order.
#[cold]
fn decode_any(bytes: Bytes, type_url: &TypeUrl) -> Option<Any> {
    Some(any(generated::Any::decode(bytes).ok()?, type_url))
}

/// Reads a resource in a message, whose body usually has this type, in place: neither the name nor the version is
/// copied twice. Returns `None` if the bytes are malformed.
fn read_resource(message: &Bytes, bytes: &[u8], type_url: &TypeUrl) -> Option<Resource> {
    let (mut version, mut body, mut name) = (None, None, None);
    for field in Fields::new(bytes) {
        let place = match field.ok()? {
            (1, Value::Bytes(value)) => Some((&mut version, value)),
            (2, Value::Bytes(value)) => Some((&mut body, value)),
            (3, Value::Bytes(value)) => Some((&mut name, value)),
            _ => None,
        };
        match place {
            Some((field @ None, value)) => *field = Some(value),
            // Fields that few resources have, and fields that occur twice.
            _ => return Some(resource(generated::Resource::decode(message.slice_ref(bytes)).ok()?, type_url)),
        }
    }
    let text = |field: Option<_>| core::str::from_utf8(field.unwrap_or_default()).ok();
    let body = match body {
        Some(body) => Some(read_any(message, body, type_url)?),
        None => None,
    };
    Some(Resource { name: text(name)?.into(), version: text(version)?.into(), aliases: Vec::new(), body, ttl: None })
}

fn any_out(any: &Any) -> generated::Any {
    generated::Any { type_url: any.type_url.as_str().into(), value: any.value.clone() }
}

fn resource(resource: generated::Resource, type_url: &TypeUrl) -> Resource {
    // The name is in one of two fields. If both are set, neither counts, because which one counts is undefined
    // (C-DELTA-29).
    let name = match resource.resource_name {
        Some(_) if !resource.name.is_empty() => String::new(),
        Some(name) => name.name,
        None => resource.name,
    };
    Resource {
        name: name.into(),
        version: resource.version.into(),
        aliases: names(resource.aliases),
        body: resource.resource.map(|body| any(body, type_url)),
        ttl: resource.ttl.map(duration),
    }
}

fn resource_out(resource: &Resource) -> generated::Resource {
    generated::Resource {
        version: resource.version.as_str().into(),
        resource: resource.body.as_ref().map(any_out),
        name: resource.name.as_str().into(),
        aliases: names_out(&resource.aliases),
        ttl: resource.ttl.map(|ttl| generated::Duration {
            seconds: i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(ttl.subsec_nanos()).unwrap_or_default(),
        }),
        cache_control: None,
        resource_name: None,
        metadata: None,
    }
}

/// Converts a duration. A negative one becomes zero, which is rejected as a TTL (C-TTL-14).
fn duration(duration: generated::Duration) -> Duration {
    match (u64::try_from(duration.seconds), u32::try_from(duration.nanos)) {
        (Ok(seconds), Ok(nanos)) if nanos < 1_000_000_000 => Duration::new(seconds, nanos),
        _ => Duration::ZERO,
    }
}

fn errors(errors: Vec<generated::ResourceError>) -> Vec<ResourceError> {
    let error = |error: generated::ResourceError| ResourceError {
        name: error.resource_name.unwrap_or_default().name.into(),
        status: error.error_detail.map(status),
    };
    errors.into_iter().map(error).collect()
}

fn errors_out(errors: &[ResourceError]) -> Vec<generated::ResourceError> {
    let error = |error: &ResourceError| generated::ResourceError {
        resource_name: Some(generated::ResourceName {
            name: error.name.as_str().into(),
            dynamic_parameter_constraints: None,
        }),
        error_detail: error.status.as_ref().map(status_out),
    };
    errors.iter().map(error).collect()
}

fn control_plane_out(identifier: &str) -> Option<generated::ControlPlane> {
    (!identifier.is_empty()).then(|| generated::ControlPlane { identifier: identifier.into() })
}

/// Returns the names of locators. Their dynamic parameters are for callers of the feature `unstable`; the machines
/// ignore them.
fn locator_names(locators: Vec<generated::ResourceLocator>) -> impl Iterator<Item = ResourceName> {
    locators.into_iter().map(|locator| locator.name.into())
}
