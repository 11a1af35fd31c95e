//! Steps of the world, as proptest makes and shrinks them.

use std::fmt;
use std::marker::PhantomData;

use proptest::collection::vec;
use proptest::prelude::*;

use xds_machine_testing::checker::catch;
use xds_machine_testing::checker::walk::{shrink, tell};
use xds_machine_testing::world::{Both, Step, Store, World, words};

/// The shape of a world, and the events in it.
#[derive(Clone)]
pub(super) struct Story<V> {
    shape: [u8; words::SHAPE],
    turns: Vec<Turn>,
    variant: PhantomData<V>,
}

/// A step, if possible, and the number of protocol steps after it.
type Turn = (u8, usize);

pub(super) fn story<V: Both>() -> impl Strategy<Value = Story<V>> {
    (any::<[u8; words::SHAPE]>(), vec((any::<u8>(), 0..4_usize), 100..400)).prop_map(|(shape, turns)| Story {
        shape,
        turns,
        variant: PhantomData,
    })
}

impl<V: Both> fmt::Debug for Story<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the story of {} turns that is told above", self.turns.len())
    }
}

impl<V: Both> Story<V> {
    /// Plays the story, and at a fault prints the fewest steps that lead to it.
    pub(super) fn play(&self) {
        let (mut world, mut taken) = (self.world(), Vec::new());
        let fault = catch(|| {
            for at in 0..self.turns.len() {
                self.turn(&mut world, at, |step| taken.push(step));
            }
            settle(&mut world, self.turns.len(), |step| taken.push(step));
        });
        if let Some(what) = fault {
            let setup = &world.setup;
            let (steps, _) = shrink::<V>(setup, taken);
            panic!("{what}\n{:?}\n{steps:?}\n{}", setup.setup, tell::<V>(setup, &steps));
        }
    }

    pub(super) fn play_twice(&self, seed: u64) {
        let (mut one, mut other) = (self.world(), self.world());
        other.store = Store::with_seed(&other.setup, seed);
        for at in 0..self.turns.len() {
            self.turn(&mut one, at, |_| {});
            self.turn(&mut other, at, |_| {});
            assert_eq!(encoded(&one), encoded(&other), "what is on the wire after turn {at}");
        }
        assert!(one == other);
    }

    fn world(&self) -> World<V> {
        World::new(words::setup::<V>(&self.shape).0)
    }

    fn turn(&self, world: &mut World<V>, at: usize, mut note: impl FnMut(Step)) {
        let (byte, run) = self.turns[at];
        match words::step(byte, &world.setup) {
            Step::Tick => settle(world, at, &mut note),
            step if world.can(step) => {
                note(step);
                world.take(step);
            }
            _ => {}
        }
        words::run_noting(world, run, at as u64, note);
    }
}

fn settle<V: Both>(world: &mut World<V>, at: usize, note: impl FnMut(Step)) {
    assert!(words::run_noting(world, words::SETTLES, at as u64, note), "the protocol does not come to rest");
    world.check_settled();
}

fn encoded<V: Both>(world: &World<V>) -> Vec<Vec<u8>> {
    let requests = world.pairs.iter().flat_map(|pair| pair.up.iter().map(V::encode_request));
    let responses = world.pairs.iter().flat_map(|pair| pair.down.iter().map(V::encode_response));
    requests.chain(responses).collect()
}
