//! The seeded bugs of the model, and the complaints of the referees about each in the smallest world that triggers it.

use xds_conformance::referee::Rule;
use xds_machine_testing::world::{Budget, Bug, Setup};

/// A bug, a small world with it, and the rules of all complaints in any order of events.
///
/// The checks of the model end the conversation at the first fault that they see; the referees still receive the
/// message of that fault. Later violations are complained of in walks (`referee/mod.rs`), which have no such checks.
pub(crate) struct Row {
    pub(crate) bug: Bug,
    pub(crate) delta: bool,
    pub(crate) setup: Setup,
    pub(crate) rules: &'static [Rule],
}

const SOTW: bool = false;
const DELTA: bool = true;

fn seen(bug: Bug, delta: bool, setup: Setup, rules: &'static [Rule]) -> Row {
    Row { bug, delta, setup, rules }
}

/// Returns the row of a bug that no referee complains of, and why.
fn unseen(bug: Bug, delta: bool, setup: Setup, _why: &str) -> Row {
    Row { bug, delta, setup, rules: &[] }
}

pub(crate) fn rows() -> Vec<Row> {
    let n = Budget::NONE;
    let (a, all, ab) = (&["a"][..], &["*", "a"][..], &["a", "b"][..]);
    let glob = &["xdstp:///T/*", "xdstp:///T/a", "xdstp:///T/b"];
    let (full, partial) = (Setup::full_state, Setup::partial);
    vec![
        unseen(
            Bug::EmptyListOnReconnect,
            SOTW,
            Setup::warming(a, n.cuts(1).wishes(2, 1)),
            "the world tells its own checks of the empty list, and puts none on the wire",
        ),
        seen(Bug::KeepsNonce, SOTW, partial(a, n.cuts(1).wishes(1, 0).changes(1, 0)), &[Rule::FirstRequest]),
        seen(
            Bug::OldAnswersOnNewStream,
            DELTA,
            full(a, n.cuts(1).wishes(1, 1).changes(1, 0)),
            &[Rule::Node, Rule::FirstRequest, Rule::NamesUnwanted, Rule::ClaimsLater],
        ),
        seen(Bug::NoAnswerOnceUnwanted, DELTA, full(a, n.wishes(1, 1).changes(1, 0)), &[Rule::NotAnswered]),
        seen(Bug::VersionStuck, SOTW, partial(a, n.wishes(1, 0).changes(2, 0)), &[Rule::AckVersion]),
        unseen(
            Bug::ClaimsRejected,
            SOTW,
            partial(a, n.rejects(1).wishes(1, 0).changes(1, 0)),
            "nobody knows before the verdict whether a response is bad; with `Merit::Bad` it is `nack-version`",
        ),
        unseen(
            Bug::IgnoresPause,
            SOTW,
            partial(a, n.pauses(1).wishes(1, 0).changes(1, 0)),
            "that a type is paused is inside the client",
        ),
        seen(Bug::ListsWhatItHolds, DELTA, full(all, n.cuts(1).wishes(1, 0).changes(1, 0)), &[Rule::Names]),
        unseen(
            Bug::ClaimsWhatItLost,
            DELTA,
            full(a, n.cuts(1).wishes(2, 1).changes(1, 0)),
            "a client may have kept what an earlier stream sent",
        ),
        seen(Bug::ForgetsUnsubscribe, DELTA, full(a, n.wishes(1, 1)), &[Rule::NamesUnwanted]),
        unseen(
            Bug::NoNames,
            SOTW,
            partial(a, n.wishes(1, 0)),
            "the model stops at the request; the silence after it is `names`, in walks",
        ),
        unseen(
            Bug::SilentAfterNack,
            SOTW,
            partial(a, n.cuts(1).rejects(1).wishes(1, 0).changes(1, 0)),
            "a type that is not asked for on this stream may be on another",
        ),
        unseen(
            Bug::NoInitialVersions,
            DELTA,
            full(all, n.cuts(1).wishes(1, 0).changes(1, 1)),
            "a client need not claim what it has",
        ),
        unseen(
            Bug::MembersNotTracked,
            DELTA,
            Setup::collection(glob, n.cuts(1).wishes(1, 0).changes(2, 1)),
            "a client need not claim what it has",
        ),
        unseen(
            Bug::AnswersTwice,
            SOTW,
            partial(a, n.wishes(1, 0).changes(1, 0)),
            "a second request under one nonce is legal in SotW",
        ),
        seen(Bug::AnswersTwice, DELTA, full(a, n.wishes(1, 0).changes(1, 0)), &[Rule::AnsweredTwice]),
        unseen(Bug::AsksAgain, DELTA, full(a, n.wishes(1, 0).changes(1, 0)), "a client may ask for a resource again"),
        unseen(
            Bug::BeatsAreContent,
            DELTA,
            full(a, n.wishes(1, 0).changes(1, 0).beats(1)).ttl(),
            "what the client makes of a heartbeat is inside it",
        ),
        unseen(
            Bug::KeepsExpired,
            DELTA,
            full(a, n.cuts(1).wishes(1, 0).changes(1, 0).beats(1)).ttl(),
            "what the client has is inside it",
        ),
        unseen(
            Bug::DropsTheGood,
            DELTA,
            full(ab, n.rejects(1).wishes(2, 0).changes(2, 0)),
            "what the client has is inside it",
        ),
        unseen(
            Bug::ResendsRejected,
            DELTA,
            full(a, n.rejects(1).wishes(1, 0).changes(1, 0)),
            "the model stops at the first time, for which the first request may be the reason; the next is `needless`, in walks",
        ),
        unseen(
            Bug::NackLoop,
            DELTA,
            full(a, n.wishes(1, 0).changes(1, 0)),
            "the second round is the same state to the model; it is `needless`, in walks",
        ),
        seen(Bug::NeverForgetsNames, SOTW, partial(a, n.wishes(1, 1).changes(1, 0)), &[Rule::Unwanted]),
        seen(Bug::NotSentAgain, DELTA, full(a, n.wishes(2, 1).changes(1, 0)), &[Rule::Owed]),
        seen(Bug::NoEmptyAnswer, SOTW, full(all, n.wishes(1, 0).changes(1, 1)), &[Rule::NotRemoved]),
        unseen(
            Bug::WrongOrder,
            DELTA,
            Setup::order(a, n.wishes(2, 0).changes(4, 0)),
            "the order of types is a recommendation, and none of the rules",
        ),
        unseen(
            Bug::Superseded,
            SOTW,
            partial(a, n.wishes(1, 1).changes(1, 0)),
            "to its client, the response has crossed the request",
        ),
        seen(
            Bug::NoWarmingResend,
            DELTA,
            Setup::warming(a, n.wishes(2, 0).changes(2, 0)),
            &[Rule::Owed, Rule::NotSent],
        ),
        seen(
            Bug::ForgetsRemovals,
            DELTA,
            full(all, n.cuts(1).wishes(1, 0).changes(1, 1)),
            &[Rule::Unanswered, Rule::NotRemoved],
        ),
        seen(Bug::OneRequestPerNonce, SOTW, partial(ab, n.wishes(2, 0).changes(2, 0)), &[Rule::Owed, Rule::NotSent]),
        seen(
            Bug::IgnoresNamesOnNack,
            SOTW,
            partial(ab, n.rejects(1).wishes(2, 0).changes(2, 0)),
            &[Rule::Owed, Rule::NotSent],
        ),
        unseen(
            Bug::StaleCountsAsAnswer,
            SOTW,
            partial(ab, n.wishes(2, 0).changes(2, 0)),
            "a server need not wait for the ACK",
        ),
        seen(Bug::FirstNamesOnly, SOTW, partial(ab, n.wishes(2, 0).changes(2, 0)), &[Rule::Owed, Rule::NotSent]),
        seen(Bug::ConstantNonce, SOTW, partial(a, n.wishes(1, 0).changes(3, 0)), &[Rule::NonceAgain]),
        seen(Bug::EmptyMeansAll, SOTW, partial(a, n.wishes(1, 1).changes(1, 0)), &[Rule::Needless, Rule::Unwanted]),
        seen(Bug::PartOfFullState, SOTW, full(ab, n.wishes(2, 0).changes(2, 0)), &[Rule::FullState]),
        seen(Bug::RepeatsRemovals, DELTA, full(ab, n.wishes(2, 0).changes(1, 0)), &[Rule::Needless]),
        unseen(
            Bug::SaysNoBeats,
            SOTW,
            partial(a, n.wishes(1, 0).changes(1, 0).beats(1)).ttl(),
            "the referee knows no time",
        ),
        unseen(
            Bug::BeatsWaitForAcks,
            DELTA,
            full(a, n.wishes(1, 0).changes(2, 0).beats(1)).ttl(),
            "the referee knows no time",
        ),
        unseen(Bug::WaitsForEver, SOTW, full(a, n.wishes(1, 0).changes(2, 0)), "the referee knows no time"),
        unseen(Bug::SaysNoErrors, SOTW, partial(a, n.wishes(1, 0).fails(1)), "a server need not tell errors"),
    ]
}
