//! Walks with clients: no complaint about correct clients, and the seeded defects that walks find.

use std::collections::BTreeSet;
use std::time::Duration;

use xds_conformance::client::ClientPeer;
use xds_conformance::client::memory::{ClientDefect, Faultless, Memory};
use xds_conformance::message::Variant;
use xds_conformance::report::Row;
use xds_conformance::run::Verdict;
use xds_conformance::walk::{self, ClientArena, ClientWalks, Limits};
use xds_machine::client::{Config, Dialect};
use xds_machine::message::Node;
use xds_machine::{Delta, Sotw};

use crate::client_defects::{Seeded, Wrong};
use crate::client_style::client_styles;
use crate::plain_client::PlainClient;

/// Walks with clients of this project in memory, a new one for each walk.
fn walk<D: ClientDefect + 'static>(number: usize, dialect: Dialect, defect: impl Fn() -> D + Sync) -> Vec<Row> {
    walk_with(number, |variant| {
        let config = Config::new(Node::new("client")).with_dialect(dialect);
        match variant {
            Variant::Sotw => Box::new(Memory::<Sotw, _>::new(config, defect())) as Box<dyn ClientPeer>,
            Variant::Delta => Box::new(Memory::<Delta, _>::new(config, defect())),
        }
    })
}

/// Walks with clients that `start` makes, a new one for each walk.
fn walk_with(number: usize, start: impl Fn(Variant) -> Box<dyn ClientPeer> + Sync) -> Vec<Row> {
    let start = |variant| Ok(start(variant));
    let arena = ClientArena::new(&start, "rds");
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let variants = vec![Variant::Sotw, Variant::Delta];
    let walks = ClientWalks { variants, types: names(&["cds", "eds"]), wildcard: names(&["cds"]), seed: 1 };
    let limits = Limits { walks: number, time: Duration::from_secs(600), steps: 40, workers: 1 };
    walk::run(&arena, &walks, limits).0
}

fn shown(rows: &[Row]) -> String {
    let row = |row: &Row| format!("{} {}\n{}", row.id, row.why, row.ladder.join("\n"));
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// Returns the rules that clients made by `start` break in walks.
pub(crate) fn rules_of(number: usize, start: impl Fn(Variant) -> Box<dyn ClientPeer> + Sync) -> BTreeSet<String> {
    let rows = walk_with(number, start);
    let failed = rows.iter().filter(|row| row.verdict == Verdict::Fail);
    failed.map(|row| row.id.trim_start_matches("walk/").to_owned()).collect()
}

#[test]
fn walks_report_no_violation_by_other_correct_clients() {
    for style in client_styles() {
        let start = |variant| Box::new(PlainClient::new(variant, style, &[])) as Box<dyn ClientPeer>;
        let rows = walk_with(100, start);
        assert_eq!((rows[0].id.as_str(), rows[0].verdict), ("walk/all", Verdict::Pass), "{style:?}\n{}", shown(&rows));
    }
}

#[test]
fn walks_report_no_violation_by_this_projects_client() {
    for (dialect, number) in
        [(Dialect::Spec, 4_000), (Dialect::Envoy, 400), (Dialect::Grpc, 400), (Dialect::Istio, 400)]
    {
        let rows = walk(number, dialect, || Faultless);
        assert_eq!((rows[0].id.as_str(), rows[0].verdict), ("walk/all", Verdict::Pass), "{dialect}\n{}", shown(&rows));
        assert!(!rows[0].why.contains(';'), "{}", rows[0].why);
    }
}

/// The rule by which walks find each seeded defect; empty if only the fixed cases find it: timers, TTLs, odd types and
/// contents, what is applied, and defects that send nothing wrong on the wire.
pub(crate) const FOUND: &[(Wrong, &str)] = &[
    (Wrong::NoNode, "node"),
    (Wrong::KeepsNonce, "first-request"),
    (Wrong::NewStreamKeepsError, "error-without-response"),
    (Wrong::AsksForNothing, "node"),
    (Wrong::LegacyForEver, "names"),
    (Wrong::LeavesAll, "names"),
    (Wrong::AckWithOldVersion, "ack-version"),
    (Wrong::AcksNothing, "not-answered"),
    (Wrong::AnswersFirstOnly, "not-answered"),
    (Wrong::NackHasNewVersion, "nack-version"),
    (Wrong::NackWithoutError, "bad-accepted"),
    (Wrong::NackHasVersionAtFirst, "nack-version"),
    (Wrong::ErrorStays, "error-again"),
    (Wrong::EmptyError, "nack-code"),
    (Wrong::RepeatsError, "error-again"),
    (Wrong::ForgetsVersion, ""),
    (Wrong::ClaimsNothing, ""),
    (Wrong::ClaimsRejected, "claims"),
    (Wrong::AcksDuplicates, ""),
    (Wrong::TakesUnrequested, "names-unwanted"),
    (Wrong::JudgesUnrequested, "error-again"),
    (Wrong::AcksUnknownTypes, ""),
    (Wrong::IgnoresAnyType, ""),
    (Wrong::CannotUnwrap, ""),
    (Wrong::NewNamesOnly, "names"),
    (Wrong::NeverUnsubscribes, "names-unwanted"),
    (Wrong::SilentOnceLeft, ""),
    (Wrong::NeverComesBackToName, "names"),
    (Wrong::ForgetsNonce, "nonce-latest"),
    (Wrong::OneNonce, "nonce-of-other-type"),
    (Wrong::SubscribesTwice, ""),
    (Wrong::NonceInSpontaneous, "answered-twice"),
    (Wrong::NeverDeletes, ""),
    (Wrong::RejectsEmpty, "good-rejected"),
    (Wrong::DeletesPartial, ""),
    (Wrong::RemovedForEver, "bad-accepted"),
    (Wrong::ClaimsRemoved, "claims"),
    (Wrong::NacksUnknownRemovals, "good-rejected"),
    (Wrong::NoTimer, ""),
    (Wrong::TimerForHeld, ""),
    (Wrong::ClaimsAlways, "claims-later"),
    (Wrong::ForgetsLateNames, "names"),
    (Wrong::AnswersOldStream, "nonce-of-other-stream"),
    (Wrong::NoBackoff, ""),
    (Wrong::NeverReturns, "gone"),
    (Wrong::DiesOfEmptyNames, "gone"),
    (Wrong::LastOnDemandOnly, "names"),
    (Wrong::AnswersTwice, "answered-twice"),
    (Wrong::NoTtl, ""),
    (Wrong::DropsOnReturn, ""),
    (Wrong::ReadsEight, "not-answered"),
    (Wrong::OneRequestAtATime, "names"),
];

#[test]
fn walks_find_exactly_the_expected_seeded_defects_of_clients() {
    let mut faults = Vec::new();
    for wrong in crate::client_cases::TABLE.iter().flat_map(|(_, sotw, delta)| [*sotw, *delta]) {
        assert!(FOUND.iter().any(|(known, _)| *known == wrong), "{wrong:?} is not in the table");
    }
    for (wrong, rule) in FOUND {
        let rows = walk(60, Dialect::Spec, || Seeded::new(*wrong));
        let failed = rows.iter().filter(|row| row.verdict == Verdict::Fail);
        let rules: BTreeSet<&str> = failed.map(|row| row.id.trim_start_matches("walk/")).collect();
        if if rule.is_empty() { !rules.is_empty() } else { !rules.contains(rule) } {
            faults.push(format!("{wrong:?}: {rule:?} is expected; {rules:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
