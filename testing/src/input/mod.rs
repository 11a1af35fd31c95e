//! Bad input, and its effect in a few words.

/// Load reports to a collector, and answers to a reporter.
pub mod loads;
/// Requests to a server.
pub mod request;
/// Responses to a client.
pub mod response;

use xds_machine::{Error, Instant};

/// A row: the field and the input, the machine's reaction, and the variant.
pub type Row = ((&'static str, &'static str), String, &'static str);

/// The time in all rows.
pub const NOW: Instant = Instant::EPOCH;

/// Formats an error as `refused: Variant, STATUS`.
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
