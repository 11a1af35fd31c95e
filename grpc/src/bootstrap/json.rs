//! Reads the fields of a JSON value, and names the fault of each with its path.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;

use serde_json::{Map, Value};

use crate::faults::Walk;

/// A key of a map in a path: `["key"]`.
pub(super) struct Key<'a>(pub(super) &'a str);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:?}]", self.0)
    }
}

/// The fields of an object: `null` counts as absent (R-BOOT-06), and unknown fields are ignored (R-BOOT-04).
#[derive(Clone, Copy)]
pub(super) struct Object<'a>(&'a Map<String, Value>);

impl<'a> Object<'a> {
    /// Returns the fields of an object that was read before.
    pub(super) fn of(object: &'a Map<String, Value>) -> Self {
        Self(object)
    }

    /// Reads a value as an object.
    pub(super) fn read(walk: &mut Walk, value: &'a Value) -> Option<Self> {
        let object = value.as_object();
        if object.is_none() {
            walk.fault("is not an object");
        }
        object.map(Self)
    }

    fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Reads an optional field, with the path that leads there.
    pub(super) fn field<T>(
        self,
        walk: &mut Walk,
        name: &str,
        read: impl FnOnce(&mut Walk, &'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(name)?;
        walk.within(name, |walk| read(walk, value))
    }

    /// Reads a required field.
    pub(super) fn required<T>(
        self,
        walk: &mut Walk,
        name: &str,
        read: impl FnOnce(&mut Walk, &'a Value) -> Option<T>,
    ) -> Option<T> {
        if self.get(name).is_none() {
            walk.fault_at(name, "field not present");
        }
        self.field(walk, name, read)
    }

    /// Returns the keys and values of a map, in the order of the keys (with some features of the JSON library that is
    /// not the order of the object).
    pub(super) fn entries(self) -> BTreeMap<&'a String, &'a Value> {
        self.0.iter().collect()
    }
}

/// Reads a string.
pub(super) fn string(walk: &mut Walk, value: &Value) -> Option<String> {
    let text = value.as_str().map(ToOwned::to_owned);
    if text.is_none() {
        walk.fault("is not a string");
    }
    text
}

/// A JSON object of any form.
pub(super) type Json = Map<String, Value>;

/// Reads an object as it is.
pub(super) fn object(walk: &mut Walk, value: &Value) -> Option<Json> {
    Object::read(walk, value).map(|object| object.0.clone())
}

/// Reads an array.
pub(super) fn array<'a>(walk: &mut Walk, value: &'a Value) -> Option<&'a [Value]> {
    let array = value.as_array();
    if array.is_none() {
        walk.fault("is not an array");
    }
    array.map(|array| &array[..])
}
