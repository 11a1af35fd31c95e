//! The exhaustive check of client x server x wire x application.

mod checker;
mod world;

use world::{Both, Budget, Setup};
use xds_machine::{Delta, Sotw};

fn check<V: Both>(name: &str, setup: Setup, limit: usize) {
    let start = std::time::Instant::now();
    let report = checker::explore::<V>(&setup.make(), limit);
    println!(
        "{name}: {} unique states, {} settled, {} transitions, complete {}, {:?}",
        report.states,
        report.settled,
        report.transitions,
        report.complete,
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
    let n = Budget::NONE;
    let budgets = [
        ("2cuts", n.cuts(2).wishes(2, 1).changes(2, 1)),
        ("2uns", n.cuts(1).wishes(3, 2).changes(2, 1)),
        ("2rej", n.cuts(1).rejects(2).wishes(1, 1).changes(2, 1)),
        ("2del", n.cuts(1).wishes(2, 1).changes(3, 2)),
        ("nocut", n.rejects(1).wishes(3, 2).changes(3, 2)),
    ];
    for (names, nn) in [(&["a"][..], "a"), (&["*", "a"][..], "*a"), (&["a", "b"][..], "ab")] {
        for (bn, budget) in budgets {
            for (v, setup) in [
                ("full", Setup::full_state(names, budget)),
                ("partial", Setup::partial(names, budget)),
                ("warming", Setup::warming(names, budget)),
                ("order", Setup::order(names, budget)),
            ] {
                for (w, setup) in [
                    ("", setup.clone()),
                    ("strict", setup.clone().strict_server()),
                    ("notimer", setup.clone().no_existence_timeout()),
                ] {
                    let name = format!("sotw {v} {nn} {bn} {w}");
                    if name.contains(&only) {
                        check::<Sotw>(&name, setup, limit);
                    }
                }
                let name = format!("delta {v} {nn} {bn}");
                if name.contains(&only) {
                    check::<Delta>(&name, setup, limit);
                }
            }
        }
    }
}

fn walks<V: Both>(name: &str, setup: Setup, runs: u64) {
    let start = std::time::Instant::now();
    let setup = setup.make();
    let mut total = 0;
    for seed in 0..runs {
        let (steps, fault) = checker::walk::walk::<V>(&setup, seed);
        total += steps.len();
        if let Some(fault) = fault {
            let (fewer, what) = checker::walk::shrink::<V>(&setup, steps);
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
    for (names, nn) in
        [(&["a"][..], "a"), (&["*", "a"][..], "*a"), (&["a", "b"][..], "ab"), (&["*", "a", "b"][..], "*ab")]
    {
        for (v, setup) in [
            ("full", Setup::full_state(names, budget)),
            ("partial", Setup::partial(names, budget)),
            ("warming", Setup::warming(names, budget)),
            ("order", Setup::order(names, budget)),
            ("two", Setup::full_state(names, budget).clients(2)),
            ("slow", Setup::partial(names, budget).slow_transport()),
            ("tomb", Setup::full_state(names, budget).tombstones(0)),
        ] {
            for (w, setup) in [
                ("", setup.clone()),
                ("strict", setup.clone().strict_server()),
                ("notimer", setup.clone().no_existence_timeout()),
                ("legacy", setup.clone().legacy_wildcard(!setup.full_state)),
            ] {
                let name = format!("walk sotw {v} {nn} {w}");
                if name.contains(&only) {
                    walks::<Sotw>(&name, setup, runs);
                }
            }
            let name = format!("walk delta {v} {nn}");
            if name.contains(&only) {
                walks::<Delta>(&name, setup, runs);
            }
        }
    }
}
#[test]
fn sizes() {
    let names: &[&str] = if std::env::var("W").is_ok() { &["*", "a"] } else { &["a"] };
    let kinds = ["cuts", "rejects", "subscribes", "unsubscribes", "refetches", "puts", "deletes"];
    let set = |b: Budget, k: &str, n: u8| match k {
        "cuts" => Budget { cuts: n, ..b },
        "rejects" => Budget { rejects: n, ..b },
        "subscribes" => Budget { subscribes: n, ..b },
        "unsubscribes" => Budget { unsubscribes: n, ..b },
        "refetches" => Budget { refetches: n, ..b },
        "puts" => Budget { puts: n, ..b },
        _ => Budget { deletes: n, ..b },
    };
    for i in 0..7 {
        for j in 0..i {
            let b = set(set(Budget { subscribes: 1, puts: 1, ..Budget::NONE }, kinds[i], 2), kinds[j], 2);
            let n = format!("{} {}", kinds[i], kinds[j]);
            check::<Sotw>(&format!("full {n}"), Setup::full_state(names, b), 1_000_000);
            check::<Sotw>(&format!("partial {n}"), Setup::partial(names, b), 1_000_000);
            check::<Delta>(&format!("delta {n}"), Setup::full_state(names, b), 1_000_000);
            if std::env::var("W").is_err() {
            check::<Delta>(&format!("warming {n}"), Setup::warming(names, b), 1_000_000);
            check::<Sotw>(&format!("swarming {n}"), Setup::warming(names, b), 1_000_000);
            }
        }
    }
}
