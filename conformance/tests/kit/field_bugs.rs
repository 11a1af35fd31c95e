//! The bugs of the field, one at a time: exactly the named cases fail, and without the bug none does
//! ([`correct_servers`](crate::correct_servers)). And several together: what go-control-plane was observed to do.

use xds_conformance::message::Variant;
use xds_conformance::run::Verdict;
use xds_conformance::suite;

use crate::bug::Bug;
use crate::plain::Plain;

/// Returns the cases that a server with bugs fails, in one variant.
pub(crate) fn failures(bugs: &[Bug], variant: Variant) -> Vec<String> {
    let mut failed = Vec::new();
    for (of, story) in suite::server().expect("stories") {
        if of != variant || story.features.iter().any(|feature| !["ads-order", "per-type"].contains(&feature.as_str()))
        {
            continue;
        }
        let mut peer = Plain::with(bugs);
        let mut played = suite::play(&story, variant, &story.types, "k-", None, &mut peer);
        for played in &mut played {
            if played.outcome.verdict == Verdict::Pass {
                played.outcome = played.runner.tail(&mut peer);
            }
        }
        if suite::worst(&played).verdict == Verdict::Fail {
            failed.push(story.id.strip_prefix("server/").expect("the prefix").to_owned());
        }
    }
    failed
}

/// The bugs, and the cases that fail: of SotW, and of delta.
const TABLE: &[(Bug, &[&str], &[&str])] = &[
    (Bug::OneNonce, &["base/nonce"], &["base/nonce"]),
    (Bug::OneVersion, &["base/version"], &["base/version", "delta/reconnect-diff", "delta/reconnect-wildcard"]),
    (Bug::SaysTwice, &["base/unique-names"], &["base/unique-names"]),
    (Bug::OtherAnyType, &["base/any-type"], &["base/any-type"]),
    (
        Bug::NodeForEachType,
        &[
            "base/node-first-only",
            "base/types-on-ads",
            "base/unknown-type",
            "ads/no-wait-for-ack",
            "ads/clusters-unanswered",
            "ads/hot-clusters",
            "ads/make-before-break",
            "ads/warming",
        ],
        &[
            "base/node-first-only",
            "base/types-on-ads",
            "base/unknown-type",
            "ads/no-wait-for-ack",
            "ads/clusters-unanswered",
            "ads/hot-clusters",
            "ads/make-before-break",
            "ads/warming",
        ],
    ),
    (Bug::UnknownTypeEnds, &["base/unknown-type"], &["base/unknown-type"]),
    (Bug::ResendsRejected, &["sotw/nack-not-resent", "sotw/nack-at-same-version"], &["delta/nack-not-resent"]),
    (Bug::AnswersStale, &["sotw/stale-nonce", "sotw/stale-names-not-lost", "sotw/coalesce"], &[]),
    (Bug::AckNamesIgnored, &["sotw/names-in-ack", "sotw/stale-names-not-lost"], &[]),
    (Bug::NackNamesIgnored, &["sotw/names-in-nack"], &[]),
    (
        Bug::SecondRequestIgnored,
        &[
            "sotw/nack-at-same-version",
            "sotw/names-grow",
            "sotw/names-sent-unasked",
            "sotw/left-name-changes",
            "sotw/come-back",
            "sotw/empty-after-names",
            "sotw/wildcard-four-steps",
            "sotw/wildcard-after-name",
        ],
        &[],
    ),
    (
        Bug::StarIsAName,
        &["sotw/names-sent-unasked", "sotw/wildcard-star", "sotw/wildcard-four-steps", "sotw/wildcard-after-name"],
        &[],
    ),
    (Bug::EmptyMeansAll, &["sotw/empty-after-names", "sotw/wildcard-four-steps"], &[]),
    (Bug::TrustsAnyVersion, &["sotw/reconnect-new-name", "sotw/reconnect-foreign-version"], &[]),
    (Bug::TrustsTheVersion, &["sotw/reconnect-new-name"], &[]),
    (Bug::NeverForgets, &["sotw/left-name-changes", "sotw/come-back", "sotw/empty-after-names"], &[]),
    (Bug::ComesBackSilent, &["sotw/names-sent-unasked", "sotw/come-back", "sotw/wildcard-four-steps"], &[]),
    (Bug::SilentDeletion, &["sotw/full-state-delete"], &[]),
    (Bug::ForgetsMissing, &["sotw/missing-then-created"], &["delta/missing-stays"]),
    (Bug::RemovalUnsubscribes, &[], &["delta/missing-stays"]),
    (Bug::MissingNotTold, &[], &["delta/missing", "delta/resubscribe-missing"]),
    (Bug::MissingToldOnce, &[], &["delta/resubscribe-missing", "delta/unsubscribe-in-wildcard"]),
    (Bug::KnownNotSentAgain, &[], &["delta/resubscribe"]),
    (Bug::RemovalLostBeforeAck, &[], &["delta/remove-before-ack"]),
    (Bug::LeftInWildcardSilent, &[], &["delta/unsubscribe-in-wildcard", "ondemand/late-name"]),
    (Bug::LastNameIsWildcard, &[], &["delta/wildcard-four-steps", "delta/last-name-is-no-wildcard"]),
    (Bug::WildcardForEver, &[], &["delta/wildcard-four-steps"]),
    (Bug::DropsStale, &[], &["delta/stale-nonce-subscribes"]),
    (Bug::DropsWithoutNonce, &[], &["delta/no-nonce-is-no-ack", "delta/unanswered-new-names"]),
    (Bug::PhantomEnds, &[], &["delta/phantom-unsubscribe"]),
    (Bug::AnswersUnsubscribe, &[], &["delta/unsubscribe"]),
    (Bug::SendsAllOnChange, &[], &["delta/changed-only"]),
    (Bug::ClaimedGoneNotTold, &[], &["delta/reconnect-wildcard"]),
    (Bug::NoWarming, &["ads/warming"], &["ads/warming"]),
    (Bug::EndpointsFirst, &["ads/make-before-break"], &["ads/make-before-break"]),
];

