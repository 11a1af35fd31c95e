//! Finds keys that an object has twice, which a JSON parser does not report (R-BOOT-07).

use alloc::collections::BTreeSet;
use alloc::string::String;
use core::cell::RefCell;
use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::json::Key;
use crate::faults::Walk;

/// Names each key that an object of the text has twice. The text is JSON: `Bootstrap::parse` has read it before.
pub(super) fn check(walk: &mut Walk, text: &str) {
    let walk = RefCell::new(walk);
    let mut parser = serde_json::Deserializer::from_str(text);
    // A fault of the text as a whole was reported by `Bootstrap::parse`.
    let _ = Search { walk: &walk, inside: Inside::File }.deserialize(&mut parser);
}

/// What the keys of an object are: names of fields, or any text.
#[derive(Clone, Copy)]
enum Inside {
    /// The file itself.
    File,
    /// The node.
    Node,
    /// A message, whose keys are names.
    Message,
    /// A map of messages.
    Map,
    /// JSON of any form.
    Json,
}

impl Inside {
    /// Returns what is inside a field.
    fn field(self, key: &str) -> Self {
        match (self, key) {
            (Self::File, "node") => Self::Node,
            (Self::File, "authorities" | "certificate_providers") => Self::Map,
            (Self::Node, "metadata") | (Self::Json, _) => Self::Json,
            _ => Self::Message,
        }
    }
}

struct Search<'a, 'w> {
    walk: &'a RefCell<&'w mut Walk>,
    inside: Inside,
}

impl<'de> DeserializeSeed<'de> for Search<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Search<'_, '_> {
    fn enter(&self, field: &dyn fmt::Display) -> usize {
        self.walk.borrow_mut().enter(field)
    }
}

impl<'de> Visitor<'de> for Search<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let len = match self.inside {
                Inside::Map | Inside::Json => self.enter(&Key(&key)),
                _ => self.enter(&key),
            };
            let inside = self.inside.field(&key);
            if !seen.insert(key) {
                self.walk.borrow_mut().fault("duplicate key");
            }
            map.next_value_seed(Search { walk: self.walk, inside })?;
            self.walk.borrow_mut().leave(len);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        for at in 0.. {
            let len = self.enter(&format_args!("[{at}]"));
            let more = seq.next_element_seed(Search { walk: self.walk, inside: self.inside })?;
            self.walk.borrow_mut().leave(len);
            if more.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
