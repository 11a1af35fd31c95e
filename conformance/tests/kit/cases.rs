//! Every fixed case passes against this project's server, and fails against a server that has the defect it is for.

use std::collections::BTreeSet;
use std::sync::Arc;

use xds_conformance::memory::{Defect, Faultless, Memory};
use xds_conformance::message::Variant;
use xds_conformance::referee::Level;
use xds_conformance::run::{Outcome, Verdict};
use xds_conformance::story::Story;
use xds_conformance::suite;

use crate::defects::{Seeded, Wrong};

/// Plays a case with all its types in memory, to the end of its tail.
fn play(story: &Arc<Story>, variant: Variant, defect: impl Defect) -> Outcome {
    let mut peer = Memory::new(defect);
    let mut played = suite::play(story, variant, &story.types, "k-", None, &mut peer);
    for played in &mut played {
        if played.outcome.verdict == Verdict::Pass {
            played.outcome = played.runner.tail(&mut peer);
        }
    }
    suite::worst(&played)
}

fn stories() -> Vec<(Variant, Arc<Story>)> {
    suite::server().expect("stories")
}

#[test]
fn every_case_passes_against_this_projects_server() {
    let mut faults = Vec::new();
    for (variant, story) in stories() {
        let outcome = play(&story, variant, Faultless);
        if outcome.verdict != Verdict::Pass {
            faults.push(format!("{} {variant:?}: {}\n  {}", story.id, outcome.why, outcome.ladder.join("\n  ")));
        }
    }
    assert!(faults.is_empty(), "{} failures:\n{}", faults.len(), faults.join("\n"));
}

/// The defect that each case is for. Cases that only inform are not here.
pub(crate) const TABLE: &[(&str, Wrong)] = &[
    ("base/first-answer", Wrong::ServesNothing),
    ("base/push", Wrong::NeverPushes),
    ("base/nonce", Wrong::EmptyNonces),
    ("base/version", Wrong::OneVersion),
    ("base/any-type", Wrong::OtherAnyType),
    ("base/unique-names", Wrong::SaysTwice),
    ("base/hot-name", Wrong::SendsTheNewestChange),
    ("base/node-first-only", Wrong::NeedsNodeAlways),
    ("base/types-on-ads", Wrong::OneTypeAStream),
    ("base/unknown-type", Wrong::DiesOfUnknownTypes),
    ("base/single-type-stream", Wrong::NeedsTypeUrl),
    ("base/streams-apart", Wrong::DiesOfNacks),
    ("base/many-names", Wrong::DropsManyNames),
    ("base/hostile", Wrong::DiesOfManyNames),
    ("sotw/ack-silence", Wrong::ResendsOnAck),
    ("sotw/nack-not-resent", Wrong::ResendsOnNack),
    ("sotw/nack-then-change", Wrong::GivesUpOnNack),
    ("sotw/nack-by-error-detail", Wrong::ComparesVersions),
    ("sotw/nack-at-same-version", Wrong::ResendsOnNackOfItsVersion),
    ("sotw/names-in-ack", Wrong::IgnoresNamesOnAck),
    ("sotw/names-in-nack", Wrong::IgnoresNamesOnNack),
    ("sotw/names-grow", Wrong::OneRequestPerNonce),
    ("sotw/names-sent-unasked", Wrong::WildcardHidesNames),
    ("sotw/names-shrink", Wrong::ResendsOnFewerNames),
    ("sotw/left-name-changes", Wrong::NeverForgetsNames),
    ("sotw/come-back", Wrong::NeverForgetsNames),
    ("sotw/empty-after-names", Wrong::IgnoresEmptyLists),
    ("sotw/wildcard-legacy", Wrong::NoLegacyWildcard),
    ("sotw/wildcard-star", Wrong::LiteralWildcard),
    ("sotw/wildcard-four-steps", Wrong::EmptyMeansAll),
    ("sotw/wildcard-after-name", Wrong::LateWildcardIgnored),
    ("sotw/missing-then-created", Wrong::ForgetsTheMissing),
    ("sotw/full-state", Wrong::PartOfFullState),
    ("sotw/full-state-delete", Wrong::NeverRemoves),
    ("sotw/stale-nonce", Wrong::AnswersStale),
    ("sotw/stale-names-not-lost", Wrong::LosesStaleNames),
    ("sotw/old-stream-nonce", Wrong::DropsOldNonces),
    ("sotw/reconnect-new-name", Wrong::TrustsVersions),
    ("sotw/reconnect-foreign-version", Wrong::TrustsVersions),
    ("sotw/coalesce", Wrong::DropsChanges),
    ("delta/subscribe", Wrong::ServesNothing),
    ("delta/missing", Wrong::NoNotFound),
    ("delta/missing-stays", Wrong::ForgetsTheMissing),
    ("delta/resubscribe", Wrong::IgnoresResubscribe),
    ("delta/resubscribe-missing", Wrong::TellsMissingOnce),
    ("delta/forget-crossing", Wrong::NoNotFound),
    ("delta/unsubscribe", Wrong::AnswersUnsubscribe),
    ("delta/phantom-unsubscribe", Wrong::DiesOfPhantoms),
    ("delta/unsubscribe-in-wildcard", Wrong::IgnoresUnsubscribe),
    ("delta/wildcard-star-and-legacy", Wrong::LiteralWildcard),
    ("delta/wildcard-four-steps", Wrong::WildcardForEver),
    ("delta/wildcard-changes", Wrong::WildcardIsASnapshot),
    ("delta/leave-and-return", Wrong::LateWildcardIgnored),
    ("delta/last-name-is-no-wildcard", Wrong::NoNamesMeansAll),
    ("delta/first-only-unsubscribes", Wrong::NoNamesMeansAll),
    ("delta/changed-only", Wrong::ResendsAllOnChange),
    ("delta/remove", Wrong::NeverRemoves),
    ("delta/remove-before-ack", Wrong::LosesRemovalsBeforeAck),
    ("delta/nack-not-resent", Wrong::ResendsOnNack),
    ("delta/nack-then-change", Wrong::GivesUpOnNack),
    ("delta/stale-nonce-subscribes", Wrong::DropsStale),
    ("delta/no-nonce-is-no-ack", Wrong::DropsWhileWaiting),
    ("delta/unanswered-new-names", Wrong::ReadsNamesAfterAck),
    ("delta/reconnect-diff", Wrong::NoNotFound),
    ("delta/reconnect-wildcard", Wrong::ForgetsClaimsOfTheWildcard),
    ("delta/reconnect-current", Wrong::IgnoresClaims),
    ("delta/reconnect-new-name", Wrong::DropsClaims),
    ("ads/no-wait-for-ack", Wrong::WaitsForClusters),
    ("ads/clusters-unanswered", Wrong::HoldsAllBehindClusters),
    ("ads/hot-clusters", Wrong::ClustersAlwaysFirst),
    ("ads/make-before-break", Wrong::ClustersLast),
    ("ads/warming", Wrong::NoWarming),
    ("ttl/delta", Wrong::NoBeats),
    ("ttl/sotw-wrapped", Wrong::NeverWraps),
    ("ttl/beside-unanswered", Wrong::BeatsWait),
    ("alias/subscribe", Wrong::NoAliases),
    ("vhds/missing", Wrong::ServesNothing),
    ("glob/members", Wrong::NoGlobs),
    ("ondemand/late-name", Wrong::IgnoresUnsubscribe),
    ("unknown/later", Wrong::ForgetsTheMissing),
    ("restart/version", Wrong::TrustsVersions),
];

