//! Every short walk: no complaint about correct peers, and the seeded defects that are found.

use std::collections::BTreeSet;
use std::time::Duration;

use xds_conformance::client::ClientPeer;
use xds_conformance::client::memory as client_memory;
use xds_conformance::memory::{Defect, Faultless, Memory};
use xds_conformance::message::Variant;
use xds_conformance::report::Row;
use xds_conformance::run::{Peer, Verdict};
use xds_conformance::walk::{self, Arena, ClientArena, EveryClientWalk, EveryWalk, Limits};
use xds_machine::client::Config;
use xds_machine::message::Node;
use xds_machine::{Delta, Sotw};

use crate::client_cases::VARIANTS;
use crate::client_defects;
use crate::client_style::client_styles;
use crate::defects::{Seeded, Wrong};
use crate::plain::Plain;
use crate::plain_client::PlainClient;
use crate::style::{Style, styles};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn limits(time: Duration) -> Limits {
    Limits { walks: 0, time, steps: 0, workers: 1 }
}

const LONG: Duration = Duration::from_secs(600);

/// Takes all walks with servers that `connect` makes, a new one for each.
fn walk<P: Peer + 'static>(longest: usize, connect: impl Fn() -> P + Sync) -> Vec<Row> {
    let connect = |_| Ok(Box::new(connect()) as Box<dyn Peer>);
    let arena = Arena::new(&connect, "k-", None);
    let walks = EveryWalk::new(&VARIANTS, &names(&["cds", "eds"]), &names(&["cds"]), true, longest);
    walk::run(&arena, &walks, limits(LONG)).0
}

fn of_memory<D: Defect + 'static>(defect: D) -> Memory<D> {
    Memory::new(defect)
}

/// Takes all walks with clients that `start` makes, a new one for each.
fn walk_client(longest: usize, start: impl Fn(Variant) -> Box<dyn ClientPeer> + Sync) -> Vec<Row> {
    let start = |variant| Ok(start(variant));
    let arena = ClientArena::new(&start, "rds");
    let walks = EveryClientWalk::new(&VARIANTS, &names(&["cds", "eds"]), &names(&["cds"]), longest);
    walk::run(&arena, &walks, limits(LONG)).0
}

fn ours<D: client_memory::ClientDefect + 'static>(variant: Variant, defect: D) -> Box<dyn ClientPeer> {
    let config = Config::new(Node::new("client"));
    match variant {
        Variant::Sotw => Box::new(client_memory::Memory::<Sotw, _>::new(config, defect)),
        Variant::Delta => Box::new(client_memory::Memory::<Delta, _>::new(config, defect)),
    }
}

fn assert_silent(rows: &[Row], what: &str) {
    let row = |row: &Row| format!("{} {}\n{}", row.id, row.why, row.ladder.join("\n"));
    let shown = rows.iter().map(row).collect::<Vec<_>>().join("\n");
    assert_eq!((rows[0].id.as_str(), rows[0].verdict), ("walk/all", Verdict::Pass), "{what}\n{shown}");
    assert!(!rows[0].why.contains(';') && !rows[0].why.contains("the time"), "{what}: {}", rows[0].why);
}

fn rules(rows: &[Row]) -> BTreeSet<&str> {
    let failed = rows.iter().filter(|row| row.verdict == Verdict::Fail);
    failed.map(|row| row.id.trim_start_matches("walk/")).collect()
}

#[test]
fn short_walks_report_no_violation_by_a_correct_server() {
    let rows = walk(4, || of_memory(Faultless));
    assert_silent(&rows, "this project's");
    assert!(rows[0].why.ends_with("all sequences of up to 4 operations"), "{}", rows[0].why);
    assert_silent(&walk(3, || Plain::new(Style::default())), "another");
    for style in styles() {
        assert_silent(&walk(2, || Plain::new(style)), &format!("{style:?}"));
    }
}

