//! The bugs of clients of the field, one at a time: exactly the named cases fail, and without the bug none does.

use std::collections::BTreeSet;

use xds_conformance::client::run::{Settings, run};
use xds_conformance::message::Variant;
use xds_conformance::referee::Level;
use xds_conformance::report::{Glob, Row};
use xds_conformance::run::Verdict;

use crate::client_bug::ClientBug;
use crate::client_cases::{VARIANTS, settings};
use crate::client_style::{ClientStyle, client_styles};
use crate::plain_client::PlainClient;

fn play(variant: Variant, style: ClientStyle, bugs: &[ClientBug]) -> Vec<Row> {
    let mut client = PlainClient::new(variant, style, bugs);
    run(&mut client, &settings(variant), &mut |_| {}).expect("a client that asks").0
}

/// Returns the cases that a client with a bug fails, in one variant.
pub(crate) fn failures(bug: ClientBug, variant: Variant) -> Vec<String> {
    let rows = play(variant, ClientStyle::default(), &[bug]);
    let failed = rows.into_iter().filter(|row| row.verdict == Verdict::Fail);
    failed.map(|row| row.id.strip_prefix("client/").expect("the prefix").to_owned()).collect()
}

#[test]
fn no_case_fails_with_a_client_that_has_no_bug() {
    let mut faults = Vec::new();
    for style in client_styles() {
        for variant in VARIANTS {
            for row in play(variant, style, &[]) {
                // A client that claims nothing is not what the specification recommends.
                let chosen = style.claims_nothing && row.level != Level::Must;
                if row.verdict != Verdict::Pass && !chosen {
                    let (verdict, ladder) = (row.verdict.name(), row.ladder.join("\n  "));
                    faults.push(format!("{} {variant:?} {style:?} {verdict}: {}\n  {ladder}", row.id, row.why));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} false alarms:\n{}", faults.len(), faults.join("\n"));
}

/// A client that answers clusters once their endpoints have come; all other cases would wait for endpoints for ever.
#[test]
fn a_client_that_warms_clusters_has_to_read_on_before_it_answers() {
    for variant in VARIANTS {
        for (bugs, verdict) in [(&[][..], Verdict::Pass), (&[ClientBug::FullStopsReading], Verdict::Fail)] {
            let style = ClientStyle { warms: true, ..ClientStyle::default() };
            let mut client = PlainClient::new(variant, style, bugs);
            let settings = Settings { filter: Some(Glob::new("c/reads-on")), ..settings(variant) };
            let rows = run(&mut client, &settings, &mut |_| {}).expect("a client that asks").0;
            let [row] = &rows[..] else { panic!("{} rows", rows.len()) };
            assert_eq!(row.verdict, verdict, "{variant:?} {bugs:?}: {}\n  {}", row.why, row.ladder.join("\n  "));
        }
    }
}

/// The bugs, and the cases that fail: of SotW, and of delta.
const TABLE: &[(ClientBug, &[&str], &[&str])] = &[
    (
        ClientBug::EmptyListOnNewStream,
        &["c/unsubscribe-said", "c/nothing-wanted"],
        &[
            "c/unsubscribe-said",
            "c/come-back",
            "c/delta-changes-only",
            "c/created-later",
            "c/delta-removed-unknown",
            "c/nothing-wanted",
            "c/delta-removed",
        ],
    ),
    (ClientBug::VersionForgotten, &["c/reconnect-version"], &[]),
    (
        ClientBug::OldNonceOnNewStream,
        &["c/first-request", "c/reconnect-version", "c/reconnect-no-old-answers"],
        &["c/first-request", "c/reconnect-no-old-answers"],
    ),
    (ClientBug::AnswersOnNewStream, &["c/reconnect-no-old-answers"], &["c/reconnect-no-old-answers"]),
    (ClientBug::NonceForgottenWithNames, &["c/nonce-latest"], &[]),
    (
        ClientBug::TypeForgottenWithNames,
        &["c/unsubscribe-said", "c/last-name-answered", "c/nonce-latest", "c/nothing-wanted"],
        &["c/unsubscribe-said", "c/last-name-answered", "c/nothing-wanted"],
    ),
    (
        ClientBug::ComesBackSilent,
        &["c/unsubscribe-said", "c/come-back-held"],
        &["c/unsubscribe-said", "c/come-back-held"],
    ),
    (
        ClientBug::TimerForWhatCame,
        &["c/come-back-held", "c/missing-timeout"],
        &["c/come-back-held", "c/missing-timeout"],
    ),
    (ClientBug::TimerForHeld, &["c/timer-not-for-held"], &["c/timer-not-for-held"]),
    (ClientBug::TimerOfFirstRequestOnly, &["c/missing-timeout"], &["c/missing-timeout"]),
    (
        ClientBug::StopsReading,
        &[
            "c/ack-every",
            "c/reads-on",
            "c/nack",
            "c/nack-then-good",
            "c/error-only-in-nack",
            "c/names-in-full",
            "c/wildcard-absent",
            "c/partial-absent",
            "c/created-later",
            "c/reconnect-version",
            "c/missing-timeout",
        ],
        &[
            "c/ack-every",
            "c/reads-on",
            "c/nack",
            "c/nack-then-good",
            "c/error-only-in-nack",
            "c/created-later",
            "c/ttl-expires",
            "c/delta-wildcard-name",
            "c/reconnect-irv",
            "c/missing-timeout",
        ],
    ),
    (ClientBug::EmptyNameEnds, &["c/hostile"], &["c/hostile"]),
    (
        ClientBug::EmptyRejected,
        &["c/nack-then-good", "c/full-state-empty", "c/wildcard-absent", "c/partial-absent", "c/created-later"],
        &[],
    ),
    (ClientBug::OlderVersionNotRead, &["c/cut-anywhere"], &[]),
    (ClientBug::WildcardVersionKept, &[], &["c/delta-wildcard-name"]),
    (ClientBug::RejectedCounts, &[], &["c/nack-keeps-old", "c/reconnect-irv"]),
    (
        ClientBug::WildcardListsNames,
        &["c/unsubscribe-said", "c/ondemand"],
        &["c/unsubscribe-said", "c/delta-wildcard-name", "c/ondemand"],
    ),
    (ClientBug::UnaskedAskedFor, &["c/unrequested", "c/unsubscribe-said"], &["c/unrequested", "c/unsubscribe-said"]),
    (
        ClientBug::LeftAskedForAgain,
        &["c/unsubscribe-said", "c/reconnect-names"],
        &["c/unrequested", "c/unsubscribe-said", "c/reconnect-names", "c/ondemand"],
    ),
    (
        ClientBug::ComesBackUnsaid,
        &["c/names-in-full", "c/come-back"],
        &["c/come-back", "c/delta-changes-only", "c/delta-wildcard-name"],
    ),
    (ClientBug::DuplicatesAccepted, &["c/duplicate-names"], &["c/duplicate-names"]),
    (
        ClientBug::RejectedNotAskedAgain,
        &["c/first-request", "c/nack-keeps-old", "c/reconnect-version", "c/reconnect-no-old-answers", "c/cut-anywhere"],
        &["c/first-request", "c/nack-keeps-old", "c/reconnect-irv", "c/reconnect-no-old-answers", "c/cut-anywhere"],
    ),
    (ClientBug::OnDemandNotTaken, &["c/ondemand"], &["c/delta-wildcard-name", "c/ondemand"]),
    (ClientBug::LastOnDemandOnly, &["c/ondemand"], &["c/delta-changes-only", "c/ondemand"]),
    (ClientBug::LeftClaimed, &[], &["c/unrequested", "c/delta-wildcard-name", "c/reconnect-irv"]),
    (ClientBug::ClaimsNothing, &[], &["c/delta-wildcard-name"]),
    (ClientBug::NeverComesBack, &["c/unrequested"], &["c/unrequested"]),
    (
        ClientBug::NamesReplaceWildcard,
        &["c/wildcard-form", "c/ondemand"],
        &["c/delta-changes-only", "c/wildcard-form", "c/delta-wildcard-name", "c/ondemand"],
    ),
    (
        ClientBug::LastNameUnsaid,
        &["c/unsubscribe-said", "c/last-name-answered", "c/nonce-latest", "c/nothing-wanted"],
        &["c/unsubscribe-said", "c/last-name-answered", "c/nothing-wanted"],
    ),
    (ClientBug::RejectionDropsOld, &["c/nack-keeps-old"], &["c/nack-keeps-old"]),
    (ClientBug::AbsentIsMissing, &["c/partial-absent", "c/new-name-not-deleted", "c/timer-not-for-held"], &[]),
    (ClientBug::WrapperRejected, &["c/nack-then-good", "c/wrapped", "c/ttl-expires"], &[]),
    (ClientBug::AnyTypeNotCompared, &["c/any-type-mismatch"], &["c/any-type-mismatch"]),
    (ClientBug::TimerTooLong, &["c/missing-timeout"], &["c/missing-timeout"]),
    (ClientBug::CodeZero, &["c/nack-code"], &["c/nack-code"]),
    (
        ClientBug::UnknownTypeAcked,
        &["c/ack-every", "c/first-request", "c/unknown-type"],
        &["c/ack-every", "c/first-request", "c/unknown-type"],
    ),
    (ClientBug::UnknownTypeEnds, &["c/unknown-type"], &["c/unknown-type"]),
    (ClientBug::DeafAfterUnknownType, &["c/ack-every", "c/unknown-type"], &["c/ack-every", "c/unknown-type"]),
    (
        ClientBug::LateNamesForgotten,
        &["c/names-in-full", "c/ondemand"],
        &["c/delta-changes-only", "c/delta-wildcard-name", "c/ondemand"],
    ),
    (ClientBug::NoBackoff, &["c/reconnect-backoff"], &["c/reconnect-backoff"]),
    (ClientBug::RemovedClaimed, &[], &["c/delta-wildcard-name", "c/delta-removed"]),
    (ClientBug::ClaimsLater, &[], &["c/reconnect-irv"]),
    (
        ClientBug::ErrorWithAck,
        &["c/nack-then-good", "c/error-only-in-nack", "c/reconnect-no-old-answers"],
        &["c/nack-then-good", "c/error-only-in-nack", "c/reconnect-no-old-answers"],
    ),
    (ClientBug::ErrorRepeated, &["c/error-only-in-nack"], &["c/error-only-in-nack", "c/first-request"]),
    (ClientBug::NonceAcceptedLast, &["c/nonce-latest"], &[]),
    (
        ClientBug::NewNamesOnly,
        &[
            "c/error-only-in-nack",
            "c/unrequested",
            "c/names-in-full",
            "c/nonce-latest",
            "c/nonce-per-type",
            "c/new-name-not-deleted",
            "c/wildcard-form",
            "c/reconnect-names",
            "c/ondemand",
            "c/hostile",
        ],
        &[],
    ),
    (
        ClientBug::GoneStays,
        &["c/full-state-absent", "c/full-state-empty", "c/wildcard-absent", "c/created-later"],
        &["c/created-later", "c/delta-wildcard-name", "c/delta-removed"],
    ),
    (ClientBug::ExpiredStays, &["c/ttl-expires"], &["c/ttl-expires"]),
    (ClientBug::NackHasNewVersion, &["c/nack-first", "c/nack"], &[]),
    (ClientBug::NodeOnce, &["c/node"], &["c/node"]),
];

#[test]
fn with_each_bug_of_a_client_exactly_the_named_cases_fail() {
    let mut faults = Vec::new();
    for (bug, sotw, delta) in TABLE {
        for (variant, named) in [(Variant::Sotw, *sotw), (Variant::Delta, *delta)] {
            let failed = failures(*bug, variant);
            if failed != named {
                faults.push(format!("{bug:?} {variant:?}: {failed:?}"));
            }
        }
    }
    let all: BTreeSet<ClientBug> = TABLE.iter().map(|(bug, ..)| *bug).collect();
    assert_eq!(all.len(), TABLE.len());
    assert!(faults.is_empty(), "other cases than the named ones:\n{}", faults.join("\n"));
}
