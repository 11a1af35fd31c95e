//! Both machines, a wire and an application: after any steps the protocol comes to rest, and the client's resources
//! equal the server's.

use xds_machine::{Delta, Sotw};
use xds_machine_testing::world::{Both, Step, World, words};

/// Plays two machines that keep the rules, in an arbitrary environment.
pub fn world(data: &[u8]) {
    let Some((&which, data)) = data.split_first() else { return };
    if which % 2 == 0 { play::<Sotw>(data) } else { play::<Delta>(data) }
}

fn play<V: Both>(data: &[u8]) {
    let (setup, steps) = words::setup::<V>(data);
    let mut world = World::<V>::new(setup.clone());
    for (at, &byte) in steps.iter().enumerate() {
        match words::step(byte, &setup) {
            // Time passes only when all is quiet, so the world settles first.
            Step::Tick => words::settle(&mut world, at as u64 ^ u64::from(byte)),
            step if world.can(step) => world.take(step),
            _ => {}
        }
    }
    words::settle(&mut world, steps.len() as u64);
}
