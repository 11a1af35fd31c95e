//! The words of a line.

use std::time::Duration;

use super::Text;

/// The words of a line, separated by spaces outside of quotes, brackets and braces.
pub(crate) struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    pub(crate) fn new(line: &'a str) -> Result<Self, String> {
        let (mut words, mut depth, mut quoted, mut start) = (Vec::new(), 0usize, false, 0);
        for (at, char) in line.char_indices().chain([(line.len(), ' ')]) {
            match char {
                '"' => quoted = !quoted,
                '[' | '{' if !quoted => depth += 1,
                ']' | '}' if !quoted => {
                    depth = depth.checked_sub(1).ok_or_else(|| format!("{char} closes nothing"))?;
                }
                ' ' if !quoted && depth == 0 => {
                    if at > start {
                        words.push(&line[start..at]);
                    }
                    start = at + 1;
                }
                _ => {}
            }
        }
        if quoted || depth > 0 {
            return Err("a quote or a bracket is not closed".into());
        }
        Ok(Self(words))
    }

    /// Takes the first word.
    pub(crate) fn take(&mut self, what: &str) -> Result<&'a str, String> {
        if self.0.is_empty() { Err(format!("{what} is missing")) } else { Ok(self.0.remove(0)) }
    }

    /// Takes the first word if it is one of a few.
    pub(crate) fn take_if(&mut self, is: impl Fn(&str) -> bool) -> Option<&'a str> {
        let word = self.0.first().copied().filter(|word| is(word))?;
        self.0.remove(0);
        Some(word)
    }

    /// Takes a word that stands anywhere.
    pub(crate) fn take_flag(&mut self, flag: &str) -> bool {
        let at = self.0.iter().position(|word| *word == flag);
        at.map(|at| self.0.remove(at)).is_some()
    }

    /// Takes the value of `key=value`.
    pub(crate) fn take_value(&mut self, key: &str) -> Option<&'a str> {
        let at = self.0.iter().position(|word| word.strip_prefix(key).is_some_and(|rest| rest.starts_with('=')))?;
        Some(&self.0.remove(at)[key.len() + 1..])
    }

    /// Takes the items between the brackets of a word such as `rm[a,b]`.
    pub(crate) fn take_list(&mut self, open: &str, close: char) -> Option<Vec<&'a str>> {
        let at = self.0.iter().position(|word| word.starts_with(open) && word.ends_with(close))?;
        let inside = &self.0.remove(at)[open.len()..];
        Some(inside[..inside.len() - 1].split(',').map(str::trim).filter(|item| !item.is_empty()).collect())
    }

    /// Returns the words that are left.
    pub(crate) fn rest(self) -> Vec<&'a str> {
        self.0
    }

    pub(crate) fn end(self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some(word) => Err(format!("{word:?} has no meaning here")),
        }
    }
}

/// Reads `$1` or `"text"`.
pub(crate) fn text(word: &str) -> Result<Text, String> {
    if let Some(variable) = word.strip_prefix('$') {
        return Ok(Text::Of(variable.into()));
    }
    let inside = word.strip_prefix('"').and_then(|word| word.strip_suffix('"'));
    inside.map(|text| Text::Literal(text.into())).ok_or_else(|| format!("{word:?} is neither $NAME nor a quoted text"))
}

/// Reads a number.
pub(crate) fn number<N: std::str::FromStr>(word: &str) -> Result<N, String> {
    word.parse().map_err(|_| format!("{word:?} is no number"))
}

/// Reads a duration: `3s`, `200ms`.
pub(crate) fn duration(word: &str) -> Result<Duration, String> {
    match word.strip_suffix("ms") {
        Some(millis) => number(millis).map(Duration::from_millis),
        None => match word.strip_suffix('s') {
            Some(seconds) => number(seconds).map(Duration::from_secs),
            None => Err(format!("{word:?} is no duration")),
        },
    }
}
