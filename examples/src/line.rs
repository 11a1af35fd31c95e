//! Reads the shim's input, lines of JSON, field by field, and reports faults in them.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use xds_machine::client::Rejection;
use xds_machine::proto::DecodeError;
use xds_machine::server::{Cache, Resource};
use xds_machine::{Code, Error, Misuse, ResourceName, Status, TypeUrl};

/// A line of input. A `null` field counts as absent; unknown fields are ignored, unless
/// [`check_keys`](Self::check_keys) refuses them.
#[derive(Clone, Copy)]
pub struct Line<'a>(pub &'a Map<String, Value>);

/// The reason for which a line, or a message that it carries, was refused.
pub struct Fault {
    pub culprit: &'static str,
    pub code: &'static str,
    pub message: String,
}

impl Fault {
    /// A fault of the line itself.
    pub fn line(message: impl Into<String>) -> Self {
        Self { culprit: "caller", code: Code::InvalidArgument.name(), message: message.into() }
    }

    pub fn element(&self) -> Value {
        json!({ "error": { "culprit": self.culprit, "code": self.code, "message": self.message } })
    }
}

impl From<Misuse> for Fault {
    fn from(misuse: Misuse) -> Self {
        let code = if misuse == Misuse::EmptyName { "INVALID_ARGUMENT" } else { "FAILED_PRECONDITION" };
        Self { culprit: "caller", code, message: misuse.to_string() }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::Caller(misuse) => misuse.into(),
            Error::Peer(peer) => Self { culprit: "peer", code: peer.code().name(), message: peer.to_string() },
        }
    }
}

/// The bytes came from the peer, so the fault is the peer's.
impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Self { culprit: "peer", code: Code::InvalidArgument.name(), message: error.to_string() }
    }
}

impl<'a> Line<'a> {
    /// Returns the value of an optional field.
    pub fn get<T>(self, field: &str, kind: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>, Fault> {
        let value = self.0.get(field).filter(|value| !value.is_null());
        let read = |value| read(value).ok_or_else(|| Fault::line(format!("{field:?} must be {kind}, not {value}")));
        value.map(read).transpose()
    }

    /// Returns the value of a required field.
    pub fn must<T>(self, field: &str, kind: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<T, Fault> {
        self.get(field, kind, read)?.ok_or_else(|| Fault::line(format!("{field:?} is missing: it must be {kind}")))
    }

    /// Refuses a line with an unknown key.
    pub fn check_keys(self, of: &str, known: &[&str]) -> Result<(), Fault> {
        match self.0.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(Fault::line(format!("{of} has no key {key:?}: there are {}", known.join(", ")))),
            None => Ok(()),
        }
    }

    pub fn number(self, field: &str) -> Result<u64, Fault> {
        self.must(field, "a whole number", Value::as_u64)
    }

    /// Returns an optional number.
    pub fn number_if_any(self, field: &str) -> Result<Option<u64>, Fault> {
        self.get(field, "a whole number", Value::as_u64)
    }

    pub fn text(self, field: &str) -> Result<&'a str, Fault> {
        self.must(field, "a string", Value::as_str)
    }

    pub fn text_or(self, field: &str, default: &'a str) -> Result<&'a str, Fault> {
        Ok(self.get(field, "a string", Value::as_str)?.unwrap_or(default))
    }

    pub fn type_url(self) -> Result<TypeUrl, Fault> {
        self.text("type_url").map(TypeUrl::from)
    }

    /// Returns the name of a resource.
    pub fn name(self) -> Result<&'a str, Fault> {
        self.must("name", "a string that is not empty", |value| value.as_str().filter(|name| !name.is_empty()))
    }

