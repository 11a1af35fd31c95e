//! The stories many times over, in memory: `cargo test --release -p xds-conformance --test kit -- --ignored`.

use xds_conformance::client::memory as client_memory;
use xds_conformance::client::run::run;
use xds_conformance::memory::{Faultless, Memory};
use xds_conformance::message::Variant;
use xds_conformance::run::Verdict;
use xds_conformance::suite;
use xds_machine::client::Config;
use xds_machine::message::Node;
use xds_machine::{Delta, Sotw};

use crate::client_cases::{VARIANTS, settings};

const RUNS: usize = 1_000;

#[test]
#[ignore = "minutes"]
fn no_case_fails_in_a_thousand_runs_with_this_projects_server() {
    let stories = suite::server().expect("stories");
    for run in 0..RUNS {
        // One server for all stories of a run, as over sockets.
        let mut peer = Memory::new(Faultless);
        for (number, (variant, story)) in stories.iter().enumerate().filter(|(_, (_, story))| !story.restarts()) {
            let mut played = suite::play(story, *variant, &story.types, &format!("k-{run}-{number}-"), None, &mut peer);
            played.iter_mut().for_each(|played| played.runner.clean(&mut peer));
            let outcome = suite::worst(&played);
            assert_eq!(outcome.verdict, Verdict::Pass, "{} {}: {}", story.id, run, outcome.ladder.join("\n  "));
        }
    }
}

#[test]
#[ignore = "minutes"]
fn no_case_fails_in_a_thousand_runs_with_this_projects_client() {
    for number in 0..RUNS {
        for variant in VARIANTS {
            let config = || Config::new(Node::new(format!("client-{number}")));
            let rows = match variant {
                Variant::Sotw => {
                    let mut client = client_memory::Memory::<Sotw, _>::new(config(), client_memory::Faultless);
                    run(&mut client, &settings(variant), &mut |_| {})
                }
                Variant::Delta => {
                    let mut client = client_memory::Memory::<Delta, _>::new(config(), client_memory::Faultless);
                    run(&mut client, &settings(variant), &mut |_| {})
                }
            };
            for row in rows.expect("a client that asks").0 {
                assert_eq!(row.verdict, Verdict::Pass, "{} {number}: {}", row.id, row.ladder.join("\n  "));
            }
        }
    }
}
