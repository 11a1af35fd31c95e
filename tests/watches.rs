//! The layer that watches, in every order within budgets, against a naive reference.
//!
//! `cargo test --release --test watches -- --nocapture` shows the counts.

#[path = "checker/search.rs"]
mod search;
mod watching;

use watching::{Budget, Setup, Step, World};
use xds_machine::{Delta, Sotw};

#[test]
fn first() {
    let b = Budget { watches: 2, unwatches: 1, puts: 1, fails: 1, ..Budget::NONE };
    for begun in [0, 1] {
        let setup = Setup { begun, budget: b, ..Setup::NEW };
        for delta in [true, false] {
            let start = std::time::Instant::now();
            let report: search::Report<Step> = if delta {
                search::explore(World::<Delta>::new(setup), 300_000)
            } else {
                search::explore(World::<Sotw>::new(setup), 300_000)
            };
            println!(
                "{} {} {} {:?} {:?}",
                report.states,
                report.settled,
                report.complete,
                report.fault,
                start.elapsed()
            );
        }
    }
}