/// Further defects, and a case that fails because of each.
const MORE: &[(&str, Wrong)] = &[
    ("ttl/delta", Wrong::BeatsOnce),
    ("ttl/delta", Wrong::BeatsWithOtherVersion),
    ("alias/subscribe", Wrong::NamedByItsAlias),
];

#[test]
fn cases_fail_against_further_defects() {
    for (case, wrong) in MORE {
        let stories = stories().into_iter().filter(|(_, story)| story.id.strip_prefix("server/") == Some(case));
        for (variant, story) in stories {
            let outcome = play(&story, variant, Seeded::new(*wrong));
            assert_eq!(outcome.verdict, Verdict::Fail, "{case} {wrong:?}: {}", outcome.ladder.join("\n  "));
        }
    }
}

#[test]
fn every_case_fails_against_the_defect_that_it_is_for() {
    let mut faults = Vec::new();
    for (variant, story) in stories() {
        let id = story.id.strip_prefix("server/").expect("the prefix");
        match TABLE.iter().find(|(case, _)| *case == id) {
            Some((_, wrong)) => {
                let outcome = play(&story, variant, Seeded::new(*wrong));
                if outcome.verdict != Verdict::Fail {
                    let ladder = outcome.ladder.join("\n  ");
                    faults
                        .push(format!("{id} {variant:?} {wrong:?}: {:?} {}\n  {ladder}", outcome.verdict, outcome.why));
                }
            }
            None => assert_eq!(story.level, Level::May, "{id} has no defect"),
        }
    }
    assert!(faults.is_empty(), "{} not seen:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn cases_of_level_may_pass_against_each_seeded_defect() {
    for (variant, story) in stories().into_iter().filter(|(_, story)| story.level == Level::May) {
        for (_, wrong) in TABLE {
            let outcome = play(&story, variant, Seeded::new(*wrong));
            assert_eq!(outcome.verdict, Verdict::Pass, "{} {wrong:?}: {}", story.id, outcome.why);
        }
    }
}

#[test]
fn every_file_is_a_case_and_every_case_is_named_by_its_file() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cases/server");
    let mut files = BTreeSet::new();
    for group in std::fs::read_dir(folder).expect("the folder") {
        let group = group.expect("an entry").path();
        for file in std::fs::read_dir(&group).expect("a group") {
            let file = file.expect("an entry").path();
            let stem = |path: &std::path::Path| path.file_stem().expect("a name").to_str().expect("text").to_owned();
            files.insert(format!("{}/{}", stem(&group), stem(&file)));
        }
    }
    let cases: BTreeSet<String> = suite::SERVER.iter().map(|(id, _)| (*id).to_owned()).collect();
    assert_eq!(files, cases);
    for (_, story) in stories() {
        assert!(cases.contains(story.id.strip_prefix("server/").expect("the prefix")), "{}", story.id);
    }
    assert_eq!(cases.len(), 90);
}
