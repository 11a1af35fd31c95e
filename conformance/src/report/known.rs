//! The file of known failures: each line has an id or a glob, a variant if the failure is only in one, and a reason
//! behind `#`.

use std::fmt;
use std::str::FromStr;

use super::variant_name;
use crate::message::Variant;

/// A pattern for ids of cases: `*` stands for any characters. The prefix `server/` may be left out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Glob {
    pattern: String,
    variant: Option<Variant>,
}

impl Glob {
    /// Makes a pattern for all variants.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self { pattern: pattern.into(), variant: None }
    }

    /// Returns whether the pattern is for this case.
    pub fn covers(&self, id: &str, variant: Variant) -> bool {
        let short = id.split_once('/').map_or(id, |(_, rest)| rest);
        self.variant.is_none_or(|of| of == variant) && [id, short].iter().any(|id| matches(&self.pattern, id))
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pattern)?;
        self.variant.map_or(Ok(()), |variant| write!(f, " {}", variant_name(variant)))
    }
}

/// Returns whether a text matches a pattern with `*`.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            (0..=text.len()).filter(|at| text.is_char_boundary(*at)).any(|at| matches(rest, &text[at..]))
        }),
    }
}

/// The failures that are known.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KnownFailures(Vec<Glob>);

impl KnownFailures {
    /// Returns whether a failure of this case is known.
    pub fn covers(&self, id: &str, variant: Variant) -> bool {
        self.0.iter().any(|glob| glob.covers(id, variant))
    }

    /// Returns the entries.
    pub fn globs(&self) -> &[Glob] {
        &self.0
    }
}

impl FromStr for KnownFailures {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut globs = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let variant = match words[..] {
                [] => continue,
                [_] => None,
                [_, "sotw"] => Some(Variant::Sotw),
                [_, "delta"] => Some(Variant::Delta),
                _ => return Err(format!("line {}: an entry is a case, and maybe sotw or delta", at + 1)),
            };
            globs.push(Glob { pattern: words[0].to_owned(), variant });
        }
        Ok(Self(globs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_covers_ids_with_or_without_their_prefix() {
        let covers = |pattern: &str, id| Glob::new(pattern).covers(id, Variant::Delta);
        assert!(covers("server/delta/missing", "server/delta/missing"));
        assert!(covers("delta/re*", "server/delta/resubscribe"));
        assert!(covers("*miss*", "server/delta/missing"));
        assert!(!covers("delta/re*", "server/sotw/reconnect-new-name"));
        assert!(!covers("missing", "server/delta/missing"));
    }

    #[test]
    fn a_known_failures_file_is_parsed_with_variants_and_comments() {
        let known: KnownFailures = "# all\n\nbase/push delta # never pushes\n".parse().expect("a file");
        assert!(known.covers("server/base/push", Variant::Delta) && !known.covers("server/base/push", Variant::Sotw));
        let wrong = "a\nbase/push twice".parse::<KnownFailures>();
        assert_eq!(wrong, Err("line 2: an entry is a case, and maybe sotw or delta".into()));
    }
}
