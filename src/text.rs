//! A short immutable string: machines keep hundreds of thousands of versions and nonces, and most fit in place.

use alloc::sync::Arc;
use core::cmp::Ordering;
use core::fmt;

/// The longest string kept in place: an xxh3-128 hash in base64 has 22 characters.
const INLINE: usize = 22;

#[derive(Clone)]
pub(crate) enum Text {
    Inline { len: u8, bytes: [u8; INLINE] },
    Shared(Arc<str>),
}

impl Text {
    pub(crate) fn new(text: &str) -> Self {
        Self::inline(text.as_bytes()).unwrap_or_else(|| Self::Shared(text.into()))
    }

    /// Makes a text from a string that is already shared.
    pub(crate) fn shared(text: Arc<str>) -> Self {
        Self::inline(text.as_bytes()).unwrap_or(Self::Shared(text))
    }

    /// Makes a text from ASCII characters.
    pub(crate) fn ascii(text: &[u8]) -> Self {
        debug_assert!(text.is_ascii());
        Self::inline(text).unwrap_or_else(|| Self::Shared(core::str::from_utf8(text).unwrap_or_default().into()))
    }

    fn inline(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; INLINE];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self::Inline { len: text.len() as u8, bytes })
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            // The bytes are those of a `str`, so the fallback is never used; `unsafe` would save a few nanoseconds.
            Self::Inline { len, bytes } => core::str::from_utf8(&bytes[..usize::from(*len)]).unwrap_or_default(),
            Self::Shared(text) => text,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Inline { len: 0, .. })
    }

    /// Returns the bytes of the string, without the UTF-8 check of [`as_str`](Self::as_str).
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Self::Shared(text) => text.as_bytes(),
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::Inline { len: 0, bytes: [0; INLINE] }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_strings_read_back() {
        for len in [0, 1, 21, 22, 23, 300] {
            let text = "x".repeat(len);
            assert_eq!(Text::new(&text).as_str(), text);
            assert_eq!(Text::new(&text).is_empty(), len == 0);
        }
        assert_eq!(size_of::<Text>(), 24);
    }

    #[test]
    fn order_and_equality_are_those_of_the_string() {
        let mut texts = ["b", "", "a", "a string that is too long to be kept in place"].map(Text::new);
        texts.sort();
        assert_eq!(texts.each_ref().map(Text::as_str), ["", "a", "a string that is too long to be kept in place", "b"]);
        assert_ne!(Text::new("a"), Text::new("b"));
    }
}
