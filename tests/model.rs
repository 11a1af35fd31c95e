//! The exhaustive check of client x server x wire x application.

mod checker;
mod world;

use std::sync::Arc;
use std::time::Duration;

use world::{Both, Budget, Setup};
use xds_machine::{Delta, Sotw};

fn check<V: Both>(name: &str, setup: Setup, limit: usize) {
    let start = std::time::Instant::now();
    let report = checker::explore::<V>(&Arc::new(setup), limit);
    println!(
        "{name}: {} unique states, {} settled, {} transitions, {:?}",
        report.states,
        report.settled,
        report.transitions,
        start.elapsed()
    );
    if let Some(fault) = report.fault {
        println!("FAULT {name}: {}\n{:?}", fault.what, fault.trace);
    }
}

#[test]
fn scratch() {
    let limit = std::env::var("LIMIT").map_or(1_000_000, |l| l.parse().unwrap());
    let only = std::env::var("ONLY").unwrap_or_default();
    let b = |cuts, rejects, subscribes, unsubscribes, puts, deletes| Budget {
        cuts,
        rejects,
        subscribes,
        unsubscribes,
        puts,
        deletes,
        refetches: 0,
    };
    let budgets = [
        ("2cuts", b(2, 0, 2, 1, 2, 1)),
        ("2uns", b(1, 0, 3, 2, 2, 1)),
        ("2rej", b(1, 2, 1, 1, 2, 1)),
        ("2del", b(1, 0, 2, 1, 3, 2)),
        ("nocut", b(0, 1, 3, 2, 3, 2)),
    ];
    let t = Some(Duration::from_secs(15));
    for (names, nn) in [(&["a"][..], "a"), (&["*", "a"][..], "*a"), (&["a", "b"][..], "ab")] {
        for (bn, budget) in budgets {
            for strict in [false, true] {
                for (v, full, timeout) in [("full", true, t), ("partial", false, t), ("partial-notimer", false, None)] {
                    let name = format!("sotw {v} {nn} {bn} {}", if strict { "strict" } else { "record" });
                    if name.contains(&only) {
                        check::<Sotw>(
                            &name,
                            Setup::with(full, full || nn == "*a", 1, names, budget, strict, timeout),
                            limit,
                        );
                    }
                }
            }
            let name = format!("delta {nn} {bn}");
            if name.contains(&only) {
                check::<Delta>(&name, Setup::with(true, true, 1, names, budget, false, t), limit);
            }
        }
    }
}

fn walks<V: Both>(name: &str, setup: Setup, runs: u64) {
    let start = std::time::Instant::now();
    let setup = Arc::new(setup);
    let mut total = 0;
    for seed in 0..runs {
        let (steps, fault) = checker::walk::<V>(&setup, seed);
        total += steps.len();
        if let Some(fault) = fault {
            let (fewer, what) = checker::shrink::<V>(&setup, steps);
            println!("FAULT {name} seed {seed}: {fault}\n shrunk: {what}\n{fewer:?}");
            return;
        }
    }
    println!("{name}: {runs} walks, {total} steps, {:?}", start.elapsed());
}

#[test]
fn scratch_walks() {
    let runs = std::env::var("RUNS").map_or(20_000, |l| l.parse().unwrap());
    let only = std::env::var("ONLY").unwrap_or_default();
    let budget = Budget { cuts: 3, rejects: 4, subscribes: 6, unsubscribes: 5, puts: 6, deletes: 4, refetches: 2 };
    let t = Some(Duration::from_secs(15));
    for types in [1, 2] {
        for (names, nn) in
            [(&["a"][..], "a"), (&["*", "a"][..], "*a"), (&["a", "b"][..], "ab"), (&["*", "a", "b"][..], "*ab")]
        {
            for strict in [false, true] {
                for (v, full, timeout) in [("full", true, t), ("partial", false, t), ("partial-notimer", false, None)] {
                    for legacy in [false, true] {
                        let name = format!(
                            "walk {types} sotw {v} {nn} {} legacy {legacy}",
                            if strict { "strict" } else { "record" }
                        );
                        if name.contains(&only) {
                            walks::<Sotw>(
                                &name,
                                Setup::with(full, legacy, types, names, budget, strict, timeout),
                                runs,
                            );
                        }
                    }
                }
            }
            for legacy in [false, true] {
                let name = format!("walk {types} delta {nn} legacy {legacy}");
                if name.contains(&only) {
                    walks::<Delta>(&name, Setup::with(true, legacy, types, names, budget, false, t), runs);
                }
            }
        }
    }
}
