//! The watcher layer, in every order of events within budgets, against a naive reference.
//!
//! `cargo test --release --test worlds watches -- --nocapture` shows the counts.

use xds_machine::client::DataErrors;
use xds_machine::{Code, Delta, Sotw};
use xds_machine_testing::search::{self, Sum};
use xds_machine_testing::watching::{Budget, Bug, Goal, Setup, Step, World};

/// A family of checks: one shape of world, with several budgets.
struct Variant {
    name: &'static str,
    setup: Setup,
    budgets: Vec<Budget>,
    goals: Vec<Goal>,
}

const NONE: Budget = Budget::NONE;

/// The world begins without watchers.
const FIRST: [Budget; 2] =
    [Budget { watches: 3, unwatches: 1, ..NONE }, Budget { watches: 2, unwatches: 1, puts: 1, ..NONE }];

/// One watcher has its content, another arrives, and each event occurs with one other.
const EACH: [Budget; 9] = [
    Budget { watches: 1, puts: 2, unwatches: 1, ..NONE },
    Budget { watches: 1, bad: 1, puts: 1, ..NONE },
    Budget { watches: 1, puts: 1, deletes: 1, early: 1, ..NONE },
    Budget { watches: 2, unwatches: 2, picks: 1, ..NONE },
    Budget { watches: 1, fails: 1, deletes: 1, ..NONE },
    Budget { watches: 1, fails: 1, bad: 1, ..NONE },
    Budget { watches: 1, unwatches: 1, cuts: 1, puts: 1, ..NONE },
    Budget { watches: 1, downs: 1, deletes: 1, ..NONE },
    Budget { fails: 1, downs: 1, puts: 1, ..NONE },
];

/// More than one further event occurs.
const MORE: [Budget; 4] = [
    Budget { watches: 1, bad: 1, puts: 1, unwatches: 1, ..NONE },
    Budget { watches: 1, fails: 1, deletes: 1, unwatches: 1, ..NONE },
    Budget { fails: 2, puts: 1, ..NONE },
    Budget { downs: 2, deletes: 1, ..NONE },
];

fn variant(name: &'static str, setup: Setup) -> Variant {
    let goals = vec![Goal::Late, Goal::Failed, Goal::Cured, Goal::Unwatched];
    Variant { name, setup: Setup { begun: 1, ..setup }, budgets: Vec::new(), goals }
}

fn first(name: &'static str) -> Variant {
    let setup = Setup { lazy: true, ..TWO_NAMES };
    Variant { name, setup, budgets: FIRST.into(), goals: vec![Goal::Late, Goal::Unwatched] }
}

impl Variant {
    fn each(mut self) -> Self {
        self.budgets.extend(EACH);
        self.reach([Goal::Gone, Goal::Beside, Goal::Over, Goal::Away])
    }

    fn and_more(mut self) -> Self {
        self.budgets.extend(MORE);
        self
    }

    fn reach(mut self, goals: impl IntoIterator<Item = Goal>) -> Self {
        self.goals.extend(goals);
        self
    }

    fn never(mut self, goal: Goal) -> Self {
        self.goals.retain(|other| *other != goal);
        self
    }
}

/// Two watchers of one name, and one of the other.
const TWO_NAMES: Setup = Setup::NEW;
const FULL: Setup = Setup { full_state: true, ..TWO_NAMES };
const ONE_NAME: Setup = Setup { names: &["a"], watchers: &[0, 0], ..TWO_NAMES };
/// The first watcher watches the wildcard; the others watch a name and the wildcard.
const ALL: Setup = Setup { names: &["a", "*"], watchers: &[1, 0, 1], ..TWO_NAMES };
const FULL_ALL: Setup = Setup { full_state: true, ..ALL };
const COLLECTION: Setup = Setup { names: &["xdstp://x/type/d/a", "xdstp://x/type/d/*"], ..ALL };
/// Two watchers of an alias of one of two resources, and one of that resource itself.
const ALIAS: Setup = Setup { names: &["a", "b", "x"], alias: true, watchers: &[2, 0, 2], codes: &[], ..TWO_NAMES };
/// The events of an alias, each with one other.
const POINTS: [Budget; 6] = [
    Budget { watches: 1, points: 2, unwatches: 1, ..NONE },
    Budget { watches: 1, points: 1, puts: 1, ..NONE },
    Budget { points: 1, bad: 1, puts: 1, ..NONE },
    Budget { watches: 1, points: 1, bad: 1, ..NONE },
    Budget { watches: 1, points: 1, deletes: 1, ..NONE },
    Budget { points: 1, deletes: 1, cuts: 1, ..NONE },
];
const GONE: &[Code] = &[Code::NotFound, Code::Unavailable];
const DENIED: &[Code] = &[Code::PermissionDenied, Code::Unavailable];