    pub fn names(self) -> Result<Vec<&'a str>, Fault> {
        self.must("names", "a list of strings", strings)
    }

    /// Returns an optional list of strings; an absent list is empty.
    pub fn list(self, field: &str) -> Result<Vec<&'a str>, Fault> {
        Ok(self.get(field, "a list of strings", strings)?.unwrap_or_default())
    }

    /// Returns a required list of objects.
    pub fn lines(self, field: &str) -> Result<Vec<Self>, Fault> {
        let lines = |value: &'a Value| value.as_array()?.iter().map(|line| line.as_object().map(Line)).collect();
        self.must(field, "a list of objects", lines)
    }

    /// Returns an optional object.
    pub fn object(self, field: &str) -> Result<Option<Self>, Fault> {
        self.get(field, "an object", |value| value.as_object().map(Line))
    }

    pub fn base64(self, field: &str) -> Result<Bytes, Fault> {
        let decoded = BASE64_STANDARD.decode(self.must(field, "a base64 string", Value::as_str)?);
        decoded.map(Bytes::from).map_err(|error| Fault::line(format!("{field:?} must be base64: {error}")))
    }

    /// Returns the resource that the line describes.
    pub fn resource(self) -> Result<Resource, Fault> {
        let mut resource = Resource::new(self.name()?, self.base64("body")?);
        if let Some(version) = self.get("version", "a string", Value::as_str)? {
            resource = resource.with_version(version);
        }
        let positive = |value: &Value| value.as_u64().filter(|&ms| ms > 0);
        if let Some(ms) = self.get("ttl_ms", "a whole number above zero", positive)? {
            resource = resource.with_ttl(Duration::from_millis(ms));
        }
        let aliases = self.list("aliases")?;
        if !aliases.is_empty() {
            resource = resource.with_aliases(aliases);
        }
        Ok(resource)
    }

    /// Returns the status that explains why a resource can't be provided.
    fn status(self) -> Result<Status, Fault> {
        let code = |value: &Value| i32::try_from(value.as_u64()?).ok();
        let code = self.must("code", "the number of a gRPC status code", code)?;
        Ok(Status { code, message: self.text("message")?.into() })
    }

    /// Returns the resources that a verdict rejects; an absent field rejects nothing.
    pub fn rejections(self) -> Result<Vec<Rejection>, Fault> {
        let rejection = |(name, reason): (&String, &Value)| Some(Rejection::new(name.as_str(), reason.as_str()?));
        let read = |value: &Value| value.as_object()?.iter().map(rejection).collect();
        Ok(self.get("reject", "an object of names and reasons", read)?.unwrap_or_default())
    }
}

/// A change of the cache. A line is read completely before any of its changes takes effect.
pub enum Change {
    Put(TypeUrl, Resource),
    Delete(TypeUrl, ResourceName),
    Error(TypeUrl, ResourceName, Status),
    Unknown(TypeUrl, ResourceName),
}

impl Change {
    pub fn read(op: &str, line: Line<'_>) -> Result<Self, Fault> {
        match op {
            "put" => Ok(Self::Put(line.type_url()?, line.resource()?)),
            "delete" => Ok(Self::Delete(line.type_url()?, line.name()?.into())),
            "error" => Ok(Self::Error(line.type_url()?, line.name()?.into(), line.status()?)),
            "unknown" => Ok(Self::Unknown(line.type_url()?, line.name()?.into())),
            _ => Err(Fault::line(format!("no op {op:?} for a server"))),
        }
    }

    /// Reads the changes of a batch, which takes effect as one change: only the last change of each resource counts.
    pub fn read_batch(lines: Vec<Line<'_>>) -> Result<Vec<Self>, Fault> {
        let mut changes = lines.into_iter().map(Self::read_of_batch).collect::<Result<Vec<Self>, Fault>>()?;
        let mut later = BTreeSet::new();
        changes.reverse();
        changes.retain(|change| later.insert(change.resource()));
        changes.reverse();
        Ok(changes)
    }

    fn read_of_batch(line: Line<'_>) -> Result<Self, Fault> {
        match line.text("op")? {
            op @ ("put" | "delete") => Self::read(op, line),
            op => Err(Fault::line(format!("a batch is made of \"put\" and \"delete\", not of {op:?}"))),
        }
    }

    /// Returns the resource that changes.
    fn resource(&self) -> (TypeUrl, ResourceName) {
        match self {
            Self::Put(type_url, resource) => (type_url.clone(), resource.name().clone()),
            Self::Delete(type_url, name) | Self::Error(type_url, name, _) | Self::Unknown(type_url, name) => {
                (type_url.clone(), name.clone())
            }
        }
    }

    pub fn make(self, cache: &mut Cache) {
        _ = match self {
            Self::Put(type_url, resource) => cache.insert(&type_url, resource),
            Self::Delete(type_url, name) => cache.remove(&type_url, name.as_str()),
            Self::Error(type_url, name, status) => cache.set_error(&type_url, name, status),
            Self::Unknown(type_url, name) => cache.set_unknown(&type_url, name),
        };
    }
}

fn strings(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}
