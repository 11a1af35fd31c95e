//! Percent-encoding of URIs (RFC 3986, section 2).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

/// Returns whether a byte may be in an authority.
pub(super) fn in_authority(byte: u8) -> bool {
    is_common(byte) || matches!(byte, b'[' | b']')
}

/// Returns whether a byte may be in a path.
pub(super) fn in_path(byte: u8) -> bool {
    is_common(byte) || byte == b'/'
}

/// Returns whether a byte is a `pchar`, which may be in a segment of a path.
fn is_common(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte)
}

/// Encodes all bytes that are not allowed.
pub(super) fn encode(text: &str, allowed: fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if allowed(byte) {
            encoded.push(char::from(byte));
        } else {
            let written = write!(encoded, "%{byte:02X}");
            debug_assert!(written.is_ok(), "a string takes all there is");
        }
    }
    encoded
}

/// Decodes encoded bytes; a percent sign without two digits stays. Returns `None` if the result is not UTF-8.
pub(super) fn decode(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|&byte| char::from(byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high << 4 | low).ok()?);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}