fn variants() -> Vec<Variant> {
    let full = Setup { full_state: true, ..ONE_NAME };
    let waits = |setup: Setup| Setup { waits: true, ..setup };
    let keep = |setup: Setup| Setup { data_errors: DataErrors::Keep, codes: GONE, ..setup };
    let drop = |setup: Setup| Setup { data_errors: DataErrors::Drop, codes: DENIED, ..setup };
    let waiting = [Goal::Waited, Goal::Left, Goal::Behind];
    vec![
        first("delta, from nothing"),
        first("sotw partial, from nothing"),
        variant("sotw full-state, two names", FULL).each(),
        variant("delta, one name", Setup { codes: GONE, ..ONE_NAME }).each().and_more(),
        variant("sotw full-state, one name", Setup { codes: GONE, ..full }).each().and_more(),
        variant("sotw partial, one name", ONE_NAME).each().and_more().never(Goal::Gone),
        variant("delta, kept", keep(ONE_NAME)).each().never(Goal::Gone),
        variant("sotw full-state, kept", keep(full)).each().never(Goal::Gone),
        variant("delta, dropped", drop(ONE_NAME)).each(),
        variant("delta, everything", ALL).each().reach([Goal::Member, Goal::Synced]),
        variant("sotw full-state, everything dropped", drop(FULL_ALL)).each().reach([Goal::Member, Goal::Synced]),
        variant("delta, a collection", COLLECTION).each().reach([Goal::Member]),
        variant("delta, back-pressure", waits(ONE_NAME)).each().and_more().reach(waiting),
        variant("sotw full-state, back-pressure", waits(full)).each().reach(waiting),
        Variant {
            name: "delta, an alias",
            setup: Setup { begun: 1, ..ALIAS },
            budgets: POINTS.into(),
            goals: vec![Goal::Late, Goal::Gone, Goal::Beside, Goal::Cured, Goal::Moved, Goal::MovedToBad],
        },
        Variant {
            name: "delta, an alias and the resource",
            setup: Setup { begun: 2, ..ALIAS },
            budgets: POINTS.into(),
            goals: vec![Goal::Gone, Goal::Beside, Goal::Moved, Goal::MovedToBad],
        },
        Variant {
            name: "delta, everything and back-pressure",
            setup: Setup { begun: 1, ..waits(ALL) },
            budgets: vec![EACH[0], EACH[4]],
            goals: vec![Goal::Waited, Goal::Left, Goal::Behind, Goal::Member],
        },
    ]
}

fn explore(name: &str, setup: Setup) -> search::Report<Step> {
    if name.starts_with("delta") {
        search::explore(World::<Delta>::new(setup), usize::MAX)
    } else {
        search::explore(World::<Sotw>::new(setup), usize::MAX)
    }
}

#[test]
fn the_invariants_hold_in_every_order() {
    let variants = variants();
    let budgets: Vec<(&str, &[Budget])> = variants.iter().map(|variant| (variant.name, &variant.budgets[..])).collect();
    let sums = search::explore_all(&budgets, |at, budget| {
        let Variant { name, setup, .. } = variants[at];
        explore(name, Setup { budget, ..setup })
    });
    let (mut total, mut never) = (0, Vec::new());
    for (variant, sum) in variants.iter().zip(sums) {
        assert!(sum.complete);
        let Sum { states, settled, transitions, goals, .. } = sum;
        println!("{}: {states} unique states, {settled} settled, {transitions} steps", variant.name);
        total += states;
        never.extend(variant.goals.iter().filter(|goal| !goal.is_in(goals)).map(|goal| (variant.name, goal)));
    }
    println!("in total: {total} unique states");
    assert!(never.is_empty(), "never happened: {never:?}");
    assert!(total >= 200_000, "{total} states are too few to prove much");
}

/// The checker detects each of these defects, by a shortest trace.
#[test]
fn every_bug_is_found_by_a_shortest_trace() {
    let one = Setup { begun: 1, ..ONE_NAME };
    let two = Setup { begun: 2, waits: true, ..ONE_NAME };
    let full = Setup { begun: 3, ..FULL };
    let late = Budget { watches: 1, fails: 1, ..NONE };
    let put = Budget { puts: 1, unwatches: 1, ..NONE };
    let rows = [
        (Bug::StarvesLate, one, late, 1, "is told nothing"),
        (Bug::HidesErrorFromLate, one, late, 4, "is told nothing"),
        (Bug::QueuesEvents, one, put, 4, "has left, and is told"),
        (Bug::TellsEqual, full, put, 3, "is told of b"),
        (Bug::ReplacesByError, one, Budget { bad: 1, ..NONE }, 3, "is told of a"),
        (Bug::WaitsForOne, two, put, 6, "the verdict is given"),
        (Bug::WaitsForTheGone, two, put, 6, "the verdict of"),
        (Bug::UnsubscribesEarly, two, put, 1, "the last who leaves unsubscribes"),
        (Bug::NeverUnsubscribes, one, put, 1, "the last who leaves unsubscribes"),
        (Bug::StaysAway, one, Budget { downs: 1, puts: 1, ..NONE }, 6, "is told of a"),
    ];
    let mut wrong = Vec::new();
    for (bug, setup, budget, steps, what) in rows {
        let report =
            explore(if setup.full_state { "sotw" } else { "delta" }, Setup { budget, bug: Some(bug), ..setup });
        match report.fault {
            Some(fault) if fault.what.contains(what) && fault.trace.len() == steps => {}
            Some(fault) => {
                wrong.push(format!("{bug:?}: {} after {}: {:?}", fault.what, fault.trace.len(), fault.trace))
            }
            None => wrong.push(format!("{bug:?} is not seen in {} states", report.states)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
