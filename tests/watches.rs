//! The layer that watches, in every order within budgets, against a naive reference.
//!
//! `cargo test --release --test watches -- --nocapture` shows the counts.

#[path = "checker/search.rs"]
mod search;
mod watching;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use watching::{Budget, Goal, Setup, Step, World};
use xds_machine::client::DataErrors;
use xds_machine::{Code, Delta, Sotw};

/// A family of checks: one shape of world, with several budgets.
struct Variant {
    name: &'static str,
    setup: Setup,
    budgets: Vec<Budget>,
    goals: Vec<Goal>,
}

const NONE: Budget = Budget::NONE;

/// From nothing.
const FIRST: [Budget; 2] =
    [Budget { watches: 3, unwatches: 1, ..NONE }, Budget { watches: 2, unwatches: 1, puts: 1, early: 1, ..NONE }];

/// One watches and knows, another comes, and everything happens with something else.
const CONTENT: [Budget; 4] = [
    Budget { watches: 1, puts: 2, unwatches: 1, ..NONE },
    Budget { watches: 1, bad: 1, puts: 1, unwatches: 1, ..NONE },
    Budget { watches: 1, puts: 1, deletes: 1, early: 1, ..NONE },
    Budget { watches: 2, unwatches: 2, picks: 1, ..NONE },
];

const ERRORS: [Budget; 3] = [
    Budget { fails: 2, puts: 1, ..NONE },
    Budget { watches: 1, fails: 1, deletes: 1, unwatches: 1, ..NONE },
    Budget { watches: 1, fails: 1, bad: 1, ..NONE },
];

const STREAMS: [Budget; 3] = [
    Budget { watches: 1, unwatches: 1, cuts: 1, puts: 1, ..NONE },
    Budget { watches: 1, downs: 2, deletes: 1, ..NONE },
    Budget { downs: 1, fails: 1, puts: 1, ..NONE },
];

fn variant(name: &'static str, setup: Setup) -> Variant {
    Variant { name, setup, budgets: Vec::new(), goals: Vec::new() }
}

impl Variant {
    fn with(mut self, budgets: impl IntoIterator<Item = Budget>) -> Self {
        self.budgets.extend(budgets);
        self
    }
}

const AB: Setup = Setup::NEW;
const FULL: Setup = Setup { full_state: true, ..AB };
const ALL: Setup = Setup { names: &["a", "*"], watchers: &[1, 0, 1], ..AB };
const GLOB: Setup = Setup { names: &["xdstp://x/type/d/a", "xdstp://x/type/d/*"], ..ALL };
const GONE: &[Code] = &[Code::NotFound, Code::Unavailable];
const DENIED: &[Code] = &[Code::PermissionDenied, Code::Unavailable];

fn variants() -> Vec<Variant> {
    let most = || CONTENT.into_iter().chain(ERRORS).chain(STREAMS);
    let begun = |setup: Setup| Setup { begun: 1, ..setup };
    vec![
        variant("delta, first", AB).with(FIRST),
        variant("sotw partial, first", AB).with(FIRST),
        variant("delta, by name", Setup { codes: GONE, ..begun(AB) }).with(most()),
        variant("sotw full-state, by name", Setup { codes: GONE, ..begun(FULL) }).with(most()),
        variant("sotw partial, by name", begun(AB)).with(most()),
        variant("delta, kept", Setup { data_errors: DataErrors::Keep, codes: GONE, ..begun(AB) }).with(most()),
        variant("sotw full-state, dropped", Setup { data_errors: DataErrors::Drop, codes: DENIED, ..begun(FULL) })
            .with(most()),
        variant("delta, everything", begun(ALL)).with(most()),
        variant("sotw full-state, everything", begun(Setup { full_state: true, ..ALL })).with(most()),
        variant("delta, a collection", begun(GLOB)).with(most()),
        variant("delta, back-pressure", Setup { waits: true, ..begun(AB) }).with(most()),
        variant("sotw full-state, back-pressure", Setup { waits: true, ..begun(FULL) }).with(most()),
    ]
}

fn explore(name: &str, setup: Setup) -> search::Report<Step> {
    let limit = std::env::var("STATES").map_or(usize::MAX, |limit| limit.parse().expect("a number"));
    if name.starts_with("delta") {
        search::explore(World::<Delta>::new(setup), limit)
    } else {
        search::explore(World::<Sotw>::new(setup), limit)
    }
}

#[test]
fn survey() {
    let only = std::env::var("ONLY").unwrap_or_default();
    for Variant { name, setup, budgets, .. } in variants().iter().filter(|v| v.name.contains(&only)) {
        let mut goals = 0;
        for &budget in budgets {
            let start = std::time::Instant::now();
            let report = explore(name, Setup { budget, ..*setup });
            goals |= report.goals;
            println!(
                "{name}: {} {} {} {:?} {budget:?}",
                report.states,
                report.settled,
                report.complete,
                start.elapsed()
            );
            if let Some(fault) = report.fault {
                println!("   !!! {}\n   {:?}", fault.what, fault.trace);
            }
        }
        println!("   goals {goals:b}");
    }
}
