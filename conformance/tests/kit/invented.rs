//! Defects that no implementation is known to have, invented to test the kit, and the fixed cases or walks that find
//! each.

use std::collections::BTreeSet;

use xds_conformance::client::ClientPeer;
use xds_conformance::message::Variant;

use crate::bug::Bug;
use crate::client_bug::ClientBug;
use crate::client_style::ClientStyle;
use crate::plain::Plain;
use crate::plain_client::PlainClient;
use crate::{client_field_bugs, client_walks, field_bugs, walks};

/// How a defect is found: the cases of SotW and of delta that fail, and the rules that a hundred walks break.
type Found = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);

const SERVERS: &[(Bug, Found)] = &[
    (Bug::LeavingWildcardLeavesAll, (&[], &["delta/wildcard-four-steps"], &["not-sent"])),
    (
        Bug::WildcardIsASnapshot,
        (&["sotw/wildcard-legacy"], &["delta/wildcard-changes", "delta/reconnect-wildcard"], &["not-sent"]),
    ),
    (Bug::ClaimedNeverRemoved, (&[], &["delta/reconnect-wildcard"], &["not-removed"])),
    (
        Bug::NewestStreamOnly,
        (
            &["base/streams-apart", "base/hostile"],
            &["base/streams-apart", "base/hostile"],
            &["not-removed", "not-sent", "owed"],
        ),
    ),
    (Bug::OldContentNotSent, (&["base/push", "sotw/nack-then-change"], &["base/push"], &["not-sent"])),
    (
        Bug::ChangeLostBeforeAck,
        (&[], &["base/hot-name", "delta/remove-before-ack", "ads/no-wait-for-ack"], &["not-sent"]),
    ),
    (Bug::ResumeSkipsNew, (&[], &["delta/reconnect-wildcard"], &[])),
    (Bug::ResumeSkipsChanged, (&[], &["delta/reconnect-wildcard"], &[])),
    (
        Bug::NackStopsType,
        (
            &["sotw/nack-then-change", "sotw/nack-at-same-version"],
            &["delta/nack-then-change"],
            &["not-removed", "not-sent", "owed"],
        ),
    ),
    (Bug::RemovalLostAfterNack, (&[], &["delta/nack-then-change"], &["not-removed"])),
    (
        Bug::ShrinksNotRead,
        (
            &["sotw/left-name-changes", "sotw/come-back", "sotw/empty-after-names", "sotw/wildcard-after-name"],
            &[],
            &["not-sent", "owed", "unwanted"],
        ),
    ),
    (Bug::HalfRead, (&[], &[], &["unsubscribed-in-wildcard"])),
];

const CLIENTS: &[(ClientBug, Found)] = &[
    (ClientBug::TimerAfterLeaving, (&["c/missing-timeout"], &["c/missing-timeout"], &[])),
    (ClientBug::AnyResponseStopsTimers, (&["c/missing-timeout"], &["c/missing-timeout"], &[])),
    (ClientBug::TtlStays, (&["c/ttl-expires"], &["c/ttl-expires"], &[])),
    (ClientBug::BeatRejected, (&[], &["c/nack-then-good", "c/ttl-expires"], &[])),
    (ClientBug::WildcardLeftClaimed, (&[], &["c/delta-wildcard-name"], &[])),
    (
        ClientBug::RemovedUnsubscribed,
        (&[], &["c/delta-changes-only", "c/created-later", "c/delta-removed"], &["names"]),
    ),
    (
        ClientBug::SecondNackSilent,
        (
            &["c/nack", "c/duplicate-names", "c/any-type-mismatch"],
            &["c/nack", "c/duplicate-names"],
            &["ack-version", "not-answered"],
        ),
    ),
    (ClientBug::GoneStaysUnderWildcard, (&["c/wildcard-absent"], &["c/delta-wildcard-name"], &[])),
    (ClientBug::NackHasFirstVersion, (&["c/nack"], &[], &["nack-version"])),
    (
        ClientBug::RejectionUnsubscribes,
        (
            &["c/names-in-full"],
            &[
                "c/nack",
                "c/delta-changes-only",
                "c/first-request",
                "c/nack-keeps-old",
                "c/reconnect-irv",
                "c/reconnect-no-old-answers",
            ],
            &["names"],
        ),
    ),
];

fn fault(what: &str, [sotw, delta]: [Vec<String>; 2], walks: &BTreeSet<String>, expected: Found) -> Option<String> {
    let is = |found: &[String], named: &[&str]| found.iter().map(String::as_str).eq(named.iter().copied());
    let walked = walks.iter().cloned().collect::<Vec<_>>();
    let as_expected = is(&sotw, expected.0) && is(&delta, expected.1) && is(&walked, expected.2);
    (!as_expected).then(|| format!("{what}, (&{sotw:?}, &{delta:?}, &{walked:?})"))
}

#[test]
fn invented_server_defects_are_found_by_exactly_the_expected_cases_and_rules() {
    let of = |(bug, expected): &(Bug, Found)| {
        let cases = [Variant::Sotw, Variant::Delta].map(|variant| field_bugs::failures(&[*bug], variant));
        let rules = walks::rules_of(100, || Plain::with(&[*bug]));
        fault(&format!("{bug:?}"), cases, &rules, *expected)
    };
    let faults: Vec<String> = SERVERS.iter().filter_map(of).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn invented_client_defects_are_found_by_exactly_the_expected_cases_and_rules() {
    let of = |(bug, expected): &(ClientBug, Found)| {
        let cases = [Variant::Sotw, Variant::Delta].map(|variant| client_field_bugs::failures(*bug, variant));
        let start =
            |variant| Box::new(PlainClient::new(variant, ClientStyle::default(), &[*bug])) as Box<dyn ClientPeer>;
        fault(&format!("{bug:?}"), cases, &client_walks::rules_of(100, start), *expected)
    };
    let faults: Vec<String> = CLIENTS.iter().filter_map(of).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
