//! The messages that have a form of their own in JSON. Each also has that of any other message.

use prost_reflect::{DynamicMessage, Kind, ReflectMessage, Value};

use super::message::{Fault, Reader, Result};
use super::tree::{Number, Tree};

/// The largest seconds of a duration: about 10,000 years.
const LONGEST: i64 = 315_576_000_000;

/// Returns whether null is a value of a type, instead of none.
pub(super) fn has_null(kind: &Kind) -> bool {
    matches!(kind, Kind::Message(kind) if kind.full_name() == "google.protobuf.Value")
}

/// Returns whether a list is a value of a type, instead of many.
pub(super) fn has_list(kind: &Kind) -> bool {
    matches!(kind, Kind::Message(kind) if matches!(kind.full_name(), "google.protobuf.Value" | "google.protobuf.ListValue"))
}

/// Returns whether an `Any` has a message of this name under `value`.
pub(super) fn has_own_form(name: &str) -> bool {
    let name = name.strip_prefix("google.protobuf.").unwrap_or_default();
    is_wrapper(name)
        || matches!(name, "Any" | "Duration" | "FieldMask" | "ListValue" | "Struct" | "Timestamp" | "Value")
}

fn is_wrapper(name: &str) -> bool {
    let wrapped = name.strip_suffix("Value").unwrap_or_default();
    matches!(wrapped, "Bool" | "Bytes" | "Double" | "Float" | "Int32" | "Int64" | "String" | "UInt32" | "UInt64")
}

/// Adds what a tree holds to a message of a form of its own. Returns `false` for any other message, or form.
pub(super) fn merge(reader: Reader, name: &str, message: &mut DynamicMessage, tree: &Tree) -> Result<bool> {
    let Some(name) = name.strip_prefix("google.protobuf.") else { return Ok(false) };
    let kind = message.descriptor();
    match (name, tree) {
        ("Value", _) => merge_value(reader, message, tree)?,
        ("Struct", Tree::Map(_)) | ("ListValue", Tree::List(_)) => {
            kind.get_field(1).map_or(Ok(()), |field| reader.merge_field(message, &field, tree))?;
        }
        ("Duration", Tree::Text(text)) => {
            let duration = duration(text).ok_or_else(|| Fault::new(format!("no duration such as 1.5s: {text:?}")))?;
            set_seconds(message, duration);
        }
        ("Timestamp", Tree::Text(text)) => {
            let time: jiff::Timestamp = text.parse().map_err(|_| Fault::new(format!("no timestamp: {text:?}")))?;
            set_seconds(message, (time.as_second(), time.subsec_nanosecond()));
        }
        ("FieldMask", Tree::Text(text)) => {
            let paths = text.split(',').filter(|path| !path.is_empty()).map(|path| Value::String(snake(path)));
            message.set_field_by_number(1, Value::List(paths.collect()));
        }
        (name, tree) if is_wrapper(name) && !matches!(tree, Tree::Map(_)) => {
            kind.get_field(1).map_or(Ok(()), |field| reader.merge_field(message, &field, tree))?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn merge_value(reader: Reader, message: &mut DynamicMessage, tree: &Tree) -> Result<()> {
    let (number, value) = match tree {
        Tree::Null => (1, Value::EnumNumber(0)),
        Tree::Bool(value) => (4, Value::Bool(*value)),
        Tree::Number(Number::Whole(number)) => (2, Value::F64(*number as f64)),
        Tree::Number(Number::Real(number)) => (2, Value::F64(*number)),
        Tree::Text(text) => (3, Value::String(text.clone())),
        Tree::List(_) | Tree::Map(_) => {
            let number = if matches!(tree, Tree::Map(_)) { 5 } else { 6 };
            let field = message.descriptor().get_field(number);
            return field.map_or(Ok(()), |field| reader.merge_field(message, &field, tree));
        }
    };
    message.set_field_by_number(number, value);
    Ok(())
}

fn set_seconds(message: &mut DynamicMessage, (seconds, nanos): (i64, i32)) {
    message.set_field_by_number(1, Value::I64(seconds));
    message.set_field_by_number(2, Value::I32(nanos));
}

/// Reads digits, at most nine of them behind a point, and an `s`.
fn duration(text: &str) -> Option<(i64, i32)> {
    let number = text.strip_suffix('s')?;
    let (is_negative, number) = number.strip_prefix('-').map_or((false, number), |number| (true, number));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let seconds: i64 = whole.parse().ok().filter(|seconds| *seconds <= LONGEST)?;
    let nanos: i32 = format!("{fraction:0<9}").parse().ok()?;
    Some(if is_negative { (-seconds, -nanos) } else { (seconds, nanos) })
}

/// Returns a path of a field mask with the names of the fields as they are declared.
fn snake(path: &str) -> String {
    let letters = path.chars().flat_map(|letter| {
        let is_upper = letter.is_ascii_uppercase();
        is_upper.then_some('_').into_iter().chain([letter.to_ascii_lowercase()])
    });
    letters.collect()
}
