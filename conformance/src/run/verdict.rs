//! Verdicts.

use crate::referee::{Complaint, Rule};

/// The verdict on a case.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Verdict {
    /// The sentence is kept.
    Pass,
    /// The peer declares that it does not have the feature.
    Unsupported,
    /// The result could not be determined: `why` gives the reason.
    Inconclusive,
    /// The sentence is not kept.
    Fail,
}

impl Verdict {
    /// Returns the verdict as reports have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Unsupported => "unsupported",
            Self::Inconclusive => "inconclusive",
            Self::Fail => "fail",
        }
    }
}

/// A verdict, why, and the messages that led to it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason; for a case that only informs, the peer's choice.
    pub why: String,
    /// The conversation, a line for each message.
    pub ladder: Vec<String>,
}

/// How a walk ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Walked {
    /// No complaint.
    Silent,
    /// The first complaint.
    Complaint(Complaint),
    /// Why the walk could not be played to its end.
    Inconclusive(String),
}

/// Returns the case that a rule of every response belongs to, so that one defect is one failure and not a hundred.
pub(crate) fn own_case(rule: Rule) -> Option<&'static str> {
    match rule {
        Rule::Nonce | Rule::NonceAgain => Some("server/base/nonce"),
        Rule::AnyType => Some("server/base/any-type"),
        Rule::Twice => Some("server/base/unique-names"),
        Rule::Version | Rule::NoVersion => Some("server/base/version"),
        _ => None,
    }
}
