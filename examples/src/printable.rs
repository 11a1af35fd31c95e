//! Text of peers, so that it can neither forge a line nor control a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// The longest id or name that is shown, in bytes.
pub const NAME_BYTES: usize = 256;

/// Returns whether a character ends a line, controls a terminal, or changes the direction of the text around it.
fn is_control(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a line for people, with its control characters written as Rust writes them: `\n`, `\u{1b}`.
pub fn text(line: &str) -> Cow<'_, str> {
    escaped(line, |char, to| to.extend(char.escape_default()))
}

/// Returns a JSON text with its control characters written as JSON writes them. They can only be in strings, whose
/// meaning stays.
pub fn json(line: &str) -> Cow<'_, str> {
    escaped(line, |char, to| {
        let _ = write!(to, "\\u{:04x}", u32::from(char));
    })
}

fn escaped(line: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !line.contains(is_control) {
        return line.into();
    }
    let mut to = String::with_capacity(line.len() + 16);
    for char in line.chars() {
        if is_control(char) { escape(char, &mut to) } else { to.push(char) }
    }
    to.into()
}

/// Returns the beginning of an id or a name, of [`NAME_BYTES`] at most.
pub fn cut(name: &str) -> &str {
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of character that may not reach a terminal.
    const RUDE: &str = "a\n\r\t\0\x1b[2J\x7f\u{85}\u{9b}\u{2028}\u{202e}b";

    #[test]
    fn control_characters_are_escaped_in_a_line_for_people() {
        assert_eq!(text(RUDE), r"a\n\r\t\u{0}\u{1b}[2J\u{7f}\u{85}\u{9b}\u{2028}\u{202e}b");
        assert!(matches!(text("héllo\\n"), Cow::Borrowed("héllo\\n")));
    }

    #[test]
    fn control_characters_are_escaped_in_json_without_another_meaning() {
        let line = serde_json::to_string(RUDE).expect("JSON");
        assert!(line.contains(is_control), "serde_json leaves some as they are");
        let escaped = json(&line);
        assert!(!escaped.contains(is_control), "{escaped:?}");
        assert_eq!(serde_json::from_str::<String>(&escaped).expect("JSON"), RUDE);
    }

    #[test]
    fn a_name_is_cut_after_256_bytes_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"a".repeat(256)).len(), 256);
        assert_eq!(cut(&"a".repeat(257)).len(), 256);
        assert_eq!(cut(&format!("a{}", "é".repeat(200))).len(), 255);
    }
}
