//! Walks: no complaint about correct servers, and the seeded defects that walks find.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use xds_conformance::memory::{Defect, Faultless, Memory};
use xds_conformance::message::{Response, Variant};
use xds_conformance::referee::Rule;
use xds_conformance::report::Row;
use xds_conformance::run::{Peer, StreamId, Verdict};
use xds_conformance::story::Story;
use xds_conformance::walk::{self, Arena, Limits, Walks};

use crate::bug::Bug;
use crate::defects::{Seeded, Wrong};
use crate::plain::Plain;
use crate::style::styles;

fn walks(variants: &[Variant], seed: u64) -> Walks {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Walks {
        variants: variants.to_vec(),
        types: names(&["cds", "eds", "lds", "rds"]),
        wildcard: names(&["cds", "lds"]),
        has_control: true,
        has_batches: true,
        seed,
    }
}

fn limits(walks: usize) -> Limits {
    Limits { walks, time: Duration::from_secs(600), steps: 40, workers: 1 }
}

/// Walks with servers that `connect` makes, a new one for each walk.
fn walk<P: Peer + 'static>(variants: &[Variant], number: usize, connect: impl Fn() -> P + Sync) -> Vec<Row> {
    let connect = |_| Ok(Box::new(connect()) as Box<dyn Peer>);
    let arena = Arena::new(&connect, "k-", None);
    walk::run(&arena, &walks(variants, 1), limits(number)).0
}

fn shown(rows: &[Row]) -> String {
    let row = |row: &Row| format!("{} {}\n{}", row.id, row.why, row.ladder.join("\n"));
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// Returns the rules that servers made by `connect` break in walks.
pub(crate) fn rules_of<P: Peer + 'static>(number: usize, connect: impl Fn() -> P + Sync) -> BTreeSet<String> {
    let rows = walk(&[Variant::Sotw, Variant::Delta], number, connect);
    let failed = rows.iter().filter(|row| row.verdict == Verdict::Fail);
    failed.map(|row| row.id.trim_start_matches("walk/").to_owned()).collect()
}

#[test]
fn walks_report_no_violation_by_this_projects_server() {
    for variant in [Variant::Sotw, Variant::Delta] {
        let rows = walk(&[variant], 2_000, || Memory::new(Faultless));
        assert_eq!((rows[0].id.as_str(), rows[0].verdict), ("walk/all", Verdict::Pass), "{}", shown(&rows));
        assert!(rows[0].why.starts_with("2000 walks, ") && !rows[0].why.contains(';'), "{}", rows[0].why);
    }
}

#[test]
fn walks_report_no_violation_by_other_correct_servers() {
    for style in styles() {
        let rows = walk(&[Variant::Sotw, Variant::Delta], 200, || Plain::new(style));
        assert_eq!((rows[0].id.as_str(), rows[0].verdict), ("walk/all", Verdict::Pass), "{style:?}\n{}", shown(&rows));
    }
}

/// The rule by which a hundred walks find each seeded defect; empty if only the fixed cases find it: odd types and
/// requests, more names and changes than a walk has, features, order, and behaviour that delta permits.
pub(crate) const FOUND: &[(Wrong, &str)] = &[
    (Wrong::ServesNothing, "owed"),
    (Wrong::NeverPushes, "not-sent"),
    (Wrong::EmptyNonces, "nonce"),
    (Wrong::OneVersion, "version"),
    (Wrong::OtherAnyType, "any-type"),
    (Wrong::SaysTwice, "twice"),
    (Wrong::NeedsNodeAlways, "not-sent"),
    (Wrong::OneTypeAStream, "not-sent"),
    (Wrong::DiesOfUnknownTypes, ""),
    (Wrong::NeedsTypeUrl, ""),
    (Wrong::DiesOfNacks, "not-removed"),
    (Wrong::DropsManyNames, ""),
    (Wrong::DiesOfManyNames, ""),
    (Wrong::ResendsOnAck, "needless"),
    (Wrong::ResendsOnNack, "needless"),
    (Wrong::GivesUpOnNack, "not-removed"),
    (Wrong::ComparesVersions, "needless"),
    (Wrong::ResendsOnNackOfItsVersion, ""),
    (Wrong::IgnoresNamesOnAck, "owed"),
    (Wrong::IgnoresNamesOnNack, "owed"),
    (Wrong::OneRequestPerNonce, "not-sent"),
    (Wrong::WildcardHidesNames, ""),
    (Wrong::ResendsOnFewerNames, "needless"),
    (Wrong::NeverForgetsNames, "owed"),
    (Wrong::IgnoresEmptyLists, "unwanted"),
    (Wrong::NoLegacyWildcard, "not-sent"),
    (Wrong::LiteralWildcard, "not-sent"),
    (Wrong::EmptyMeansAll, "unwanted"),
    (Wrong::LateWildcardIgnored, "not-sent"),
    (Wrong::ForgetsTheMissing, "not-sent"),
    (Wrong::PartOfFullState, "full-state"),
    (Wrong::NeverRemoves, "not-removed"),
    (Wrong::AnswersStale, "needless"),
    (Wrong::LosesStaleNames, "owed"),
    (Wrong::DropsOldNonces, "unwanted"),
    (Wrong::TrustsVersions, "owed"),
    (Wrong::DropsChanges, ""),
    (Wrong::NoNotFound, "not-removed"),
    (Wrong::IgnoresResubscribe, "unanswered"),
    (Wrong::TellsMissingOnce, "not-removed"),
    (Wrong::AnswersUnsubscribe, "needless"),
    (Wrong::DiesOfPhantoms, "not-sent"),
    (Wrong::IgnoresUnsubscribe, "unsubscribed-in-wildcard"),
    (Wrong::WildcardForEver, ""),
    (Wrong::NoNamesMeansAll, ""),
    (Wrong::ResendsAllOnChange, "content"),
    (Wrong::LosesRemovalsBeforeAck, "content"),
    (Wrong::DropsStale, "owed"),
    (Wrong::DropsWhileWaiting, "owed"),
    (Wrong::IgnoresClaims, ""),
    (Wrong::DropsClaims, "owed"),
    (Wrong::ForgetsClaimsOfTheWildcard, ""),
    (Wrong::WaitsForClusters, "not-sent"),
    (Wrong::ClustersLast, "needless"),
    (Wrong::NoWarming, "not-removed"),
    (Wrong::NoBeats, "not-removed"),
    (Wrong::NeverWraps, ""),
    (Wrong::NoAliases, ""),
    (Wrong::NoGlobs, ""),
    (Wrong::WildcardIsASnapshot, ""),
    (Wrong::SendsTheNewestChange, "owed"),
    (Wrong::ReadsNamesAfterAck, "unanswered"),
    (Wrong::HoldsAllBehindClusters, "not-sent"),
    (Wrong::ClustersAlwaysFirst, "not-sent"),
    (Wrong::BeatsWait, ""),
];

