//! Steps of the world, as proptest makes and shrinks them.

use std::fmt;
use std::marker::PhantomData;

use proptest::collection::vec;
use proptest::prelude::*;

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
        let (setup, _) = words::setup::<V>(&self.shape);
        let turns: Vec<_> = self.turns.iter().map(|&(byte, run)| (words::step(byte, &setup), run)).collect();
        write!(f, "{:?}\n{turns:?}", setup.setup)
    }
}

impl<V: Both> Story<V> {
    pub(super) fn play(&self) {
        let mut world = self.world();
        for at in 0..self.turns.len() {
            self.turn(&mut world, at);
        }
        words::settle(&mut world, self.turns.len() as u64);
    }

    pub(super) fn play_twice(&self, seed: u64) {
        let (mut one, mut other) = (self.world(), self.world());
        other.store = Store::with_seed(&other.setup, seed);
        for at in 0..self.turns.len() {
            self.turn(&mut one, at);
            self.turn(&mut other, at);
            assert_eq!(encoded(&one), encoded(&other), "what is on the wire after turn {at}");
        }
        assert!(one == other);
    }

    fn world(&self) -> World<V> {
        World::new(words::setup::<V>(&self.shape).0)
    }

    fn turn(&self, world: &mut World<V>, at: usize) {
        let (byte, run) = self.turns[at];
        match words::step(byte, &world.setup) {
            Step::Tick => words::settle(world, at as u64),
            step if world.can(step) => world.take(step),
            _ => {}
        }
        words::run(world, run, at as u64);
    }
}

fn encoded<V: Both>(world: &World<V>) -> Vec<Vec<u8>> {
    let requests = world.pairs.iter().flat_map(|pair| pair.up.iter().map(V::encode_request));
    let responses = world.pairs.iter().flat_map(|pair| pair.down.iter().map(V::encode_response));
    requests.chain(responses).collect()
}
