//! The exhaustive check of client x server x wire x application.

mod checker;
mod world;

use std::sync::Arc;

use world::{Budget, Both, Setup};
use xds_machine::{Delta, Sotw};

fn check<V: Both>(name: &str, setup: Setup, limit: usize) {
    let start = std::time::Instant::now();
    let report = checker::explore::<V>(&Arc::new(setup), limit);
    println!("{name}: {} unique states, {} settled, {} transitions, {:?}", report.states, report.settled, report.transitions, start.elapsed());
    if let Some(fault) = report.fault {
        panic!("{name}: {}\n{:?}", fault.what, fault.trace);
    }
}

const SMALL: Budget = Budget { cuts: 1, rejects: 0, subscribes: 2, unsubscribes: 1, puts: 2, deletes: 1, refetches: 0 };

#[test]
fn sotw_full_state() {
    check::<Sotw>("full", Setup::new(true, 1, &["a"], SMALL), 3_000_000);
    check::<Sotw>("full star", Setup::new(true, 1, &["*", "a"], SMALL), 3_000_000);
}

#[test]
fn sotw_partial() {
    check::<Sotw>("partial", Setup::new(false, 1, &["a"], SMALL), 3_000_000);
    check::<Sotw>("partial star", Setup::new(false, 1, &["*", "a"], SMALL), 3_000_000);
}

#[test]
fn delta() {
    check::<Delta>("delta", Setup::new(true, 1, &["a"], SMALL), 3_000_000);
    check::<Delta>("delta star", Setup::new(true, 1, &["*", "a"], SMALL), 3_000_000);
}
