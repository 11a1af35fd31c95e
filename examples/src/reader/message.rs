//! Trees to messages, by the rules of Envoy's JSON parser.

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage, Value};

use super::scalar::{self, enumerator};
use super::tree::Tree;
use super::{DESCRIPTORS, any_name, well_known};
use crate::canonical;

/// How deep messages may be nested, `Any` apart, which begins anew: decoders of protobuf accept no more.
const DEPTH: usize = 100;

/// What is no error.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether unknown fields and enumerators are ignored: a newer peer may have more.
    pub ignore_unknown: bool,
    /// Whether a field that is there twice, or in both of its spellings, is an error. Otherwise the last value counts;
    /// lists grow, and messages are merged.
    pub refuse_twice: bool,
}

/// What is wrong, and where.
#[derive(Debug)]
pub(super) struct Fault {
    path: String,
    what: String,
}

pub(super) type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { path: String::new(), what: what.into() }
    }

    /// Adds the way to the value at fault.
    fn below(self, step: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Self { path: format!("{step}{dot}{}", self.path), ..self }
    }
}

/// Reads a message of a type from a tree.
///
/// # Errors
///
/// One line that begins with the path of what is wrong.
pub fn read(kind: &MessageDescriptor, tree: &Tree, rules: Rules) -> std::result::Result<DynamicMessage, String> {
    let mut message = DynamicMessage::new(kind.clone());
    let merged = match tree {
        Tree::Map(_) => Reader { rules, depth: 0 }.merge(&mut message, tree),
        _ => Err(Fault::new(format!("{} is an object, not {}", kind.name(), tree.what()))),
    };
    match merged {
        Ok(()) => Ok(message),
        Err(Fault { path, what }) if path.is_empty() => Err(what),
        Err(Fault { path, what }) => Err(format!("{path}: {what}")),
    }
}

/// Reads values at one depth.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    rules: Rules,
    depth: usize,
}

impl Reader {
    /// Adds what a tree holds to a message.
    pub(super) fn merge(self, message: &mut DynamicMessage, tree: &Tree) -> Result<()> {
        if self.depth >= DEPTH {
            return Err(Fault::new(format!("messages are nested deeper than {DEPTH} levels")));
        }
        let inner = Self { depth: self.depth + 1, ..self };
        let kind = message.descriptor();
        match (kind.full_name(), tree) {
            ("google.protobuf.Any", Tree::Map(entries)) => self.merge_any(message, entries),
            (name, _) => match well_known::merge(inner, name, message, tree)? {
                true => Ok(()),
                false => match tree {
                    Tree::Map(entries) => inner.merge_fields(message, entries.iter()),
                    _ => Err(Fault::new(format!("{} is an object, not {}", kind.name(), tree.what()))),
                },
            },
        }
    }

