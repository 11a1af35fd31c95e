//! The fixed cases for clients, and which case a fault belongs to.

use std::sync::Arc;

use super::story::{self, ClientStory};
use crate::message::Variant;
use crate::referee::Rule;
use crate::story::{ParseError, Story};

/// The case of a good response: if a client rejects it, no other case proves anything.
pub(super) const ACK: &str = "client/c/ack";

macro_rules! cases {
    ($($id:literal)+) => {
        /// The cases for clients: the id without `client/`, and the story. Cases that end streams come after cases that
        /// do not, and cases that some clients do not survive come last.
        pub const CLIENT: &[(&str, &str)] = &[$(($id, include_str!(concat!("../../cases/client/", $id, ".txt"))),)+];
    };
}

cases! {
    "c/nack-first"
    "c/ack"
    "c/ack-every"
    "c/reads-on"
    "c/reads-while-warming"
    "c/nack"
    "c/nack-then-good"
    "c/nack-code"
    "c/error-only-in-nack"
    "c/nack-keeps-good-part"
    "c/duplicate-names"
    "c/unrequested"
    "c/unrequested-bad"
    "c/any-type-mismatch"
    "c/wrapped"
    "c/names-in-full"
    "c/unsubscribe-said"
    "c/last-name-answered"
    "c/come-back"
    "c/nonce-latest"
    "c/nonce-per-type"
    "c/delta-changes-only"
    "c/full-state-absent"
    "c/full-state-empty"
    "c/wildcard-absent"
    "c/partial-absent"
    "c/new-name-not-deleted"
    "c/created-later"
    "c/delta-removed-unknown"
    "c/ttl-expires"
    "c/node"
    "c/first-request"
    "c/nothing-wanted"
    "c/wildcard-form"
    "c/nack-keeps-old"
    "c/delta-wildcard-name"
    "c/delta-removed"
    "c/reconnect-version"
    "c/reconnect-irv"
    "c/reconnect-names"
    "c/reconnect-no-old-answers"
    "c/cut-anywhere"
    "c/ondemand"
    "c/empty-nonce"
    "c/federation-fallback"
    "c/reconnect-backoff"
    "c/timer-not-for-held"
    "c/come-back-held"
    "c/missing-timeout"
    "c/unknown-type"
    "c/hostile"
}

/// Returns the stories of the fixed cases of a variant, in the order in which they are played.
///
/// # Errors
///
/// An error is a defect of the kit; it names the case and the line.
pub fn client(variant: Variant) -> Result<Vec<Arc<ClientStory>>, ParseError> {
    let mut stories = Vec::new();
    for (id, text) in CLIENT {
        let of = |error: ParseError| ParseError { what: format!("{id}: {}", error.what), ..error };
        if Story::<crate::story::Step>::variants(text).map_err(of)?.contains(&variant) {
            stories.push(Arc::new(story::parse(text, variant).map_err(of)?));
        }
    }
    Ok(stories)
}

/// Returns the case that a rule belongs to, so that one defect is one failure, wherever it is seen.
pub fn own_case(rule: Rule, variant: Variant) -> Option<&'static str> {
    Some(match rule {
        Rule::Node => "client/c/node",
        Rule::FirstRequest | Rule::ErrorWithoutResponse => "client/c/first-request",
        Rule::NonceOfOtherType => "client/c/nonce-per-type",
        Rule::NonceOfOtherStream => "client/c/reconnect-no-old-answers",
        Rule::NonceUnknown | Rule::NonceLatest if variant == Variant::Sotw => "client/c/nonce-latest",
        Rule::NonceUnknown => ACK,
        Rule::AnsweredTwice => "client/c/delta-changes-only",
        Rule::AckVersion => ACK,
        Rule::NackVersion | Rule::BadAccepted => "client/c/nack",
        Rule::GoodRejected => "client/c/nack-then-good",
        Rule::NackCode => "client/c/nack-code",
        Rule::ErrorAgain => "client/c/error-only-in-nack",
        Rule::NotAnswered => "client/c/ack-every",
        Rule::NamesUnwanted => "client/c/unsubscribe-said",
        Rule::Names if variant == Variant::Sotw => "client/c/names-in-full",
        Rule::Names => "client/c/delta-changes-only",
        Rule::Claims | Rule::ClaimsLater => "client/c/reconnect-irv",
        _ => return None,
    })
}