#[test]
fn short_walks_report_no_violation_by_a_correct_client() {
    assert_silent(&walk_client(5, |variant| ours(variant, client_memory::Faultless)), "this project's");
    for style in client_styles() {
        let start = |variant| Box::new(PlainClient::new(variant, style, &[])) as Box<dyn ClientPeer>;
        assert_silent(&walk_client(3, start), &format!("{style:?}"));
    }
}

#[test]
fn short_walks_cut_off_by_the_time_limit_are_reported_as_inconclusive() {
    let connect = |_| Ok(Box::new(of_memory(Faultless)) as Box<dyn Peer>);
    let arena = Arena::new(&connect, "k-", None);
    let walks = EveryWalk::new(&VARIANTS, &names(&["cds"]), &names(&["cds"]), true, 2);
    let rows = walk::run(&arena, &walks, limits(Duration::ZERO)).0;
    assert!(rows[0].why.contains("all sequences of up to 2 operations, of which there are "), "{}", rows[0].why);
    assert!(
        rows[0].why.ends_with(": the time was over") && rows[0].verdict == Verdict::Inconclusive,
        "{}",
        rows[0].why
    );
}

#[test]
fn a_violation_is_reported_with_the_shortest_story() {
    let rows = walk(3, || of_memory(Seeded::new(Wrong::IgnoresResubscribe)));
    let row = rows.iter().find(|row| row.verdict == Verdict::Fail).expect("the violation");
    assert!(row.why.contains(" begin as one that failed)"), "{}", row.why);
    let story: Vec<&str> =
        row.ladder.iter().map(String::as_str).take_while(|line| !line.starts_with("-- what")).collect();
    let shortest = ["-- the story", "   world put cds a 1", "   C> cds +a resume", "   C> cds +a resume", "   rest"];
    assert_eq!(story, shortest);
}

