//! The fixed cases, and how a whole case is played: with each of its types.

use std::sync::Arc;

use crate::message::Variant;
use crate::resource;
use crate::run::{Outcome, Peer, Runner, Verdict};
use crate::story::{ParseError, Story};

macro_rules! cases {
    ($($id:literal)+) => {
        /// The cases for servers: the id without `server/`, and the story.
        pub const SERVER: &[(&str, &str)] = &[$(($id, include_str!(concat!("../cases/server/", $id, ".txt"))),)+];
    };
}

cases! {
    "base/first-answer"
    "base/push"
    "base/nonce"
    "base/version"
    "base/any-type"
    "base/unique-names"
    "base/node-first-only"
    "base/types-on-ads"
    "base/hot-name"
    "base/unknown-type"
    "base/type-url-required"
    "base/single-type-stream"
    "base/streams-apart"
    "base/many-names"
    "base/hostile"
    "sotw/ack-silence"
    "sotw/nack-not-resent"
    "sotw/nack-then-change"
    "sotw/nack-by-error-detail"
    "sotw/nack-at-same-version"
    "sotw/names-in-ack"
    "sotw/names-in-nack"
    "sotw/names-grow"
    "sotw/names-sent-unasked"
    "sotw/names-shrink"
    "sotw/left-name-changes"
    "sotw/come-back"
    "sotw/empty-after-names"
    "sotw/wildcard-legacy"
    "sotw/wildcard-star"
    "sotw/wildcard-four-steps"
    "sotw/wildcard-after-name"
    "sotw/missing-then-created"
    "sotw/nothing-exists"
    "sotw/full-state"
    "sotw/full-state-delete"
    "sotw/partial-changed-only"
    "sotw/partial-empty"
    "sotw/stale-nonce"
    "sotw/stale-names-not-lost"
    "sotw/old-stream-nonce"
    "sotw/reconnect-new-name"
    "sotw/reconnect-foreign-version"
    "sotw/supersede"
    "sotw/coalesce"
    "sotw/leftover-error"
    "delta/subscribe"
    "delta/missing"
    "delta/missing-stays"
    "delta/resubscribe"
    "delta/resubscribe-missing"
    "delta/forget-crossing"
    "delta/unsubscribe"
    "delta/phantom-unsubscribe"
    "delta/unsubscribe-in-wildcard"
    "delta/wildcard-star-and-legacy"
    "delta/wildcard-four-steps"
    "delta/wildcard-changes"
    "delta/leave-and-return"
    "delta/last-name-is-no-wildcard"
    "delta/first-only-unsubscribes"
    "delta/changed-only"
    "delta/remove"
    "delta/remove-before-ack"
    "delta/nack-not-resent"
    "delta/nack-then-change"
    "delta/stale-nonce-subscribes"
    "delta/no-nonce-is-no-ack"
    "delta/unanswered-new-names"
    "delta/reconnect-diff"
    "delta/reconnect-wildcard"
    "delta/reconnect-current"
    "delta/reconnect-new-name"
    "delta/irv-later-ignored"
    "ads/no-wait-for-ack"
    "ads/clusters-unanswered"
    "ads/hot-clusters"
    "ads/make-before-break"
    "ads/warming"
    "ads/removal-last"
    "ttl/delta"
    "ttl/sotw-wrapped"
    "ttl/beside-unanswered"
    "alias/subscribe"
    "vhds/missing"
    "glob/members"
    "errors/per-name"
    "ondemand/late-name"
    "unknown/later"
    "restart/version"
}

/// The commit of the specification (`xds_protocol.rst`) that the sentences are from.
pub const SPEC_REVISION: &str = "envoyproxy/envoy@0858246518e5a57abc609119d1244b299f489e89";

/// Returns the stories of the fixed cases of servers, one for each variant that a case is for.
///
/// # Errors
///
/// An error is a defect of the kit; it names the case and the line.
pub fn server() -> Result<Vec<(Variant, Arc<Story>)>, ParseError> {
    let mut stories = Vec::new();
    for (id, text) in SERVER {
        let of = |error: ParseError| ParseError { what: format!("{id}: {}", error.what), ..error };
        for variant in Story::variants(text).map_err(of)? {
            stories.push((variant, Arc::new(Story::parse(text, variant).map_err(of)?)));
        }
    }
    Ok(stories)
}

/// A story that was played with one of its types; its streams are still open.
pub struct Played {
    /// The run.
    pub runner: Runner,
    /// The outcome so far.
    pub outcome: Outcome,
}

/// Plays a story with each of these types, one after the other, up to the first failure. `prefix` begins all names.
/// Without a control, `given` names resources that the server has.
pub fn play(
    story: &Arc<Story>,
    variant: Variant,
    types: &[String],
    prefix: &str,
    given: Option<&[String]>,
    peer: &mut dyn Peer,
) -> Vec<Played> {
    let mut played = Vec::new();
    for (at, of) in types.iter().enumerate() {
        let runner = Runner::new(story.clone(), variant, resource::type_url(of), &format!("{prefix}{at}-"));
        let mut runner = given.into_iter().fold(runner, Runner::with_given);
        let outcome = runner.play(peer);
        let failed = outcome.verdict == Verdict::Fail;
        played.push(Played { runner, outcome });
        if failed {
            break; // the case is decided, and each wait for a missing message takes long
        }
    }
    played
}

/// Returns the worst outcome of the types of a case; if all pass, their notes are joined, without repetitions.
pub fn worst(played: &[Played]) -> Outcome {
    let worst = played.iter().map(|played| &played.outcome).rev().max_by_key(|outcome| outcome.verdict);
    let nothing =
        || Outcome { verdict: Verdict::Unsupported, why: "no type of the case is served".into(), ladder: Vec::new() };
    let mut outcome = worst.cloned().unwrap_or_else(nothing);
    if outcome.verdict == Verdict::Pass {
        let mut notes: Vec<&str> = played.iter().map(|played| played.outcome.why.as_str()).collect();
        notes.dedup();
        outcome.why = notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join("; ");
    }
    outcome
}
