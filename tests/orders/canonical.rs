//! A canonical state goes on as the state itself does: otherwise the model would explore other machines than the real
//! ones.

use xds_machine::{Delta, Sotw};
use xds_machine_testing::random::Random;
use xds_machine_testing::shapes::{self, Shape};
use xds_machine_testing::world::{Both, World};

/// Walks through a shape with a world as it is and with one that becomes canonical after each step. Returns the number
/// of steps.
fn walk<V: Both>(shape: &Shape, seed: u64) -> usize {
    let mut random = Random(seed);
    let budget = shape.budgets[random.below(shape.budgets.len())];
    let setup = (shape.setup)(shape.names, budget).make();
    if setup.clients > 1 {
        return 0; // the nonces of several streams have an order among them, which nothing depends on
    }
    let (mut world, mut canonical) = (World::<V>::new(setup.clone()), World::<V>::new(setup));
    let (mut taken, mut steps) = (Vec::new(), Vec::new());
    loop {
        steps.clear();
        world.steps(&mut steps);
        if steps.is_empty() {
            return taken.len();
        }
        let step = steps[random.below(steps.len())];
        taken.push(step);
        world.take(step);
        canonical.take(step);
        canonical.canonicalize();
        let mut expected = world.clone();
        expected.canonicalize();
        if canonical != expected {
            let (is, should) = (format!("{canonical:?}"), format!("{expected:?}"));
            let at = is.bytes().zip(should.bytes()).position(|(a, b)| a != b).unwrap_or_default();
            let part = |of: &str| of.chars().skip(at.saturating_sub(200)).take(300).collect::<String>();
            panic!("{}, seed {seed}: {taken:?}\nis:     {}\nshould: {}", shape.name, part(&is), part(&should));
        }
    }
}

#[test]
fn a_canonical_state_goes_on_as_the_state_itself_does() {
    let mut steps = 0;
    for shape in &shapes::default() {
        for seed in 0..40 {
            steps += if shape.delta { walk::<Delta>(shape, seed) } else { walk::<Sotw>(shape, seed) };
        }
    }
    assert!(steps > 20_000, "{steps} steps prove little");
}
