//! Polls in every order, with lost and late answers; and the bugs that the exploration finds.

use xds_machine_testing::hostile;
use xds_machine_testing::polling::{Budget, Bug, Polling, TYPES};
use xds_machine_testing::random::Random;

const NONE: Budget = Budget { changes: 0, losses: 0, wishes: 0, rejects: 0 };

/// The budgets of the explorations.
const BUDGETS: [Budget; 3] = [
    Budget { changes: 2, losses: 1, wishes: 1, rejects: 1 },
    Budget { changes: 1, losses: 1, wishes: 3, rejects: 0 },
    Budget { changes: 3, losses: 0, wishes: 0, rejects: 2 },
];

#[test]
fn polls_converge_in_every_order() {
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
        (Bug::RejectsTheLast, true, Budget { rejects: 1, changes: 1, losses: 1, ..NONE }, "right: DoesNotExist"),
        (Bug::SendsRejectedAgain, true, Budget { rejects: 1, ..NONE }, "what was rejected comes again"),
        (Bug::KeepsVersion, true, Budget { wishes: 2, ..NONE }, "a: the source has another"),
    ];
    let mut wrong = Vec::new();
    for (bug, full, budget, expected) in rows {
        let report = Polling::new(TYPES[1], full, budget, Some(bug)).explore(usize::MAX);
        match report.fault {
            Some(fault) if fault.what.contains(expected) => println!("{bug:?}: {} steps", fault.trace.len()),
            other => wrong.push((bug, other)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn polls_survive_hostile_peers() {
    let mut random = Random(1);
    for _ in 0..20_000 {
        let data: Vec<u8> = (0..random.below(200)).map(|_| random.next() as u8).collect();
        if std::panic::catch_unwind(|| hostile::poll::play(&data)).is_err() {
            panic!("fails with {data:?}");
        }
    }
}
