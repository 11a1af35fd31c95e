//! Numbers, strings, bytes and enumerators, in each form that Envoy takes.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost_reflect::{EnumDescriptor, Kind, Value};

use super::tree::{Number, Tree};

const BYTES: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, BYTES);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, BYTES);

/// Reads a scalar that is no enumerator.
pub(super) fn read(kind: &Kind, tree: &Tree) -> Result<Value, String> {
    let value = match kind {
        Kind::Bool => match tree {
            Tree::Bool(value) => Some(Value::Bool(*value)),
            Tree::Text(text) if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
            Tree::Text(text) if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
            _ => None,
        },
        Kind::String => match tree {
            Tree::Text(text) => Some(Value::String(text.clone())),
            _ => None,
        },
        Kind::Bytes => match tree {
            Tree::Text(text) => STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok(),
            _ => None,
        }
        .map(|bytes| Value::Bytes(bytes.into())),
        Kind::Double => real(tree).map(Value::F64),
        Kind::Float => real(tree).filter(|real| !real.is_finite() || real.abs() <= f32::MAX.into()).map(|real| {
            // A float is the nearest to what is written, not a double that was cut.
            Value::F32(real as f32)
        }),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => whole(tree).and_then(|n| n.try_into().ok()).map(Value::I32),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => whole(tree).and_then(|n| n.try_into().ok()).map(Value::I64),
        Kind::Uint32 | Kind::Fixed32 => whole(tree).and_then(|n| n.try_into().ok()).map(Value::U32),
        Kind::Uint64 | Kind::Fixed64 => whole(tree).and_then(|n| n.try_into().ok()).map(Value::U64),
        Kind::Message(_) | Kind::Enum(_) => None,
    };
    let shown = match tree {
        Tree::Text(text) => format!("{text:?}"),
        Tree::Number(Number::Whole(number)) => number.to_string(),
        Tree::Number(Number::Real(number)) => number.to_string(),
        other => other.what().to_owned(),
    };
    value.ok_or_else(|| format!("expected a value of type {kind:?}, not {shown}"))
}

/// Reads an enumerator, by its name in any case or by its number. Returns `None` for a name that is unknown.
pub(super) fn enumerator(kind: &EnumDescriptor, tree: &Tree) -> Result<Option<i32>, String> {
    let wrong = || format!("{} is a name or a number, not {}", kind.name(), tree.what());
    match tree {
        Tree::Number(_) => whole(tree).and_then(|number| number.try_into().ok()).map(Some).ok_or_else(wrong),
        Tree::Text(text) => {
            let exact = kind.get_value_by_name(text);
            let named = exact.or_else(|| kind.values().find(|value| value.name().eq_ignore_ascii_case(text)));
            Ok(named.map(|value| value.number()).or_else(|| text.trim().parse().ok()))
        }
        _ => Err(wrong()),
    }
}

/// Reads an integer: digits, `0x` and digits, or any other number without a fraction.
fn whole(tree: &Tree) -> Option<i128> {
    match tree {
        Tree::Number(Number::Whole(number)) => Some(*number),
        Tree::Number(Number::Real(number)) => whole_real(*number),
        Tree::Text(text) => {
            let digits = text.strip_prefix('+').unwrap_or(text);
            let hex = digits.strip_prefix("0x").filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
            match hex {
                Some(hex) => i128::from_str_radix(hex, 16).ok(),
                None => text.parse().ok().or_else(|| whole_real(text.parse().ok()?)),
            }
        }
        _ => None,
    }
}

fn whole_real(number: f64) -> Option<i128> {
    let is_whole = number.fract() == 0.0 && number.abs() <= 2f64.powi(64);
    is_whole.then_some(number as i128)
}

fn real(tree: &Tree) -> Option<f64> {
    match tree {
        Tree::Number(Number::Whole(number)) => Some(*number as f64),
        Tree::Number(Number::Real(number)) => Some(*number),
        Tree::Text(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            text => {
                let text = text.trim();
                let is_hex = text.trim_start_matches(['+', '-']).starts_with("0x");
                if is_hex {
                    return whole(&Tree::Text(text.to_owned())).map(|number| number as f64);
                }
                text.parse().ok().filter(|real: &f64| real.is_finite())
            }
        },
        _ => None,
    }
}
