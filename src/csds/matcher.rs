//! Node matchers: which clients a request is about (R-CSDS-30).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::metadata::{Found, Metadata};
use crate::error::{Code, Status};
use crate::message::Node;

/// Selects nodes (`envoy.type.matcher.v3.NodeMatcher`): by the id *and* by all of the metadata. A matcher without
/// either selects every node.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct NodeMatcher {
    /// The matcher of the id.
    pub id: Option<StringMatcher>,
    /// The matchers of the metadata: all of them have to match.
    pub metadata: Vec<StructMatcher>,
}

/// Selects strings (`envoy.type.matcher.v3.StringMatcher`).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct StringMatcher {
    /// The pattern that the string has to match.
    pub pattern: Pattern,
    /// Whether the case of ASCII letters is ignored. This does not apply to regular expressions.
    pub ignore_case: bool,
}

/// The pattern that a string is compared with.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Pattern {
    /// The string itself.
    Exact(String),
    /// Its beginning.
    Prefix(String),
    /// Its end.
    Suffix(String),
    /// Any part of it.
    Contains(String),
    /// A regular expression (RE2), which the complete string has to match.
    Regex(String),
}

/// Selects the metadata with a value (`envoy.type.matcher.v3.StructMatcher`).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct StructMatcher {
    /// The keys that lead to the value, from the outermost one.
    pub path: Vec<String>,
    /// The matcher of the value.
    pub value: ValueMatcher,
}

/// Selects values (`envoy.type.matcher.v3.ValueMatcher`). No matcher selects a value that is absent.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum ValueMatcher {
    /// The null value.
    Null,
    /// This number.
    Number(Number),
    /// Numbers from the first on, and less than the second.
    Range(Number, Number),
    /// A string.
    String(StringMatcher),
    /// This boolean.
    Bool(bool),
    /// Any value that is no list and no struct, if `true`; no value, if `false`.
    Present(bool),
    /// A list of which at least one value is selected.
    OneOf(Box<ValueMatcher>),
    /// A value that one of these matchers selects.
    Or(Vec<ValueMatcher>),
}

/// A number of a message, compared by its bits, so that messages have an equality. There is only one zero, because
/// `prost` omits a negative zero, too.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Number(u64);

impl Number {
    /// Makes a number from a float.
    pub fn new(number: f64) -> Self {
        Self(if number == 0.0 { 0 } else { number.to_bits() })
    }

    /// Returns the float.
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// A regular expression that is ready to be used: returns whether it matches a complete string.
pub type Regex = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The reason why matchers can't be used.
#[derive(Clone, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MatcherError {
    /// A client has only its own status (gRFC A40).
    #[error("node_matchers are not supported by a client, which has only its own status")]
    OfClient,
    /// There are too many matchers, nested ones included.
    #[error("{count} matchers in one request, limit {limit}")]
    TooMany {
        /// The number of matchers.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// A regular expression can't be used.
    #[error("safe_regex {pattern:?}: {reason}")]
    Regex {
        /// The expression.
        pattern: String,
        /// The reason that `compile` returned.
        reason: String,
    },
}

impl From<MatcherError> for Status {
    fn from(error: MatcherError) -> Self {
        let code = match error {
            MatcherError::OfClient | MatcherError::Regex { .. } => Code::InvalidArgument,
            MatcherError::TooMany { .. } => Code::ResourceExhausted,
        };
        Self::new(code, error.to_string())
    }
}

/// The matchers of one request, ready to be used for any number of nodes.
pub struct Matchers<'r> {
    matchers: &'r [NodeMatcher],
    regexes: BTreeMap<&'r str, Regex>,
}

impl core::fmt::Debug for Matchers<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Matchers").field("matchers", &self.matchers).finish_non_exhaustive()
    }
}

impl<'r> Matchers<'r> {
    /// The limit of matchers in one request, nested ones included.
    pub const LIMIT: usize = 256;

