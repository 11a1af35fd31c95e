//! What a server holds at rest is what it held when it began: after any walk, once the client wants nothing more, the
//! machine of the stream is about as small as one on which a name of each type was wanted for a moment.
//!
//! The case counts the bytes of the allocator, and so runs alone.

use std::sync::Arc;

use benches::alloc;
use xds_machine::{Delta, Sotw};
use xds_machine_testing::checker::walk;
use xds_machine_testing::world::{Both, Budget, Made, Setup, Step, World};

#[global_allocator]
static COUNTING: alloc::Counting = alloc::Counting;

/// The bytes that a walk may leave besides for each type, which is the room of a few boxes. A record for each of the
/// 100 names takes more.
const SLACK: i64 = 1_500;

fn main() {
    for make in [Setup::full_state, Setup::partial, Setup::order, Setup::warming] {
        let names: Vec<String> = (0..100).map(|i| format!("r{i:03}")).chain(["*".into()]).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let budget = Budget { cuts: 2, fails: 0, ..Budget::PLENTY };
        let setup = make(&names, budget.wishes(250, 60).changes(250, 60));
        for setup in [setup.clone(), setup.response_limit(2)] {
            check::<Delta>(&setup);
            check::<Sotw>(&setup);
        }
    }
    println!("servers at rest: ok");
}

fn check<V: Both>(setup: &Setup) {
    let setup = setup.clone().make();
    let first: Vec<Step> = (0..setup.types.len()).map(|t| Step::Subscribe { c: 0, t, n: 0 }).collect();
    let first = held::<V>(&setup, &first);
    for seed in 0..2 {
        let (steps, fault) = walk::walk::<V>(&setup, seed);
        assert_eq!(fault, None);
        let rest = held::<V>(&setup, &steps);
        println!("  {rest} bytes, {first} at first");
        assert!(
            rest <= first + SLACK * setup.types.len() as i64,
            "{rest} bytes at rest, {first} at first: {:?}",
            setup.setup
        );
    }
}

/// Returns the bytes that a server holds after some steps, once the application wants nothing more and everything has
/// settled.
fn held<V: Both>(setup: &Arc<Made>, steps: &[Step]) -> i64 {
    let mut world = World::<V>::new(setup.clone());
    steps.iter().for_each(|&step| world.take(step));
    walk::settle(&mut world, 0);
    for t in 0..setup.types.len() {
        for n in 0..setup.names.len() {
            let step = Step::Unsubscribe { c: 0, t, n };
            world.budget.unsubscribes = 1;
            if world.can(step) {
                world.take(step);
            }
        }
    }
    walk::settle(&mut world, 0);
    let server = world.pairs[0].server.take();
    let before = alloc::live() as i64;
    drop(server);
    before - alloc::live() as i64
}
