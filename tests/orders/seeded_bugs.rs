//! The checker detects each known defect of a shipped implementation (`world/bug.rs`), by a shortest trace.

use xds_machine::{Delta, Sotw};
use xds_machine_testing::checker;
use xds_machine_testing::world::{Budget, Bug, Setup};

/// A bug; its variant; the smallest setup that triggers it; the number of steps to the fault; the reported fault.
type Row = (Bug, bool, Setup, usize, &'static str);

const SOTW: bool = false;
const DELTA: bool = true;

fn rows() -> Vec<Row> {
    let n = Budget::NONE;
    let (a, all, ab) = (&["a"][..], &["*", "a"][..], &["a", "b"][..]);
    let full = Setup::full_state;
    let partial = Setup::partial;
    use Bug::*;
    vec![
        (
            EmptyListOnReconnect,
            SOTW,
            Setup::warming(a, n.cuts(1).wishes(2, 1)),
            5,
            "an empty list, and nobody wants everything",
        ),
        (KeepsNonce, SOTW, partial(a, n.cuts(1).wishes(1, 0).changes(1, 0)), 10, "nonces do not outlive streams"),
        (OldAnswersOnNewStream, DELTA, full(a, n.cuts(1).wishes(1, 1).changes(1, 0)), 12, "NotAsked"),
        (NoAnswerOnceUnwanted, DELTA, full(a, n.wishes(1, 1).changes(1, 0)), 11, "every response is answered"),
        (VersionStuck, SOTW, partial(a, n.wishes(1, 0).changes(2, 0)), 15, "is claimed"),
        (ClaimsRejected, SOTW, partial(a, n.rejects(1).wishes(1, 0).changes(1, 0)), 9, "is claimed"),
        (
            IgnoresPause,
            SOTW,
            partial(a, n.pauses(1).wishes(1, 0).changes(1, 0)),
            10,
            "something is said of a type that is held back",
        ),
        (
            ListsWhatItHolds,
            DELTA,
            full(all, n.cuts(1).wishes(1, 0).changes(1, 0)),
            10,
            "a is subscribed, and is subscribed again",
        ),
        (ClaimsWhatItLost, DELTA, full(a, n.cuts(1).wishes(2, 1).changes(1, 0)), 10, "a is not held at"),
        (ForgetsUnsubscribe, DELTA, full(a, n.wishes(1, 1)), 11, "the server's view of what is wanted"),
        (NoNames, SOTW, partial(a, n.wishes(1, 0)), 3, "an empty list, and nobody wants everything"),
        (
            SilentAfterNack,
            SOTW,
            partial(a, n.cuts(1).rejects(1).wishes(1, 0).changes(1, 0)),
            10,
            "the server's view of what is wanted",
        ),
        (NoInitialVersions, DELTA, full(all, n.cuts(1).wishes(1, 0).changes(1, 1)), 11, "a is there, and not claimed"),
        (
            NoInitialVersions,
            SOTW,
            full(all, n.cuts(1).wishes(1, 0).changes(1, 1)),
            11,
            "was accepted, and \"\" is claimed",
        ),
        (
            MembersNotTracked,
            DELTA,
            Setup::collection(&["xdstp:///T/*", "xdstp:///T/a", "xdstp:///T/b"], n.cuts(1).wishes(1, 0).changes(2, 1)),
            11,
            "xdstp:///T/a is there, and not claimed",
        ),
        (AnswersTwice, SOTW, partial(a, n.wishes(1, 0).changes(1, 0)), 9, "an answer to a response that was read"),
        (AsksAgain, DELTA, full(a, n.wishes(1, 0).changes(1, 0)), 7, "a is subscribed, and is subscribed again"),
        (DropsTheGood, DELTA, full(ab, n.rejects(1).wishes(2, 0).changes(2, 0)), 11, "a is 0, applied is None"),
        (
            ResendsRejected,
            DELTA,
            full(a, n.rejects(1).wishes(1, 0).changes(1, 0)),
            11,
            "a was rejected and is sent again",
        ),
        (NackLoop, DELTA, full(a, n.wishes(1, 0).changes(1, 0)), 10, "the protocol goes in a circle"),
        (NeverForgetsNames, SOTW, partial(a, n.wishes(1, 1)), 8, "the server's view of what is wanted"),
        (NotSentAgain, DELTA, full(a, n.wishes(2, 1).changes(1, 0)), 21, "the time of a name ran out"),
        (NoEmptyAnswer, SOTW, full(all, n.wishes(1, 0)), 6, "everything is wanted, and there was no answer"),
        (WrongOrder, DELTA, Setup::order(a, n.wishes(2, 0).changes(4, 0)), 15, "listeners are pushed before clusters"),
        (Superseded, SOTW, partial(a, n.wishes(1, 1).changes(1, 0)), 9, "a is sent, and not wanted"),
        (NoWarmingResend, DELTA, Setup::warming(a, n.wishes(2, 0).changes(2, 0)), 17, "the time of a name ran out"),
        (ForgetsRemovals, DELTA, full(all, n.cuts(1).wishes(1, 0).changes(1, 1)), 18, "a does not exist"),
        (
            OneRequestPerNonce,
            SOTW,
            partial(ab, n.wishes(2, 0).changes(1, 0)),
            15,
            "the server's view of what is wanted",
        ),
        (
            IgnoresNamesOnNack,
            SOTW,
            partial(ab, n.rejects(1).wishes(2, 0).changes(1, 0)),
            13,
            "the server's view of what is wanted",
        ),
        (
            StaleCountsAsAnswer,
            SOTW,
            partial(ab, n.wishes(2, 0).changes(2, 0)),
            11,
            "a response does not wait for the ACK of the last one",
        ),
        (ClosesCrossed, SOTW, full(ab, n.wishes(2, 0)), 8, "the stream is to close"),
        (FirstNamesOnly, SOTW, partial(ab, n.wishes(2, 0)), 9, "the server's view of what is wanted"),
        (
            ConstantNonce,
            SOTW,
            partial(a, n.wishes(1, 0).changes(3, 0)),
            17,
            "the server waits for an answer that was given",
        ),
        (EmptyMeansAll, SOTW, partial(a, n.wishes(1, 1)), 12, "the server's view of what is wanted"),
        (BeatsAreContent, DELTA, full(a, n.wishes(1, 0).changes(1, 0).beats(1)).ttl(), 11, "that is no content"),
        (
            BeatsWaitForAcks,
            DELTA,
            full(ab, n.wishes(2, 0).changes(3, 0).beats(3)).ttl(),
            14,
            "expired, and the server has it",
        ),
        (WaitsForEver, SOTW, full(a, n.wishes(1, 0).changes(2, 0)), 7, "waits without a clock"),
        (
            OneTypeAtATime,
            DELTA,
            Setup::order(a, n.silences(1).wishes(2, 0).changes(2, 0)),
            9,
            "a resource is not sent, though time has passed",
        ),
        (
            StopsReading,
            SOTW,
            Setup::warming(a, n.wishes(2, 0).changes(2, 0)).hasty_server().warms().no_existence_timeout(),
            12,
            "a response is never read",
        ),
        (
            BeatsWaitForVerdicts,
            DELTA,
            full(ab, n.wishes(2, 0).changes(2, 0).seconds(90)).ttl(),
            23,
            "and may stay until",
        ),
        (
            StopsReading,
            SOTW,
            Setup::warming(a, n.wishes(2, 0).changes(2, 0)).hasty_server().warms(),
            14,
            "the time of a name ran out, and the server has it",
        ),
        (
            AnswersOldContent,
            DELTA,
            full(a, n.wishes(1, 0).changes(2, 0).refetches(1)).recorded(),
            10,
            "a falls to an older revision",
        ),
        (
            NeedsRoom,
            SOTW,
            Setup::order(a, n.wishes(2, 0).changes(2, 0)).room(),
            14,
            "the server waits for an answer that was given",
        ),
        (
            KeepsExpired,
            DELTA,
            full(a, n.cuts(1).wishes(1, 0).changes(1, 0).beats(1)).ttl(),
            10,
            "a TTL ran out, and the application does not know",
        ),
        (
            SaysNoBeats,
            SOTW,
            partial(a, n.wishes(1, 0).changes(1, 0).beats(3)).ttl(),
            16,
            "expired, and the server has it",
        ),
        (
            SaysNoErrors,
            SOTW,
            partial(a, n.wishes(1, 0).fails(1)),
            11,
            "a has an error, and the application does not know",
        ),
        (
            RepeatsRemovals,
            DELTA,
            full(ab, n.wishes(2, 0).changes(1, 0)),
            11,
            "the client knows that b does not exist, and is told again",
        ),
        (PartOfFullState, SOTW, full(ab, n.wishes(2, 0).changes(2, 0)), 12, "a full-state type has all that is wanted"),
    ]
}

#[test]
fn every_bug_is_found_by_a_shortest_trace() {
    let mut faults = Vec::new();
    for (bug, delta, setup, steps, what) in rows() {
        let setup = setup.bug(bug).make();
        let report = if delta {
            checker::explore::<Delta>(&setup, usize::MAX)
        } else {
            checker::explore::<Sotw>(&setup, usize::MAX)
        };
        match report.fault {
            None => faults.push(format!("{bug:?} is not seen in {} states", report.states)),
            Some(fault) if fault.what.contains(what) && fault.trace.len() == steps => {}
            Some(fault) => {
                faults.push(format!("{bug:?}: {} after {}: {:?}", fault.what, fault.trace.len(), fault.trace))
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
