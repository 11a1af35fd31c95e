//! What a server reads of its source is bounded by what changed, what was asked for, and what is sent.

use std::sync::Arc;

use xds_machine::{Delta, Sotw};
use xds_machine_testing::checker::walk;
use xds_machine_testing::world::{Both, Budget, Bug, Made, Setup};

fn wide(make: fn(&[&str], Budget) -> Setup) -> Setup {
    let names: Vec<String> = (0..100).map(|i| format!("r{i}")).chain(["*".into()]).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // Few streams: a request for all is a reason to read all.
    make(&names, Budget::NONE.wishes(45, 5).changes(250, 60).cuts(1).rejects(9).refetches(9).passes(40)).recorded()
}

fn first_fault<V: Both>(setup: &Arc<Made>) -> Option<String> {
    (0..2).find_map(|seed| walk::walk::<V>(setup, seed).1)
}

#[test]
fn reads_have_reasons() {
    for make in [Setup::full_state, Setup::order, Setup::warming] {
        let setup = wide(make);
        for setup in [setup.clone(), setup.clone().ttl(), setup.clone().response_limit(2), setup.page(3)] {
            let setup = setup.make();
            assert_eq!(first_fault::<Delta>(&setup), None, "{:?}", setup.setup);
            assert_eq!(first_fault::<Sotw>(&setup), None, "{:?}", setup.setup);
        }
    }
}

#[test]
fn a_server_that_reads_everything_is_found() {
    let setup = wide(Setup::partial).bug(Bug::ReadsAll).make();
    let what = first_fault::<Delta>(&setup).expect("it is found");
    assert!(what.contains("entries of the source were read"), "{what}");
}
