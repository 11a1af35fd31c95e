//! Bad input, and what becomes of it in a few words.

/// Requests that a server is sent.
pub mod request;
/// Responses that a client is sent.
pub mod response;

use xds_machine::{Error, Instant};

/// A row: the field and the input, what the machine does, and what it says.
pub type Row = ((&'static str, &'static str), String, &'static str);

/// The time of all rows.
pub const NOW: Instant = Instant::EPOCH;

/// `refused: Variant, STATUS`.
pub fn refused(error: &Error) -> String {
    match error {
        Error::Peer(peer) => {
            let debug = format!("{peer:?}");
            let variant = debug.split(' ').next().unwrap_or_default();
            format!("refused: {variant}, {}", peer.code())
        }
        Error::Caller(misuse) => format!("misuse: {misuse}"),
    }
}
