//! Streams, and the nonces of their responses.

use core::fmt;

use crate::name::Nonce;

/// Identifies a stream. Must be unique among the streams of a process, or nonces are not unique.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamId(pub u64);

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The longest nonce that is reported; the machine issues no longer one.
pub(super) const LONGEST: usize = 64;

/// Returns a nonce that no other response of the process has ([design rule 6](crate::manual::rules#rule-6)):
/// `stream.count`.
pub(super) fn nonce(stream: StreamId, sent: u64) -> Nonce {
    let mut text = [0; 41]; // twice the digits of the largest number, and a dot
    let mut at = text.len();
    for number in [sent, stream.0] {
        if at < text.len() {
            at -= 1;
            text[at] = b'.';
        }
        let mut rest = number;
        loop {
            at -= 1;
            text[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
    }
    Nonce::ascii(&text[at..])
}

/// Returns whether a stream that has sent so many responses gave this nonce.
pub(super) fn was_given(stream: StreamId, sent: u64, nonce: &Nonce) -> bool {
    let parsed = nonce.as_str().split_once('.').and_then(|(of, count)| Some((of.parse().ok()?, count.parse().ok()?)));
    parsed.is_some_and(|(of, count): (u64, u64)| of == stream.0 && (1..=sent).contains(&count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_made_of_the_stream_and_the_count() {
        assert_eq!(nonce(StreamId(0), 1), "0.1");
        assert_eq!(nonce(StreamId(17), 1200), "17.1200");
        assert_eq!(nonce(StreamId(u64::MAX), u64::MAX), "18446744073709551615.18446744073709551615");
    }

    #[test]
    fn a_stream_knows_the_nonces_that_it_gave() {
        let given = |text: &str| was_given(StreamId(17), 3, &Nonce::from(text));
        assert!(given("17.1") && given("17.3"));
        assert!(!given("17.0") && !given("17.4") && !given("1.3") && !given("17") && !given(""));
    }
}