#[test]
fn walks_find_exactly_the_expected_seeded_defects_of_servers() {
    let mut faults = Vec::new();
    for (_, wrong) in crate::cases::TABLE {
        assert!(FOUND.iter().any(|(known, _)| known == wrong), "{wrong:?} is not in the table");
    }
    for (wrong, rule) in FOUND {
        let rows = walk(&[Variant::Sotw, Variant::Delta], 100, || Memory::new(Seeded::new(*wrong)));
        let failed = rows.iter().filter(|row| row.verdict == Verdict::Fail);
        let rules: BTreeSet<&str> = failed.map(|row| row.id.trim_start_matches("walk/")).collect();
        if if rule.is_empty() { !rules.is_empty() } else { !rules.contains(rule) } {
            faults.push(format!("{wrong:?}: {rule:?} is expected; {rules:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_violation_is_shrunk_and_its_story_reproduces_it() {
    let connect = |_| Ok(Box::new(Memory::new(Seeded::new(Wrong::IgnoresResubscribe))) as Box<dyn Peer>);
    let arena = Arena::new(&connect, "k-", None);
    let (rows, findings) = walk::run(&arena, &walks(&[Variant::Delta], 1), limits(100));
    let at = rows.iter().position(|row| row.id == "walk/unanswered").expect("the violation");
    let (row, finding) = (&rows[at], &findings[at]);
    assert_eq!((row.rule.as_str(), row.sentence.as_str()), ("NONE-01", Rule::Unanswered.sentence()));
    assert!(finding.steps.len() <= 4, "{}", row.ladder.join("\n"));
    assert!(row.ladder.contains(&"-- what xds-machine would have said".to_owned()));
    let text = finding.story(&arena);
    let again = walk::replay(&arena, Variant::Delta, &Story::parse(&text, Variant::Delta).expect("a story"));
    assert_eq!((again.id.as_str(), again.verdict), ("walk/unanswered", Verdict::Fail), "{text}");
    let connect = |_| Ok(Box::new(Memory::new(Faultless)) as Box<dyn Peer>);
    let ours = Arena::new(&connect, "k-", None);
    let again = walk::replay(&ours, Variant::Delta, &Story::parse(&text, Variant::Delta).expect("a story"));
    assert_eq!((again.id.as_str(), again.verdict), ("walk/unanswered", Verdict::Pass));
}

#[test]
fn a_change_after_a_claimed_version_must_be_sent_on_the_next_stream() {
    let text = "case x\nlevel MUST\nrule R-1\nsentence s\nvariants delta\n\nworld put cds a 1\nC> cds +*\nhear\nack cds\n\
                cut\nworld put cds a 2\nC> cds +* resume\nrest\n";
    let story = Story::parse(text, Variant::Delta).expect("a story");
    let replay = |bugs: &[Bug]| {
        let connect = |_| Ok(Box::new(Plain::with(bugs)) as Box<dyn Peer>);
        let row = walk::replay(&Arena::new(&connect, "k-", None), Variant::Delta, &story);
        (row.id, row.verdict)
    };
    assert_eq!(replay(&[Bug::ResumeSkipsChanged]), ("walk/not-sent".to_owned(), Verdict::Fail));
    assert_eq!(replay(&[]), ("x".to_owned(), Verdict::Pass));
}

/// A server that is wrong once, and then never again.
struct Once(Arc<AtomicBool>);

impl Defect for Once {
    fn response(&mut self, _: StreamId, response: &mut Response) -> bool {
        if !self.0.swap(true, Ordering::Relaxed) {
            response.nonce.clear();
        }
        true
    }
}

#[test]
fn a_violation_not_reproduced_three_times_is_only_noted() {
    let done = Arc::new(AtomicBool::new(false));
    let rows = walk(&[Variant::Sotw], 20, || Memory::new(Once(done.clone())));
    assert_eq!((rows[0].id.as_str(), rows[0].verdict), ("walk/all", Verdict::Pass));
    let why = rows[0].why.split("; ").last().expect("a note");
    assert_eq!(why, "did not come again three times: nonce sotw");
}
