//! Node matchers on the wire. Matchers that Envoy's validation rules refuse are refused: a matcher without a pattern,
//! an empty prefix, a path without a key.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::csds::{NodeMatcher, Number, Pattern, StringMatcher, StructMatcher, ValueMatcher};
use crate::proto::generated;
use crate::proto::generated::{double_matcher, string_matcher, value_matcher};

/// Reads a matcher; `place` is its place in the request, for errors.
pub(super) fn node(matcher: generated::NodeMatcher, place: &str) -> Result<NodeMatcher, String> {
    let id = matcher.node_id.map(|id| string(id, &format!("{place}.node_id"))).transpose()?;
    let metadata = matcher.node_metadatas.into_iter().enumerate();
    let metadata = metadata.map(|(at, of)| metadata_matcher(of, &format!("{place}.node_metadatas[{at}]")));
    Ok(NodeMatcher { id, metadata: metadata.collect::<Result<_, _>>()? })
}

fn string(matcher: generated::StringMatcher, place: &str) -> Result<StringMatcher, String> {
    use string_matcher::MatchPattern;
    let some = |text: String, what| match text.is_empty() {
        true => Err(format!("{place}.{what} is empty")),
        false => Ok(text),
    };
    let pattern = match matcher.match_pattern.ok_or_else(|| format!("{place} has no pattern"))? {
        MatchPattern::Exact(exact) => Pattern::Exact(exact),
        MatchPattern::Prefix(prefix) => Pattern::Prefix(some(prefix, "prefix")?),
        MatchPattern::Suffix(suffix) => Pattern::Suffix(some(suffix, "suffix")?),
        MatchPattern::Contains(part) => Pattern::Contains(some(part, "contains")?),
        MatchPattern::SafeRegex(regex) => Pattern::Regex(some(regex.regex, "safe_regex.regex")?),
        MatchPattern::Custom(_) => return Err(format!("{place}.custom is not supported")),
    };
    Ok(StringMatcher { pattern, ignore_case: matcher.ignore_case })
}

fn metadata_matcher(matcher: generated::StructMatcher, place: &str) -> Result<StructMatcher, String> {
    let path: Vec<String> = matcher.path.into_iter().map(|segment| segment.key).collect();
    if path.is_empty() || path.iter().any(String::is_empty) {
        return Err(format!("{place}.path lacks a key"));
    }
    let of = matcher.value.ok_or_else(|| format!("{place} has no value"))?;
    Ok(StructMatcher { path, value: value(of, &format!("{place}.value"))? })
}

fn value(matcher: generated::ValueMatcher, place: &str) -> Result<ValueMatcher, String> {
    use value_matcher::MatchPattern;
    let lacks = || format!("{place} has no pattern");
    Ok(match matcher.match_pattern.ok_or_else(lacks)? {
        MatchPattern::NullMatch(_) => ValueMatcher::Null,
        MatchPattern::DoubleMatch(double) => match double.match_pattern.ok_or_else(lacks)? {
            double_matcher::MatchPattern::Exact(exact) => ValueMatcher::Number(Number::new(exact)),
            double_matcher::MatchPattern::Range(range) => {
                ValueMatcher::Range(Number::new(range.start), Number::new(range.end))
            }
        },
        MatchPattern::StringMatch(matcher) => ValueMatcher::String(string(matcher, place)?),
        MatchPattern::BoolMatch(bool) => ValueMatcher::Bool(bool),
        MatchPattern::PresentMatch(present) => ValueMatcher::Present(present),
        MatchPattern::ListMatch(list) => ValueMatcher::OneOf(Box::new(value(*list.one_of.ok_or_else(lacks)?, place)?)),
        MatchPattern::OrMatch(any) => {
            let any = any.value_matchers.into_iter().map(|of| value(of, place));
            ValueMatcher::Or(any.collect::<Result<_, _>>()?)
        }
    })
}

pub(super) fn node_out(matcher: &NodeMatcher) -> generated::NodeMatcher {
    generated::NodeMatcher {
        node_id: matcher.id.as_ref().map(string_out),
        node_metadatas: matcher.metadata.iter().map(metadata_out).collect(),
    }
}

fn string_out(matcher: &StringMatcher) -> generated::StringMatcher {
    use string_matcher::MatchPattern;
    let pattern = match matcher.pattern.clone() {
        Pattern::Exact(exact) => MatchPattern::Exact(exact),
        Pattern::Prefix(prefix) => MatchPattern::Prefix(prefix),
        Pattern::Suffix(suffix) => MatchPattern::Suffix(suffix),
        Pattern::Contains(part) => MatchPattern::Contains(part),
        Pattern::Regex(regex) => MatchPattern::SafeRegex(generated::RegexMatcher { regex }),
    };
    generated::StringMatcher { ignore_case: matcher.ignore_case, match_pattern: Some(pattern) }
}

fn metadata_out(matcher: &StructMatcher) -> generated::StructMatcher {
    let path = matcher.path.iter().map(|key| generated::PathSegment { key: key.clone() }).collect();
    generated::StructMatcher { path, value: Some(value_out(&matcher.value)) }
}

fn value_out(matcher: &ValueMatcher) -> generated::ValueMatcher {
    use value_matcher::MatchPattern;
    let double = |pattern| generated::DoubleMatcher { match_pattern: Some(pattern) };
    let pattern = match matcher {
        ValueMatcher::Null => MatchPattern::NullMatch(generated::Empty {}),
        ValueMatcher::Number(number) => {
            MatchPattern::DoubleMatch(double(double_matcher::MatchPattern::Exact(number.get())))
        }
        ValueMatcher::Range(start, end) => {
            let range = generated::DoubleRange { start: start.get(), end: end.get() };
            MatchPattern::DoubleMatch(double(double_matcher::MatchPattern::Range(range)))
        }
        ValueMatcher::String(matcher) => MatchPattern::StringMatch(string_out(matcher)),
        ValueMatcher::Bool(bool) => MatchPattern::BoolMatch(*bool),
        ValueMatcher::Present(present) => MatchPattern::PresentMatch(*present),
        ValueMatcher::OneOf(of) => {
            let one_of = Some(Box::new(value_out(of)));
            MatchPattern::ListMatch(Box::new(generated::ListMatcher { one_of }))
        }
        ValueMatcher::Or(any) => {
            let value_matchers = any.iter().map(value_out).collect();
            MatchPattern::OrMatch(generated::OrMatcher { value_matchers })
        }
    };
    generated::ValueMatcher { match_pattern: Some(pattern) }
}
