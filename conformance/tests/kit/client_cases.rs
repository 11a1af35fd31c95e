//! Every fixed case for clients passes with this project's client, and fails with a client that has the defect it is
//! for.

use std::collections::{BTreeMap, BTreeSet};

use xds_conformance::client::memory::{ClientDefect, Faultless, Memory};
use xds_conformance::client::peer::ClientPeer;
use xds_conformance::client::run::{Settings, run};
use xds_conformance::client::suite::CLIENT;
use xds_conformance::message::Variant;
use xds_conformance::referee::Level;
use xds_conformance::report::Glob;
use xds_conformance::report::Row;
use xds_conformance::run::Verdict;
use xds_machine::client::{Config, Dialect};
use xds_machine::message::Node;
use xds_machine::{Delta, Sotw};

use crate::client_defects::{Seeded, Wrong};

pub(crate) const VARIANTS: [Variant; 2] = [Variant::Sotw, Variant::Delta];

pub(crate) fn settings(variant: Variant) -> Settings {
    let all = ["sotw", "delta", "wildcard", "names", "ttl", "ondemand", "federation"];
    Settings {
        variant,
        types: Vec::new(),
        wildcard: vec!["cds".into(), "lds".into()],
        features: BTreeSet::from(all.map(String::from)),
        unsupported: BTreeMap::new(),
        filter: None,
        patience: None,
        reference: false,
        separate: false,
    }
}

pub(crate) fn play(settings: &Settings, config: Config, defect: impl ClientDefect + 'static) -> Vec<Row> {
    let mut peer: Box<dyn ClientPeer> = match settings.variant {
        Variant::Sotw => Box::new(Memory::<Sotw, _>::new(config, defect)),
        Variant::Delta => Box::new(Memory::<Delta, _>::new(config, defect)),
    };
    run(peer.as_mut(), settings, &mut |_| {}).expect("a client that asks").0
}

fn config() -> Config {
    Config::new(Node::new("client"))
}

fn faults(rows: &[Row], what: &str) -> Vec<String> {
    let wrong = rows.iter().filter(|row| row.verdict != Verdict::Pass);
    wrong
        .map(|row| {
            let verdict = row.verdict.name();
            format!("{what} {} {:?} {verdict}: {}\n  {}", row.id, row.variant, row.why, row.ladder.join("\n  "))
        })
        .collect()
}

#[test]
fn every_case_passes_with_this_projects_client() {
    let mut all = Vec::new();
    for variant in VARIANTS {
        all.extend(faults(&play(&settings(variant), config(), Faultless), ""));
    }
    assert!(all.is_empty(), "{} failures:\n{}", all.len(), all.join("\n"));
}

#[test]
fn every_case_of_level_must_passes_with_each_dialect_of_this_projects_client() {
    let mut all = Vec::new();
    for dialect in [Dialect::Envoy, Dialect::Grpc, Dialect::Istio] {
        for variant in VARIANTS {
            let rows = play(&settings(variant), config().with_dialect(dialect), Faultless);
            // Dialects differ in what the specification only recommends, and in what the client claims.
            let differs = |row: &Row| {
                row.level != Level::Must || row.verdict == Verdict::Unsupported || row.id == "client/c/ttl-expires"
            };
            let rows: Vec<Row> = rows.into_iter().filter(|row| !differs(row)).collect();
            all.extend(faults(&rows, &dialect.to_string()));
        }
    }
    assert!(all.is_empty(), "{} failures:\n{}", all.len(), all.join("\n"));
}