/// The rules by which all walks of up to three operations find each seeded defect of servers; empty if more operations
/// are needed.
const FOUND: &[(Wrong, &[&str])] = &[
    (Wrong::ServesNothing, &["not-sent", "owed", "unanswered"]),
    (Wrong::NeverPushes, &["not-removed", "not-sent", "owed"]),
    (Wrong::EmptyNonces, &["nonce"]),
    (Wrong::OneVersion, &["version"]),
    (Wrong::OtherAnyType, &["any-type"]),
    (Wrong::SaysTwice, &["twice"]),
    (Wrong::NeedsNodeAlways, &["not-sent", "owed", "unanswered", "unsubscribed-in-wildcard"]),
    (Wrong::OneTypeAStream, &[]),
    (Wrong::DiesOfUnknownTypes, &[]),
    (Wrong::NeedsTypeUrl, &[]),
    (Wrong::DiesOfNacks, &["not-removed", "not-sent", "owed", "unanswered"]),
    (Wrong::DropsManyNames, &[]),
    (Wrong::DiesOfManyNames, &[]),
    (Wrong::ResendsOnAck, &["needless"]),
    (Wrong::ResendsOnNack, &[]),
    (Wrong::GivesUpOnNack, &["not-removed", "not-sent", "owed", "unanswered"]),
    (Wrong::ComparesVersions, &["needless"]),
    (Wrong::ResendsOnNackOfItsVersion, &[]),
    (Wrong::IgnoresNamesOnAck, &["needless"]),
    (Wrong::IgnoresNamesOnNack, &[]),
    (Wrong::OneRequestPerNonce, &["not-sent", "owed", "unanswered", "unsubscribed-in-wildcard"]),
    (Wrong::WildcardHidesNames, &[]),
    (Wrong::ResendsOnFewerNames, &["needless"]),
    (Wrong::NeverForgetsNames, &["needless"]),
    (Wrong::IgnoresEmptyLists, &["needless"]),
    (Wrong::NoLegacyWildcard, &["not-sent"]),
    (Wrong::LiteralWildcard, &["full-state", "not-removed", "not-sent", "unsubscribed-in-wildcard"]),
    (Wrong::EmptyMeansAll, &["needless", "unwanted"]),
    (Wrong::LateWildcardIgnored, &["not-removed", "not-sent", "unsubscribed-in-wildcard"]),
    (Wrong::ForgetsTheMissing, &[]),
    (Wrong::PartOfFullState, &["full-state", "not-sent", "owed", "unsubscribed-in-wildcard"]),
    (Wrong::NeverRemoves, &["not-removed"]),
    (Wrong::AnswersStale, &["needless"]),
    (Wrong::LosesStaleNames, &[]),
    (Wrong::DropsOldNonces, &[]),
    (Wrong::TrustsVersions, &[]),
    (Wrong::DropsChanges, &[]),
    (Wrong::NoNotFound, &["not-removed", "unanswered"]),
    (Wrong::IgnoresResubscribe, &["not-removed", "not-sent", "owed", "unanswered"]),
    (Wrong::TellsMissingOnce, &["not-removed", "unanswered"]),
    (Wrong::AnswersUnsubscribe, &["needless"]),
    (Wrong::DiesOfPhantoms, &["not-sent", "owed", "unanswered"]),
    (Wrong::IgnoresUnsubscribe, &["unsubscribed-in-wildcard"]),
    (Wrong::WildcardForEver, &[]),
    (Wrong::NoNamesMeansAll, &[]),
    (Wrong::ResendsAllOnChange, &["needless", "not-removed", "not-sent"]),
    (Wrong::LosesRemovalsBeforeAck, &["not-removed"]),
    (Wrong::DropsStale, &[]),
    (Wrong::DropsWhileWaiting, &["not-sent", "owed", "unanswered", "unsubscribed-in-wildcard"]),
    (Wrong::IgnoresClaims, &[]),
    (Wrong::DropsClaims, &[]),
    (Wrong::ForgetsClaimsOfTheWildcard, &[]),
    (Wrong::WaitsForClusters, &[]),
    (Wrong::ClustersLast, &[]),
    (Wrong::NoWarming, &["not-removed", "not-sent", "owed", "unanswered", "unsubscribed-in-wildcard"]),
    (Wrong::NoBeats, &["not-removed", "unanswered"]),
    (Wrong::NeverWraps, &[]),
    (Wrong::NoAliases, &[]),
    (Wrong::NoGlobs, &[]),
    (Wrong::WildcardIsASnapshot, &["not-removed", "not-sent"]),
    (Wrong::SendsTheNewestChange, &[]),
    (Wrong::ReadsNamesAfterAck, &[]),
    (Wrong::HoldsAllBehindClusters, &[]),
    (Wrong::ClustersAlwaysFirst, &[]),
    (Wrong::BeatsWait, &[]),
];

