//! Every order of calls, reports, lost streams and returned messages, with the invariants of the module: each call is
//! in exactly one report that the transport took, a returned report is part of the next one, a lost stream loses at
//! most the report under way, and windows follow each other.

use xds_machine_testing::loads::{Asked, Budget, Bug, NONE, Setup, World};
use xds_machine_testing::search;

const ALL: Asked = (None, 1);
const FIRST: Asked = (Some(&[0]), 1);
const SECOND: Asked = (Some(&[1]), 1);
const BOTH: Asked = (Some(&[0, 1]), 2);
const NOTHING: Asked = (Some(&[]), 1);

const SETUP: Setup = Setup { budget: NONE, takes_all: true, selections: &[ALL], bug: None };

fn setups() -> Vec<Setup> {
    let plain = Budget { ticks: 3, calls: 2, ..NONE };
    let setup = |budget, selections| Setup { budget, selections, ..SETUP };
    vec![
        setup(Budget { starts: 1, drops: 1, ..plain }, &[ALL]),
        setup(Budget { cuts: 2, unsent: 1, ..plain }, &[ALL]),
        setup(Budget { cuts: 1, unsent: 1, starts: 1, stops: 1, ..plain }, &[FIRST]),
        setup(Budget { selects: 2, cuts: 1, ..plain }, &[FIRST, BOTH, SECOND]),
        setup(Budget { selects: 2, unsent: 1, ..plain }, &[ALL, FIRST, NOTHING]),
        setup(Budget { calls: 1, toggles: 2, starts: 1, cuts: 1, ..plain }, &[ALL]),
        setup(Budget { toggles: 2, unsent: 1, selects: 1, ..plain }, &[ALL, SECOND]),
        Setup { takes_all: false, ..setup(Budget { selects: 2, stops: 1, ..plain }, &[ALL, NOTHING, BOTH]) },
    ]
}

#[test]
fn the_invariants_hold_in_every_order() {
    let setups = setups();
    let budgets: Vec<usize> = (0..setups.len()).collect();
    let sums = search::explore_all(&[("loads", &budgets[..])], |_, at| {
        let report = search::explore(World::new(setups[at]), usize::MAX);
        println!("{:?}: {} states, {} settled", setups[at].budget, report.states, report.settled);
        report
    });
    assert!(sums[0].complete && sums[0].states >= 50_000, "{:?}", sums[0]);
}

#[test]
fn every_bug_is_found() {
    use Bug::*;
    let calls = Budget { ticks: 2, calls: 1, ..NONE };
    let of = |budget, selections| Setup { budget, selections, ..SETUP };
    let rows = [
        (SkipsTheFirst, of(calls, &[FIRST]), "a report is due in time"),
        (ForgetsAtResponse, of(Budget { selects: 1, ..calls }, &[FIRST, BOTH]), "has what happened"),
        (EachResponseIsANewTimer, of(Budget { selects: 1, ..calls }, &[FIRST, (Some(&[0, 1]), 1)]), ""),
        (ForgetsAtClose, of(Budget { cuts: 1, ..calls }, &[ALL]), ""),
        (ConfiguredWindow, of(calls, &[ALL]), "the window of a"),
        (LeavesOutInProgress, of(Budget { ticks: 2, starts: 1, ..NONE }, &[ALL]), "calls in progress of a"),
        (NothingIsIssued, of(calls, &[ALL]), "has what happened"),
        (ForgetsDrops, of(Budget { ticks: 1, drops: 1, ..NONE }, &[ALL]), "has what happened"),
        (DropsAreCalls, of(Budget { ticks: 1, drops: 1, ..NONE }, &[ALL]), "has what happened"),
        (WrongCluster, of(calls, &[ALL]), "the report is of the clusters that are asked for"),
        (GoesOnUnasked, of(Budget { cuts: 1, ..calls }, &[ALL]), "the first message is the node alone"),
        (SavesUp, of(calls, &[ALL]), ""),
        (LosesUnsent, of(Budget { unsent: 1, ..calls }, &[ALL]), ""),
        (GivesBackTwice, of(Budget { unsent: 1, ..calls }, &[ALL]), "has what happened"),
        (LosesTheLastCounts, of(Budget { toggles: 1, ..calls }, &[ALL]), ""),
        (NoLastReport, of(Budget { stops: 1, ..calls }, &[ALL]), ""),
        (NoInterval, of(NONE, &[ALL]), "an answer has an interval"),
        (NegativeInterval, of(NONE, &[ALL]), "an interval that kills clients"),
        (EmptyList, of(NONE, &[FIRST]), "an answer has all or a list"),
    ];
    let mut wrong = Vec::new();
    for (bug, setup, what) in rows {
        let report = search::explore(World::new(Setup { bug: Some(bug), ..setup }), usize::MAX);
        match report.fault {
            Some(fault) if fault.what.contains(what) => {
                println!("{bug:?}: {} after {:?}", fault.what, fault.trace);
            }
            Some(fault) => wrong.push(format!("{bug:?}: {} after {:?}", fault.what, fault.trace)),
            None => wrong.push(format!("{bug:?} is not seen in {} states", report.states)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
