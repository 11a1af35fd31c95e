//! Percent-encoding (RFC 3986, section 2), which depends on the part of the URI.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::error::Error;

/// A part of a URI with its own rules for escaping.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Authority,
    /// A slash in an id is an ordinary character (`xds.core.v3.ResourceName`).
    Id,
    /// A key or a value. The plus sign is escaped, because some parsers read it as a space.
    Param,
    Directive,
}

pub(super) const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

impl Part {
    /// Returns whether a byte is written unescaped.
    const fn allows(self, byte: u8) -> bool {
        let common =
            is_unreserved(byte) || matches!(byte, b'!' | b'$' | b'\'' | b'(' | b')' | b'*' | b';' | b':' | b'@');
        common
            || match self {
                Self::Authority => matches!(byte, b'&' | b'+' | b',' | b'=' | b'[' | b']'),
                Self::Id => matches!(byte, b'&' | b'+' | b',' | b'=' | b'/'),
                Self::Param => matches!(byte, b',' | b'/' | b'?'),
                Self::Directive => matches!(byte, b'&' | b'+' | b'=' | b'/' | b'?'),
            }
    }
}

pub(super) fn encode(to: &mut impl Write, part: Part, text: &str) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| !part.allows(byte)) {
        let len = rest[at..].chars().next().map_or(0, char::len_utf8);
        to.write_str(&rest[..at])?;
        for byte in rest[at..at + len].bytes() {
            write!(to, "%{byte:02X}")?;
        }
        rest = &rest[at + len..];
    }
    to.write_str(rest)
}

pub(super) fn decode(text: &str) -> Result<Cow<'_, str>, Error> {
    let Some(first) = text.find('%') else { return Ok(text.into()) };
    let (start, mut rest) = text.as_bytes().split_at(first);
    let mut bytes = Vec::from(start);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        bytes.push(byte);
        if byte == b'%' {
            let (high, low) = match *rest {
                [high, low, ..] => (digit(high)?, digit(low)?),
                _ => return Err(Error::Escape),
            };
            bytes.pop();
            bytes.push(high << 4 | low);
            rest = &rest[2..];
        }
    }
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Error::Escape)
}

fn digit(byte: u8) -> Result<u8, Error> {
    let digit = char::from(byte).to_digit(16).ok_or(Error::Escape)?;
    u8::try_from(digit).map_err(|_| Error::Escape)
}