#[test]
fn short_walks_find_exactly_the_expected_seeded_defects_of_servers() {
    let mut faults = Vec::new();
    for (wrong, found) in FOUND {
        let rows = walk(3, || of_memory(Seeded::new(*wrong)));
        if rules(&rows) != found.iter().copied().collect() {
            faults.push(format!("{wrong:?}: {:?}", rules(&rows)));
        }
    }
    assert_eq!(FOUND.len(), crate::walks::FOUND.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The rules by which all walks of up to three operations find each seeded defect of clients.
const FOUND_OF_CLIENTS: &[(client_defects::Wrong, &[&str])] = &[
    (client_defects::Wrong::NoNode, &["node"]),
    (client_defects::Wrong::KeepsNonce, &[]),
    (client_defects::Wrong::NewStreamKeepsError, &[]),
    (client_defects::Wrong::AsksForNothing, &["node"]),
    (client_defects::Wrong::LegacyForEver, &["names", "names-unwanted"]),
    (client_defects::Wrong::LeavesAll, &[]),
    (client_defects::Wrong::AckWithOldVersion, &["ack-version"]),
    (client_defects::Wrong::AcksNothing, &["not-answered"]),
    (client_defects::Wrong::AnswersFirstOnly, &["not-answered"]),
    (client_defects::Wrong::NackHasNewVersion, &["nack-version"]),
    (client_defects::Wrong::NackWithoutError, &["bad-accepted"]),
    (client_defects::Wrong::NackHasVersionAtFirst, &["nack-version"]),
    (client_defects::Wrong::ErrorStays, &["error-again"]),
    (client_defects::Wrong::EmptyError, &["nack-code"]),
    (client_defects::Wrong::RepeatsError, &["error-again", "error-without-response"]),
    (client_defects::Wrong::ForgetsVersion, &[]),
    (client_defects::Wrong::ClaimsNothing, &[]),
    (client_defects::Wrong::ClaimsRejected, &["claims"]),
    (client_defects::Wrong::AcksDuplicates, &[]),
    (client_defects::Wrong::TakesUnrequested, &["names-unwanted"]),
    (client_defects::Wrong::JudgesUnrequested, &["error-again"]),
    (client_defects::Wrong::AcksUnknownTypes, &[]),
    (client_defects::Wrong::IgnoresAnyType, &[]),
    (client_defects::Wrong::CannotUnwrap, &[]),
    (client_defects::Wrong::NewNamesOnly, &["names"]),
    (client_defects::Wrong::NeverUnsubscribes, &["names-unwanted"]),
    (client_defects::Wrong::SilentOnceLeft, &[]),
    (client_defects::Wrong::NeverComesBackToName, &[]),
    (client_defects::Wrong::ForgetsNonce, &["nonce-latest"]),
    (client_defects::Wrong::OneNonce, &["answered-twice", "error-again", "nack-version"]),
    (client_defects::Wrong::SubscribesTwice, &["names-unwanted"]),
    (client_defects::Wrong::NonceInSpontaneous, &["answered-twice"]),
    (client_defects::Wrong::NeverDeletes, &[]),
    (client_defects::Wrong::RejectsEmpty, &["error-again", "good-rejected"]),
    (client_defects::Wrong::DeletesPartial, &[]),
    (client_defects::Wrong::RemovedForEver, &[]),
    (client_defects::Wrong::ClaimsRemoved, &["claims"]),
    (client_defects::Wrong::NacksUnknownRemovals, &["good-rejected"]),
    (client_defects::Wrong::NoTimer, &[]),
    (client_defects::Wrong::TimerForHeld, &[]),
    (client_defects::Wrong::ClaimsAlways, &["claims-later"]),
    (client_defects::Wrong::ForgetsLateNames, &[]),
    (client_defects::Wrong::AnswersOldStream, &["nonce-of-other-stream"]),
    (client_defects::Wrong::NoBackoff, &[]),
    (client_defects::Wrong::NeverReturns, &["gone"]),
    (client_defects::Wrong::DiesOfEmptyNames, &["gone"]),
    (client_defects::Wrong::LastOnDemandOnly, &["names"]),
    (client_defects::Wrong::AnswersTwice, &["answered-twice", "error-again"]),
    (client_defects::Wrong::NoTtl, &[]),
    (client_defects::Wrong::DropsOnReturn, &[]),
    (client_defects::Wrong::ReadsEight, &[]),
    (client_defects::Wrong::OneRequestAtATime, &[]),
];

#[test]
fn short_walks_find_exactly_the_expected_seeded_defects_of_clients() {
    let mut faults = Vec::new();
    for (wrong, found) in FOUND_OF_CLIENTS {
        let rows = walk_client(3, |variant| ours(variant, client_defects::Seeded::new(*wrong)));
        if rules(&rows) != found.iter().copied().collect() {
            faults.push(format!("{wrong:?}: {:?}", rules(&rows)));
        }
    }
    assert_eq!(FOUND_OF_CLIENTS.len(), crate::client_walks::FOUND.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
