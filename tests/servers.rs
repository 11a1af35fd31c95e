//! Several servers that fail and come back in any order, against a naive reference: which are asked, and what the
//! application has in the end.

mod several;

use several::{Both, Setup, Step, World};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use xds_machine::servers::Policy;
use xds_machine::{Delta, Sotw, type_url};

/// A small random number generator (splitmix64): a seed reproduces a run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

const AB: &[&str] = &["a", "b"];
const ALL: &[&str] = &["*", "a", "b"];
const OF_X: &[&str] = &["a", "xdstp://x/TYPE/b"];

const SETUPS: &[Setup] = &[
    Setup { policy: Policy::Grpc, lists: &[("", &[0, 1])], names: AB, type_url: type_url::CLUSTER },
    Setup { policy: Policy::Grpc, lists: &[("", &[0, 1])], names: AB, type_url: type_url::ENDPOINT },
    Setup { policy: Policy::Grpc, lists: &[("", &[0, 1])], names: ALL, type_url: type_url::CLUSTER },
    Setup { policy: Policy::Grpc, lists: &[("", &[0, 1, 2])], names: AB, type_url: type_url::CLUSTER },
    Setup { policy: Policy::Grpc, lists: &[("", &[0, 1]), ("x", &[1, 2])], names: OF_X, type_url: type_url::CLUSTER },
    Setup { policy: Policy::Grpc, lists: &[("", &[0, 1]), ("x", &[1, 0])], names: OF_X, type_url: type_url::ENDPOINT },
    Setup { policy: Policy::Envoy, lists: &[("", &[0, 1])], names: ALL, type_url: type_url::CLUSTER },
    Setup { policy: Policy::Envoy, lists: &[("", &[0, 1]), ("x", &[2])], names: OF_X, type_url: type_url::ENDPOINT },
];

/// Walks, and now and then lets everything come to rest.
fn walk<V: Both>(setup: &'static Setup, seed: u64, goals: &mut BTreeSet<&'static str>) {
    let (mut random, mut world, mut trace) = (Random(seed), World::<V>::new(setup), Vec::new());
    let walked = catch_unwind(AssertUnwindSafe(|| {
        for _ in 0..6 {
            for _ in 0..random.below(40) {
                let (own, others) = world.steps();
                let of = if own.is_empty() || random.below(4) == 0 { others } else { own };
                let step = of[random.below(of.len())];
                trace.push(step);
                world.take(step);
            }
            rest(&mut random, &mut world, &mut trace);
        }
    }));
    goals.extend(&world.goals);
    if let Err(panic) = walked {
        let name = std::any::type_name::<V>();
        eprintln!("{name}, {:?} {:?}, seed {seed}, at the end:", setup.lists, setup.type_url);
        eprintln!("{:?}", &trace[trace.len().saturating_sub(80)..]);
        std::panic::resume_unwind(panic);
    }
}

/// Everything that goes on by itself goes on, and time passes until every timer and every backoff had its turn.
fn rest<V: Both>(random: &mut Random, world: &mut World<V>, trace: &mut Vec<Step>) {
    // Longer than any backoff, and then some existence time-outs.
    let until = world.now() + Duration::from_secs(300);
    while world.now() < until {
        let mut steps = 0;
        loop {
            let (own, _) = world.steps();
            if own.is_empty() {
                break;
            }
            let step = own[random.below(own.len())];
            trace.push(step);
            world.take(step);
            steps += 1;
            assert!(steps < 2000, "no end");
        }
        if world.due().is_none() {
            break;
        }
        trace.push(Step::Tick);
        world.take(Step::Tick);
    }
    loop {
        let (own, _) = world.steps();
        let Some(&step) = own.first() else { break };
        trace.push(step);
        world.take(step);
    }
    world.check_settled();
}

#[test]
fn what_is_wanted_comes_from_the_best_server_that_can_be_reached() {
    let seeds = std::env::var("WALKS").map_or(40, |walks| walks.parse().expect("a number"));
    for setup in SETUPS {
        let mut goals = BTreeSet::new();
        for seed in 0..seeds {
            walk::<Sotw>(setup, seed, &mut goals);
            walk::<Delta>(setup, seed, &mut goals);
        }
        assert_eq!(goals, ["back", "on", "unreachable"].into(), "{:?}", setup.lists);
    }
}
