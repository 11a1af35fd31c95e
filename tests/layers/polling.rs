//! Polls in every order, with lost and late answers; and the bugs that the exploration finds.

use xds_machine_testing::polling::{Budget, Bug, Polling, TYPES};

const NONE: Budget = Budget { changes: 0, losses: 0, wishes: 0, rejects: 0 };

/// The budgets of the explorations.
const BUDGETS: [Budget; 3] = [
    Budget { changes: 2, losses: 1, wishes: 1, rejects: 1 },
    Budget { changes: 1, losses: 1, wishes: 3, rejects: 0 },
    Budget { changes: 3, losses: 0, wishes: 0, rejects: 2 },
];

#[test]
fn polls_in_every_order() {
    for of in TYPES {
        for budget in BUDGETS {
            for full in [false, true] {
                let report = Polling::new(of, full, budget, None).explore(usize::MAX);
                println!("{of} {budget:?} {full}: {} states, {} settled", report.states, report.settled);
                assert!(report.fault.is_none(), "{of} {budget:?} {full}: {:?}", report.fault);
                assert!(report.complete && report.settled > 0);
            }
        }
    }
}

#[test]
fn each_bug_is_found() {
    let rows = [
        (Bug::VersionOfType, true, Budget { wishes: 1, ..NONE }, "b: the source has another"),
        (Bug::FirstNotModified, false, NONE, "a"),
        (Bug::RejectsTheCurrent, true, Budget { rejects: 1, changes: 1, ..NONE }, "right: DoesNotExist"),
        (Bug::SendsRejectedAgain, true, Budget { rejects: 1, ..NONE }, "over and over"),
        (Bug::KeepsVersion, true, Budget { wishes: 2, ..NONE }, "a: the source has another"),
        (Bug::TakesLateAnswers, true, Budget { losses: 1, changes: 1, ..NONE }, "?"),
        (Bug::EmptyList, true, Budget { wishes: 1, ..NONE }, "an empty list asks for everything"),
    ];
    for (bug, full, budget, expected) in rows {
        let report = Polling::new(TYPES[1], full, budget, Some(bug)).explore(usize::MAX);
        let fault = report.fault.unwrap_or_else(|| panic!("{bug:?} is not found"));
        assert!(fault.what.contains(expected), "{bug:?}: {} {:?}", fault.what, fault.trace);
    }
}