    /// Adds fields, each by its name.
    fn merge_fields<'a>(
        self,
        message: &mut DynamicMessage,
        entries: impl Iterator<Item = &'a (String, Tree)>,
    ) -> Result<()> {
        let kind = message.descriptor();
        let mut seen: HashMap<u32, &str> = HashMap::new();
        for (key, value) in entries {
            let Some(field) = kind.get_field_by_json_name(key).or_else(|| kind.get_field_by_name(key)) else {
                if self.rules.ignore_unknown {
                    continue;
                }
                return Err(Fault::new(format!("{} has no such field", kind.name())).below(key));
            };
            match seen.insert(field.number(), key) {
                Some(other) if self.rules.refuse_twice && other == key => {
                    return Err(Fault::new(format!("{key} is there twice")));
                }
                Some(other) if self.rules.refuse_twice => {
                    return Err(Fault::new(format!("{other} and {key} are the same field")));
                }
                _ => {}
            }
            self.merge_field(message, &field, value).map_err(|fault| fault.below(key))?;
        }
        Ok(())
    }

    pub(super) fn merge_field(self, message: &mut DynamicMessage, field: &FieldDescriptor, tree: &Tree) -> Result<()> {
        if *tree == Tree::Null && !(well_known::has_null(&field.kind()) && !field.is_list() && !field.is_map()) {
            return Ok(());
        }
        if let Some(oneof) = field.containing_oneof() {
            let other = oneof.fields().find(|other| other != field && message.has_field(other));
            if let Some(other) = other {
                return Err(Fault::new(format!("{} is there too, and only one can be", other.name())));
            }
        }
        if field.is_map() {
            return self.merge_map(message, field, tree);
        }
        if field.is_list() {
            let Some(list) = message.get_field_mut(field).as_list_mut() else { return Ok(()) };
            return self.push(list, field, tree);
        }
        if let Kind::Message(_) = field.kind() {
            let Some(inner) = message.get_field_mut(field).as_message_mut() else { return Ok(()) };
            return self.merge(inner, tree);
        }
        if let Some(value) = self.scalar(&field.kind(), tree)? {
            message.set_field(field, value);
        }
        Ok(())
    }

    /// Adds the elements of a list. What is no list is one element.
    fn push(self, list: &mut Vec<Value>, field: &FieldDescriptor, tree: &Tree) -> Result<()> {
        let Tree::List(elements) = tree else {
            list.extend(self.value(&field.kind(), tree)?);
            return Ok(());
        };
        for (at, element) in elements.iter().enumerate() {
            // A list in a list is part of it, but where the elements themselves are lists.
            let is_list = matches!(element, Tree::List(_)) && !well_known::has_list(&field.kind());
            let pushed = match is_list {
                true => self.push(list, field, element),
                false => self.value(&field.kind(), element).map(|value| list.extend(value)),
            };
            pushed.map_err(|fault| fault.below(&format!("[{at}]")))?;
        }
        Ok(())
    }

    fn merge_map(self, message: &mut DynamicMessage, field: &FieldDescriptor, tree: &Tree) -> Result<()> {
        let (Tree::Map(entries), Kind::Message(entry)) = (tree, field.kind()) else {
            return Err(Fault::new(format!("expected an object, not {}", tree.what())));
        };
        let Some(map) = message.get_field_mut(field).as_map_mut() else { return Ok(()) };
        for (key, value) in entries {
            let mut read = || {
                let place = map_key(&entry.map_entry_key_field().kind(), key)?;
                if map.contains_key(&place) {
                    return Err(Fault::new("the key is there twice"));
                }
                if let Some(value) = self.value(&entry.map_entry_value_field().kind(), value)? {
                    map.insert(place, value);
                }
                Ok(())
            };
            read().map_err(|fault: Fault| fault.below(&format!("[{key:?}]")))?;
        }
        Ok(())
    }

    /// Reads a value of its own: an element of a list, or of a map. Null is the default. Returns `None` for an unknown
    /// enumerator that is ignored.
    pub(super) fn value(self, kind: &Kind, tree: &Tree) -> Result<Option<Value>> {
        match kind {
            Kind::Message(kind) => {
                let mut message = DynamicMessage::new(kind.clone());
                if *tree != Tree::Null || well_known::has_null(&Kind::Message(kind.clone())) {
                    self.merge(&mut message, tree)?;
                }
                Ok(Some(Value::Message(message)))
            }
            kind if *tree == Tree::Null => Ok(Some(Value::default_value(kind))),
            kind => self.scalar(kind, tree),
        }
    }

    fn scalar(self, kind: &Kind, tree: &Tree) -> Result<Option<Value>> {
        let Kind::Enum(kind) = kind else { return scalar::read(kind, tree).map(Some).map_err(Fault::new) };
        match enumerator(kind, tree).map_err(Fault::new)? {
            Some(number) => Ok(Some(Value::EnumNumber(number))),
            None if self.rules.ignore_unknown => Ok(None),
            None => {
                let Tree::Text(text) = tree else { return Ok(None) };
                Err(Fault::new(format!("{} has no {text:?}", kind.name())))
            }
        }
    }

    /// Reads an `Any`: `@type`, and the fields of the message, or the `value` of one that has a form of its own.
    fn merge_any(self, any: &mut DynamicMessage, entries: &[(String, Tree)]) -> Result<()> {
        let types: Vec<&Tree> = entries.iter().filter(|(key, _)| key == "@type").map(|(_, tree)| tree).collect();
        let fields = || entries.iter().filter(|(key, _)| key != "@type");
        let type_url = match types.last() {
            None if entries.is_empty() => return Ok(()),
            None => return Err(Fault::new("expected '@type'")),
            Some(Tree::Text(type_url)) => type_url,
            Some(other) => return Err(Fault::new(format!("'@type' is a string, not {}", other.what()))),
        };
        if self.rules.refuse_twice && types.len() > 1 {
            return Err(Fault::new("@type is there twice"));
        }
        if type_url.find('/').is_none_or(|at| at == 0) {
            return Err(Fault::new(format!("'@type' is no type URL: {type_url:?}")));
        }
        let name = any_name(type_url);
        let known = DESCRIPTORS.get_message_by_name(name);
        let kind = known.ok_or_else(|| Fault::new(format!("'@type': there is no message {name:?}")))?;
        let mut content = DynamicMessage::new(kind);
        if well_known::has_own_form(name) {
            for (key, value) in fields() {
                if key == "value" {
                    let reader = Self { depth: 0, ..self };
                    reader.merge(&mut content, value).map_err(|fault| fault.below("value"))?;
                } else if !self.rules.ignore_unknown {
                    return Err(Fault::new(format!("{name} in an Any has only a value")).below(key));
                }
            }
        } else {
            Self { depth: 1, ..self }.merge_fields(&mut content, fields())?;
        }
        any.set_field_by_number(1, Value::String(type_url.clone()));
        any.set_field_by_number(2, Value::Bytes(canonical::encode(&content).into()));
        Ok(())
    }
}

fn map_key(kind: &Kind, key: &str) -> Result<MapKey> {
    let bad = || Fault::new(format!("the key is no {kind:?}"));
    Ok(match kind {
        Kind::String => MapKey::String(key.to_owned()),
        Kind::Bool => MapKey::Bool(key.parse().map_err(|_| bad())?),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => MapKey::I32(key.parse().map_err(|_| bad())?),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => MapKey::I64(key.parse().map_err(|_| bad())?),
        Kind::Uint32 | Kind::Fixed32 => MapKey::U32(key.parse().map_err(|_| bad())?),
        Kind::Uint64 | Kind::Fixed64 => MapKey::U64(key.parse().map_err(|_| bad())?),
        _ => return Err(bad()),
    })
}