#[test]
fn with_each_bug_exactly_the_named_cases_fail() {
    let mut faults = Vec::new();
    for (bug, sotw, delta) in TABLE {
        for (variant, named) in [(Variant::Sotw, *sotw), (Variant::Delta, *delta)] {
            let failed = failures(&[*bug], variant);
            if failed != named {
                faults.push(format!("{bug:?} {variant:?}: {failed:?}"));
            }
        }
    }
    assert!(faults.is_empty(), "other cases than the named ones:\n{}", faults.join("\n"));
}

/// go-control-plane 2b88c16, as observed through its real server. All its other behaviour is a choice, and never fails.
#[test]
fn an_imitation_of_go_control_plane_fails_exactly_the_expected_cases() {
    // Endpoints are not sent again after their cluster changed.
    let linear = [Bug::NoWarming];
    assert_eq!(failures(&linear, Variant::Sotw), ["ads/warming"]);
    // A NACK is answered at once by the rejected version; a stream that has unsubscribed from all names gets an empty
    // response.
    let snapshot = [Bug::NoWarming, Bug::ResendsRejected, Bug::EmptyAfterLeaving];
    assert_eq!(failures(&snapshot, Variant::Sotw), GCP_SNAPSHOT);
    // A name that does not exist is not reported, and a name that is subscribed to once more is not answered; a removal
    // that crosses an unanswered response is lost.
    let delta = [Bug::NoWarming, Bug::MissingNotTold, Bug::KnownNotSentAgain, Bug::RemovalLostBeforeAck];
    assert_eq!(failures(&delta, Variant::Delta), GCP_DELTA);
}

const GCP_SNAPSHOT: &[&str] = &["sotw/nack-not-resent", "sotw/nack-at-same-version", "ads/warming"];
const GCP_DELTA: &[&str] =
    &["delta/missing", "delta/resubscribe", "delta/resubscribe-missing", "delta/remove-before-ack", "ads/warming"];
