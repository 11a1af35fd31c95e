//! No type disturbs another, and no name another: twins that take the same steps with and without the rest.

use std::sync::Arc;

use xds_machine::{Delta, Sotw, type_url};
use xds_machine_testing::search;
use xds_machine_testing::world::apart::{self, Apart, Kept};
use xds_machine_testing::world::{Both, Budget, Bug, Made, Setup};

const WALKS: u64 = 40;
const TURNS: usize = 300;

/// Returns the first difference of some walks, reduced.
fn first_fault<V: Both>(setup: &Arc<Made>, kept: Kept) -> Option<String> {
    (0..WALKS).find_map(|seed| {
        let (turns, what) = apart::walk::<V>(setup, kept, seed, TURNS)?;
        Some(format!("{what}\n{:?}\n{:?}", setup.setup, apart::shrink::<V>(setup, kept, turns)))
    })
}

fn check(setup: Setup, kept: Kept) {
    let setup = setup.make();
    assert_eq!(first_fault::<Delta>(&setup, kept), None);
    assert_eq!(first_fault::<Sotw>(&setup, kept), None);
}

fn plenty() -> Budget {
    Budget::PLENTY.silences(2).passes(250)
}

/// Worlds, each with the type that no other holds up. Clusters wait for nothing, but for their removal, which follows
/// that of the listeners.
fn types() -> [(Setup, usize); 3] {
    let names = &["*", "a", "b"];
    let [order, warming] = [Setup::order, Setup::warming].map(|make| make(names, Budget { deletes: 0, ..plenty() }));
    [Setup::independent(names, plenty()), order, warming].map(|setup| {
        let first = setup.types.iter().position(|url| *url == type_url::CLUSTER).unwrap_or(0);
        (setup, first)
    })
}

#[test]
fn no_type_disturbs_another() {
    for (setup, t) in types() {
        check(setup.clone(), Kept::Type(t));
        check(setup.clone().response_limit(1), Kept::Type(t));
        check(setup.ttl(), Kept::Type(t));
    }
    check(Setup::independent(&["a", "b"], plenty()), Kept::Type(1));
}

#[test]
fn no_name_disturbs_another() {
    for make in [Setup::full_state, Setup::partial] {
        let setup = make(&["a", "*", "b", "c"], plenty());
        check(setup.clone(), Kept::Name(0));
        check(setup.response_limit(1), Kept::Name(0));
    }
}

#[test]
fn no_type_disturbs_another_in_any_order() {
    let setup = Setup::independent(&["a"], Budget::NONE.wishes(2, 0).changes(1, 0).passes(2)).make();
    for report in [
        search::explore(Apart::<Delta>::new(&setup, Kept::Type(0)), usize::MAX),
        search::explore(Apart::<Sotw>::new(&setup, Kept::Type(0)), usize::MAX),
    ] {
        eprintln!("{}", report.states);
        assert!(report.fault.is_none(), "{:?}", report.fault);
    }
}

/// Returns the length of a shortest trace to a difference.
fn shortest<V: Both>(setup: Setup, kept: Kept) -> usize {
    let report = search::explore(Apart::<V>::new(&setup.make(), kept), usize::MAX);
    let fault = report.fault.expect("the twins differ");
    assert!(fault.what.contains("is disturbed"), "{}", fault.what);
    fault.trace.len()
}

#[test]
fn what_disturbs_is_found_by_a_shortest_trace() {
    let budget = Budget::NONE.wishes(2, 0);
    let one_at_a_time = |puts| Setup::independent(&["a"], budget.changes(puts, 0)).bug(Bug::OneTypeAtATime);
    assert_eq!(shortest::<Delta>(one_at_a_time(0), Kept::Type(1)), 5);
    assert_eq!(shortest::<Sotw>(one_at_a_time(2), Kept::Type(1)), 7);
    let drops = Setup::full_state(&["a", "b"], budget.changes(2, 0).rejects(1)).bug(Bug::DropsTheGood);
    assert_eq!(shortest::<Delta>(drops, Kept::Name(0)), 7);
}
