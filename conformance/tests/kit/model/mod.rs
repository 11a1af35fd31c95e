//! The referees are silent over the states of the default model, and complain of the seeded bugs that the wire shows.

mod bugs;
mod watched;

use std::collections::BTreeSet;

use xds_conformance::referee::Rule;
use xds_machine::{Delta, Sotw};
use xds_machine_testing::checker;
use xds_machine_testing::search::{self, Report, explore_all};
use xds_machine_testing::shapes::{self, Shape};
use xds_machine_testing::world::{Budget, Setup, Step};

use self::watched::Watched;

/// The number of states of each check in a test run.
const GLANCE: usize = 700;

/// The limit of states of each check with a seeded bug: more than any of these checks has, except that of the order of
/// types.
const OF_A_BUG: usize = 25_000;

/// Explores with the referees. A complaint is a fault, unless its rule is one of these.
fn explore(delta: bool, setup: Setup, may_complain: &[Rule], limit: usize) -> Report<Step> {
    let setup = setup.make();
    if delta {
        search::explore(Watched::<Delta>::new(&setup, may_complain), limit)
    } else {
        search::explore(Watched::<Sotw>::new(&setup, may_complain), limit)
    }
}

/// Returns the shapes of the default model. An application that gives no verdicts is a fault to a referee: a response has
/// no answer, and in SotW new names wait for it.
fn shapes_with_verdicts() -> Vec<Shape> {
    shapes::default().into_iter().filter(|shape| !shape.name.contains("silence")).collect()
}

/// Explores the default model, and prints a row for each shape. Returns the number of states.
fn is_silent(limit: usize) -> usize {
    let shapes = shapes_with_verdicts();
    let budgets: Vec<(&str, &[Budget])> = shapes.iter().map(|shape| (shape.name, &shape.budgets[..])).collect();
    let sums = explore_all(&budgets, |at, budget| {
        let shape = &shapes[at];
        explore(shape.delta, (shape.setup)(shape.names, budget), &[], limit)
    });
    for (shape, sum) in shapes.iter().zip(&sums) {
        let (names, all) = (shape.names.join(" "), if sum.complete { "all" } else { "cut off" });
        println!("| {} | `{names}` | {} | {} | {all} |", shape.name, sum.states, sum.transitions);
        assert!(sum.complete || limit < usize::MAX);
        let found = watched::rules(sum.goals);
        assert!(!sum.complete || found.is_empty(), "{}: {found:?}", shape.name);
    }
    let (states, transitions) = sums.iter().fold((0, 0), |all, sum| (all.0 + sum.states, all.1 + sum.transitions));
    println!("in total: {states} states, {transitions} transitions");
    states
}

#[test]
fn the_first_states_of_the_default_model_have_no_unexpected_violation() {
    let states = is_silent(GLANCE);
    assert!(states > 180_000, "{states} are too few to prove much");
}

/// `cargo test --release -p xds-conformance --test kit model:: -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes"]
fn all_states_of_the_default_model_have_no_unexpected_violation() {
    let states = is_silent(usize::MAX);
    assert!(states > 3_700_000, "{states} are too few to prove much");
}

#[test]
fn exploring_with_referees_visits_as_many_states_as_the_model_check() {
    for (delta, shape) in [(false, "sotw partial, two names"), (true, "delta, two names"), (true, "delta, errors")] {
        let shapes = shapes::default();
        let shape = shapes.iter().find(|other| other.name == shape).expect("a shape");
        // The nonces and numbers of an earlier stream have an order, which nothing depends on, in worlds that keep them.
        for &budget in shape.budgets.iter().filter(|budget| budget.cuts == 0) {
            let setup = (shape.setup)(shape.names, budget);
            let with = explore(delta, setup.clone(), &[], usize::MAX);
            let made = setup.make();
            let explore = if delta { checker::explore::<Delta> } else { checker::explore::<Sotw> };
            let without = explore(&made, usize::MAX);
            assert_eq!((with.states, with.transitions), (without.states, without.transitions), "{budget:?}");
        }
    }
}

#[test]
fn each_seeded_bug_breaks_exactly_the_expected_rules() {
    let (rows, mut faults) = (bugs::rows(), Vec::new());
    for row in &rows {
        let report = explore(row.delta, row.setup.clone().bug(row.bug), Rule::ALL, OF_A_BUG);
        let found = watched::rules(report.goals);
        if found != row.rules.iter().copied().collect::<BTreeSet<_>>() {
            faults.push(format!("{:?} ({} states): {found:?}", row.bug, report.states));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(rows.iter().map(|row| row.bug).collect::<BTreeSet<_>>().len(), 40, "every bug has a row");
}
