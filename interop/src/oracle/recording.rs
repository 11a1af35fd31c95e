//! Recorded cases with the behaviour of C-core, so that a comparison needs no C-core.

use serde::{Deserialize, Serialize};

use super::case::Case;
use super::core::Played;

#[derive(Deserialize, Serialize)]
pub struct Recorded {
    pub case: Case,
    /// `None` if C-core crashed.
    pub core: Played,
}

/// The file of the recordings.
pub const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/grpc_oracle.jsonl");

/// # Errors
///
/// If the recordings can't be read.
#[cfg(test)]
pub fn read() -> Result<Vec<Recorded>, String> {
    let text = std::fs::read_to_string(PATH).map_err(|error| format!("{PATH}: {error}"))?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))).collect()
}

/// # Errors
///
/// If the recordings can't be written.
pub fn write(recorded: &[Recorded]) -> Result<(), String> {
    let line = |one: &Recorded| serde_json::to_string(one).map(|line| line + "\n").map_err(|error| error.to_string());
    let text = recorded.iter().map(line).collect::<Result<String, String>>()?;
    std::fs::write(PATH, text).map_err(|error| format!("{PATH}: {error}"))
}