/// The defect that each case is for, of SotW and of delta. Cases that only inform are not here.
pub(crate) const TABLE: &[(&str, Wrong, Wrong)] = &[
    ("c/node", Wrong::NoNode, Wrong::NoNode),
    ("c/first-request", Wrong::KeepsNonce, Wrong::NewStreamKeepsError),
    ("c/nothing-wanted", Wrong::AsksForNothing, Wrong::AsksForNothing),
    ("c/wildcard-form", Wrong::LegacyForEver, Wrong::LeavesAll),
    ("c/ack", Wrong::AckWithOldVersion, Wrong::AcksNothing),
    ("c/ack-every", Wrong::AnswersTwice, Wrong::AnswersFirstOnly),
    ("c/reads-on", Wrong::ReadsEight, Wrong::ReadsEight),
    ("c/reads-while-warming", Wrong::OneRequestAtATime, Wrong::OneRequestAtATime),
    ("c/nack", Wrong::NackHasNewVersion, Wrong::NackWithoutError),
    ("c/nack-first", Wrong::NackHasVersionAtFirst, Wrong::NackHasVersionAtFirst),
    ("c/nack-then-good", Wrong::ErrorStays, Wrong::ErrorStays),
    ("c/nack-code", Wrong::EmptyError, Wrong::EmptyError),
    ("c/error-only-in-nack", Wrong::RepeatsError, Wrong::RepeatsError),
    ("c/nack-keeps-old", Wrong::ClaimsRejected, Wrong::ClaimsRejected),
    ("c/duplicate-names", Wrong::AcksDuplicates, Wrong::AcksDuplicates),
    ("c/unrequested", Wrong::TakesUnrequested, Wrong::TakesUnrequested),
    ("c/unrequested-bad", Wrong::JudgesUnrequested, Wrong::JudgesUnrequested),
    ("c/unknown-type", Wrong::AcksUnknownTypes, Wrong::AcksUnknownTypes),
    ("c/any-type-mismatch", Wrong::IgnoresAnyType, Wrong::IgnoresAnyType),
    ("c/wrapped", Wrong::CannotUnwrap, Wrong::CannotUnwrap),
    ("c/names-in-full", Wrong::NewNamesOnly, Wrong::NewNamesOnly),
    ("c/unsubscribe-said", Wrong::NeverUnsubscribes, Wrong::NeverUnsubscribes),
    ("c/last-name-answered", Wrong::SilentOnceLeft, Wrong::SilentOnceLeft),
    ("c/come-back", Wrong::NeverComesBackToName, Wrong::NeverComesBackToName),
    ("c/nonce-latest", Wrong::ForgetsNonce, Wrong::ForgetsNonce),
    ("c/nonce-per-type", Wrong::OneNonce, Wrong::OneNonce),
    ("c/delta-changes-only", Wrong::SubscribesTwice, Wrong::NonceInSpontaneous),
    ("c/delta-wildcard-name", Wrong::LegacyForEver, Wrong::ClaimsNothing),
    ("c/full-state-absent", Wrong::NeverDeletes, Wrong::NeverDeletes),
    ("c/full-state-empty", Wrong::RejectsEmpty, Wrong::RejectsEmpty),
    ("c/wildcard-absent", Wrong::NeverDeletes, Wrong::NeverDeletes),
    ("c/partial-absent", Wrong::DeletesPartial, Wrong::DeletesPartial),
    ("c/new-name-not-deleted", Wrong::DeletesPartial, Wrong::DeletesPartial),
    ("c/created-later", Wrong::RemovedForEver, Wrong::RemovedForEver),
    ("c/delta-removed", Wrong::ClaimsRemoved, Wrong::ClaimsRemoved),
    ("c/delta-removed-unknown", Wrong::NacksUnknownRemovals, Wrong::NacksUnknownRemovals),
    ("c/come-back-held", Wrong::DropsOnReturn, Wrong::DropsOnReturn),
    ("c/missing-timeout", Wrong::NoTimer, Wrong::NoTimer),
    ("c/timer-not-for-held", Wrong::TimerForHeld, Wrong::TimerForHeld),
    ("c/reconnect-version", Wrong::ForgetsVersion, Wrong::ForgetsVersion),
    ("c/reconnect-irv", Wrong::ClaimsAlways, Wrong::ClaimsAlways),
    ("c/reconnect-names", Wrong::ForgetsLateNames, Wrong::ForgetsLateNames),
    ("c/reconnect-no-old-answers", Wrong::AnswersOldStream, Wrong::AnswersOldStream),
    ("c/reconnect-backoff", Wrong::NoBackoff, Wrong::NoBackoff),
    ("c/cut-anywhere", Wrong::NeverReturns, Wrong::NeverReturns),
    ("c/hostile", Wrong::DiesOfEmptyNames, Wrong::DiesOfEmptyNames),
    ("c/ondemand", Wrong::ForgetsLateNames, Wrong::LastOnDemandOnly),
    ("c/ttl-expires", Wrong::NoTtl, Wrong::NoTtl),
];

#[test]
fn every_case_fails_with_the_defect_that_it_is_for() {
    let mut faults = Vec::new();
    for variant in VARIANTS {
        for (id, _) in CLIENT {
            let settings = Settings { filter: Some(Glob::new(*id)), ..settings(variant) };
            let Some((_, sotw, delta)) = TABLE.iter().find(|(case, ..)| case == id) else { continue };
            let wrong = if variant == Variant::Sotw { *sotw } else { *delta };
            for row in play(&settings, config(), Seeded::new(wrong)) {
                if row.verdict != Verdict::Fail {
                    let (verdict, ladder) = (row.verdict.name(), row.ladder.join("\n  "));
                    faults.push(format!("{id} {variant:?} {wrong:?}: {verdict} {}\n  {ladder}", row.why));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} not seen:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_case_has_a_seeded_defect_unless_its_level_is_may() {
    for variant in VARIANTS {
        for story in xds_conformance::client::suite::client(variant).expect("stories") {
            let id = story.id.strip_prefix("client/").expect("the prefix");
            assert_eq!(TABLE.iter().any(|(case, ..)| *case == id), story.level != Level::May, "{id}");
        }
    }
    assert_eq!(CLIENT.len(), 51);
}

#[test]
fn cases_of_level_may_never_fail_with_a_seeded_defect() {
    for variant in VARIANTS {
        for (_, sotw, delta) in TABLE {
            let wrong = if variant == Variant::Sotw { *sotw } else { *delta };
            for row in play(&settings(variant), config(), Seeded::new(wrong)) {
                assert!(row.level != Level::May || row.verdict != Verdict::Fail, "{} {wrong:?}: {}", row.id, row.why);
            }
        }
    }
}

#[test]
fn every_file_is_a_case_for_clients_and_every_case_is_named_by_its_file() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cases/client/c");
    let files = std::fs::read_dir(folder).expect("the folder").map(|file| {
        let path = file.expect("an entry").path();
        format!("c/{}", path.file_stem().expect("a name").to_string_lossy())
    });
    let cases: BTreeSet<String> = CLIENT.iter().map(|(id, _)| (*id).to_owned()).collect();
    assert_eq!(files.collect::<BTreeSet<_>>(), cases);
    for variant in VARIANTS {
        for story in xds_conformance::client::suite::client(variant).expect("stories") {
            assert!(cases.contains(story.id.strip_prefix("client/").expect("the prefix")), "{}", story.id);
        }
    }
}
