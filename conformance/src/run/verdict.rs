//! Verdicts.

use crate::referee::{Complaint, Rule};

/// What a case came to.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Verdict {
    /// The sentence is kept.
    Pass,
    /// The peer does not have the feature, as it says.
    Unsupported,
    /// It could not be found out: `why` says what was in the way.
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
    /// Why; for a case that only informs, what the peer chose.
    pub why: String,
    /// The conversation, a line for each message.
    pub ladder: Vec<String>,
}

/// How a walk ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Walked {
    /// Nothing to complain of.
    Silent,
    /// The first complaint.
    Complaint(Complaint),
    /// The walk could not be walked to its end: why.
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
