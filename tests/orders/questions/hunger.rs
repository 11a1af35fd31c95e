//! What is pending is sent after a bounded number of other responses, while the other resources change all the time.

use std::sync::Arc;

use xds_machine::{Delta, Sotw};
use xds_machine_testing::checker::walk;
use xds_machine_testing::world::{Both, Budget, Bug, Made, Setup};

const WALKS: u64 = 60;

fn busy(names: &[&str], make: fn(&[&str], Budget) -> Setup) -> Setup {
    make(names, Budget::NONE.wishes(8, 1).changes(250, 0).passes(40)).recorded()
}

fn first_fault<V: Both>(setup: &Arc<Made>) -> Option<(u64, String, usize)> {
    (0..WALKS).find_map(|seed| {
        let (steps, fault) = walk::walk::<V>(setup, seed);
        fault.map(|what| (seed, what, walk::shrink::<V>(setup, steps).0.len()))
    })
}

#[test]
fn nothing_waits_for_ever_behind_what_changes_all_the_time() {
    for make in [Setup::independent, Setup::order, Setup::warming] {
        for setup in [busy(&["a", "b"], make), busy(&["a", "b", "c"], make).response_limit(1)] {
            let setup = setup.make();
            assert_eq!(first_fault::<Delta>(&setup), None);
            assert_eq!(first_fault::<Sotw>(&setup), None);
        }
    }
}

/// Returns whether a walk is stopped by the bound, and not by another check that the bug breaks.
fn is_overtaken<V: Both>(setup: &Arc<Made>) -> bool {
    let is_found = |seed| walk::walk::<V>(setup, seed).1.is_some_and(|what| what.contains("responses overtook it"));
    (0..20 * WALKS).any(is_found)
}

#[test]
fn a_server_that_prefers_its_first_type_is_found() {
    let setup = busy(&["a"], Setup::independent).bug(Bug::FirstTypeWins).make();
    assert!(is_overtaken::<Delta>(&setup));
}