    /// Prepares the matchers of a request. `compile` makes a regular expression, or returns why it can't; the crate has
    /// no regular expressions of its own. `compile` has to limit what an expression may cost.
    ///
    /// # Errors
    ///
    /// If there are more than [`LIMIT`](Self::LIMIT), or a regular expression can't be used.
    pub fn new(
        matchers: &'r [NodeMatcher],
        compile: impl Fn(&str) -> Result<Regex, String>,
    ) -> Result<Self, MatcherError> {
        let (count, limit) = (matchers.iter().map(NodeMatcher::count).sum(), Self::LIMIT);
        if count > limit {
            return Err(MatcherError::TooMany { count, limit });
        }
        let mut regexes = BTreeMap::new();
        for pattern in matchers.iter().flat_map(NodeMatcher::regexes) {
            let error = |reason| MatcherError::Regex { pattern: pattern.into(), reason };
            regexes.insert(pattern, compile(pattern).map_err(error)?);
        }
        Ok(Self { matchers, regexes })
    }

    /// Returns whether one of the matchers selects the node, or whether there are no matchers.
    pub fn select(&self, node: &Node) -> bool {
        self.matchers.is_empty() || {
            let metadata = Metadata::of(node);
            self.matchers.iter().any(|matcher| self.selects(matcher, node, &metadata))
        }
    }

    fn selects(&self, matcher: &NodeMatcher, node: &Node, metadata: &Metadata) -> bool {
        let has = |of: &StructMatcher| metadata.find(&of.path).is_some_and(|value| self.has(&of.value, value));
        matcher.id.as_ref().is_none_or(|id| self.is(id, &node.id)) && matcher.metadata.iter().all(has)
    }

    fn has(&self, matcher: &ValueMatcher, value: Found<'_>) -> bool {
        match (matcher, value) {
            (ValueMatcher::Or(any), value) => any.iter().any(|matcher| self.has(matcher, value)),
            (ValueMatcher::Null, Found::Null) => true,
            (ValueMatcher::Number(number), Found::Number(value)) => number.get() == value,
            (ValueMatcher::Range(from, to), Found::Number(value)) => from.get() <= value && value < to.get(),
            (ValueMatcher::String(matcher), Found::String(value)) => self.is(matcher, value),
            (ValueMatcher::Bool(bool), Found::Bool(value)) => *bool == value,
            (ValueMatcher::Present(present), value) => *present && !matches!(value, Found::Struct(_) | Found::List(_)),
            (ValueMatcher::OneOf(matcher), Found::List(list)) => list.values().any(|value| self.has(matcher, value)),
            _ => false,
        }
    }

    fn is(&self, matcher: &StringMatcher, text: &str) -> bool {
        let same = |a: &[u8], b: &[u8]| if matcher.ignore_case { a.eq_ignore_ascii_case(b) } else { a == b };
        let bytes = text.as_bytes();
        match &matcher.pattern {
            Pattern::Exact(exact) => same(bytes, exact.as_bytes()),
            Pattern::Prefix(prefix) => bytes.get(..prefix.len()).is_some_and(|start| same(start, prefix.as_bytes())),
            Pattern::Suffix(suffix) => {
                let start = bytes.len().checked_sub(suffix.len());
                start.is_some_and(|start| same(&bytes[start..], suffix.as_bytes()))
            }
            Pattern::Contains(part) => {
                part.is_empty() || bytes.windows(part.len()).any(|window| same(window, part.as_bytes()))
            }
            Pattern::Regex(regex) => self.regexes.get(regex.as_str()).is_some_and(|regex| regex(text)),
        }
    }
}

impl NodeMatcher {
    fn count(&self) -> usize {
        1 + self.metadata.iter().map(|of| 1 + of.value.count()).sum::<usize>()
    }

    fn regexes(&self) -> impl Iterator<Item = &str> {
        let mut regexes: Vec<&str> = self.id.iter().filter_map(StringMatcher::regex).collect();
        self.metadata.iter().for_each(|of| of.value.regexes(&mut regexes));
        regexes.into_iter()
    }
}

impl StringMatcher {
    fn regex(&self) -> Option<&str> {
        match &self.pattern {
            Pattern::Regex(regex) => Some(regex),
            _ => None,
        }
    }
}

impl ValueMatcher {
    fn count(&self) -> usize {
        match self {
            Self::OneOf(of) => 1 + of.count(),
            Self::Or(any) => 1 + any.iter().map(Self::count).sum::<usize>(),
            _ => 1,
        }
    }

    fn regexes<'a>(&'a self, to: &mut Vec<&'a str>) {
        match self {
            Self::String(matcher) => to.extend(matcher.regex()),
            Self::OneOf(of) => of.regexes(to),
            Self::Or(any) => any.iter().for_each(|of| of.regexes(to)),
            _ => {}
        }
    }
}
