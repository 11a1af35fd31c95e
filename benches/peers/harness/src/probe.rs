//! A question to a peer, with one right answer.

use serde_json::json;

/// The question, the expected answer, and the answer.
#[derive(Clone, Debug)]
pub struct Probe {
    /// What was done and sent, in order.
    pub sent: String,
    pub expected: String,
    pub got: String,
    pub right: bool,
}

impl Probe {
    pub fn new(sent: impl Into<String>, expected: impl Into<String>, got: impl Into<String>, right: bool) -> Self {
        Self { sent: sent.into(), expected: expected.into(), got: got.into(), right }
    }

    pub fn print(&self, drive: &str) {
        let Self { sent, expected, got, right } = self;
        let outcome = if *right { "ok" } else { "wrong" };
        let row = json!({
            "workload": "probe", "sent": sent, "expected": expected, "got": got, "outcome": outcome, "drive": drive,
        });
        println!("{row}");
    }
}
