//! A server that imitates what go-control-plane (2b88c16, 2026-08) was observed to do, each with its linear and its snapshot
//! cache: the kit finds exactly what breaks the specification, and complains of none of its choices.

use std::collections::{BTreeMap, BTreeSet};

use xds_conformance::memory::{Defect, Memory};
use xds_conformance::message::{Request, Response, Variant};
use xds_conformance::run::{Op, StreamId, Verdict};
use xds_conformance::suite;

use crate::defects::{Seeded, Wrong};

/// What delta streams are not told: that a name which they never had does not exist.
#[derive(Default)]
struct SilentAboutMissing {
    had: BTreeMap<(StreamId, String), BTreeSet<String>>,
    wildcard: BTreeSet<(StreamId, String)>,
}

impl SilentAboutMissing {
    fn request(&mut self, stream: StreamId, request: &Request) {
        let key = (stream, request.type_url.clone());
        let first = !self.had.contains_key(&key);
        let had = self.had.entry(key.clone()).or_default();
        // A name that the client claims, or leaves within a wildcard, is answered.
        had.extend(request.initial.keys().cloned());
        let nothing = request.names.is_empty() && request.unsubscribe.is_empty();
        if request.names.iter().any(|name| name == "*") || (first && nothing) {
            self.wildcard.insert(key.clone());
        }
        if self.wildcard.contains(&key) {
            had.extend(request.unsubscribe.iter().cloned());
        }
        if request.unsubscribe.iter().any(|name| name == "*") {
            self.wildcard.remove(&key);
        }
    }

    fn response(&mut self, stream: StreamId, response: &mut Response) -> bool {
        let had = self.had.entry((stream, response.type_url.clone())).or_default();
        let said_nothing = response.resources.is_empty() && response.removed.is_empty();
        response.removed.retain(|name| had.contains(name));
        had.extend(response.resources.iter().map(|item| item.name.clone()));
        said_nothing || !response.resources.is_empty() || !response.removed.is_empty()
    }
}

/// The imitation.
struct GoControlPlane {
    parts: Vec<Seeded>,
    missing: Option<SilentAboutMissing>,
}

impl GoControlPlane {
    fn new(variant: Variant, is_snapshot: bool) -> Self {
        // Endpoints are not sent again when their cluster changes.
        let mut wrong = vec![Wrong::NoWarming];
        match variant {
            // A NACK is answered by the same version, at once.
            Variant::Sotw if is_snapshot => wrong.push(Wrong::ResendsOnNack),
            Variant::Sotw => {}
            // A name that is known already yields nothing; a removal that crosses an unacknowledged response is lost.
            Variant::Delta => wrong.extend([Wrong::IgnoresResubscribe, Wrong::LosesRemovalsBeforeAck]),
        }
        let missing = (variant == Variant::Delta).then(SilentAboutMissing::default);
        Self { parts: wrong.into_iter().map(Seeded::new).collect(), missing }
    }
}

impl Defect for GoControlPlane {
    fn request(&mut self, stream: StreamId, request: &mut Request) -> bool {
        self.missing.iter_mut().for_each(|missing| missing.request(stream, request));
        self.parts.iter_mut().fold(true, |takes, part| part.request(stream, request) && takes)
    }

    fn response(&mut self, stream: StreamId, response: &mut Response) -> bool {
        self.missing.as_mut().is_none_or(|missing| missing.response(stream, response))
            && self.parts.iter_mut().fold(true, |goes, part| part.response(stream, response) && goes)
    }

    fn more(&mut self, stream: StreamId, request: Option<&Request>, sent: &[Response]) -> Vec<Response> {
        self.parts.iter_mut().flat_map(|part| part.more(stream, request, sent)).collect()
    }

    fn change(&mut self, op: &Op) -> bool {
        self.parts.iter_mut().fold(true, |takes, part| part.change(op) && takes)
    }
}

/// What fails, by its id.
fn failures(variant: Variant, is_snapshot: bool) -> Vec<String> {
    let mut failed = Vec::new();
    for (of, story) in suite::server().expect("stories") {
        // go-control-plane has none of these.
        let other = ["glob", "alias", "vhds", "ttl", "error", "unknown", "restart"];
        if of != variant || story.features.iter().any(|feature| other.contains(&feature.as_str())) {
            continue;
        }
        let mut peer = Memory::new(GoControlPlane::new(variant, is_snapshot));
        let mut played = suite::play(&story, variant, &story.types, "k-", None, &mut peer);
        for played in &mut played {
            if played.outcome.verdict == Verdict::Pass {
                played.outcome = played.runner.tail(&mut peer);
            }
        }
        let outcome = suite::worst(&played);
        assert_ne!(outcome.verdict, Verdict::Inconclusive, "{}: {}", story.id, outcome.why);
        if outcome.verdict == Verdict::Fail {
            failed.push(story.id.strip_prefix("server/").expect("the prefix").to_owned());
        }
    }
    failed
}

#[test]
fn of_the_linear_cache_exactly_the_expected_cases_fail() {
    assert_eq!(failures(Variant::Sotw, false), ["ads/warming"]);
}

#[test]
fn of_the_snapshot_cache_exactly_the_expected_cases_fail() {
    let nacks = ["sotw/nack-not-resent", "sotw/nack-at-same-version", "ads/warming"];
    assert_eq!(failures(Variant::Sotw, true), nacks);
}

#[test]
fn of_delta_exactly_the_expected_cases_fail() {
    let expected = [
        // Observed: naming a resource that does not exist yields nothing.
        "delta/missing",
        "delta/missing-stays",
        // Observed: subscribing to a known name again yields nothing.
        "delta/resubscribe",
        "delta/resubscribe-missing",
        "delta/forget-crossing",
        // Observed: a removal that crosses an unacknowledged response is lost.
        "delta/remove-before-ack",
        "ads/warming",
    ];
    assert_eq!(failures(Variant::Delta, false), expected);
}
