//! Random walks, which reach states that no exhaustive check does, and the shrinking of their faults.

use std::sync::Arc;

use super::catch;
use crate::random::Random;
use crate::world::{Both, Made, Step, World};

/// Walks at random until no step is left. Returns the steps, and the fault if there is one.
pub fn walk<V: Both>(setup: &Arc<Made>, seed: u64) -> (Vec<Step>, Option<String>) {
    let mut random = Random(seed);
    let mut world = World::<V>::new(setup.clone());
    let (mut taken, mut steps) = (Vec::new(), Vec::new());
    loop {
        steps.clear();
        world.steps(&mut steps);
        let protocol = steps.iter().filter(|step| step.is_protocol()).count();
        if protocol == 0 {
            if let Some(what) = catch(|| world.check_settled()) {
                return (taken, Some(what));
            }
        }
        if steps.is_empty() {
            return (taken, None);
        }
        // The protocol steps come first in the list, and together are as likely as all steps of the environment.
        let protocol_moves = protocol > 0 && random.below(2) == 0;
        let step = steps[random.below(if protocol_moves { protocol } else { steps.len() })];
        taken.push(step);
        if let Some(what) = catch(|| world.take(step)) {
            return (taken, Some(what));
        }
        assert!(taken.len() < 100_000, "no end: {:?}", &taken[99_900..]);
    }
}

/// Lets the protocol settle, in an order that the seed determines, and checks the settled state.
pub fn settle<V: Both>(world: &mut World<V>, seed: u64) {
    let (mut random, mut steps) = (Random(seed), Vec::new());
    loop {
        steps.clear();
        world.protocol_steps(&mut steps);
        if steps.is_empty() {
            return world.check_settled();
        }
        world.take(steps[random.below(steps.len())]);
    }
}

/// Replays steps, then lets the world settle. Returns the fault and the number of steps before it; `None` without a
/// fault, or if a step can't be taken.
pub fn replay<V: Both>(setup: &Arc<Made>, steps: &[Step]) -> Option<(usize, String)> {
    let mut world = World::<V>::new(setup.clone());
    for (at, &step) in steps.iter().enumerate() {
        if !world.can(step) {
            return None;
        }
        if let Some(what) = catch(|| world.take(step)) {
            return Some((at + 1, what));
        }
    }
    catch(|| settle(&mut world, 0)).map(|what| (steps.len(), what))
}

/// Removes steps from a faulty run as long as it stays faulty.
pub fn shrink<V: Both>(setup: &Arc<Made>, mut steps: Vec<Step>) -> (Vec<Step>, String) {
    let Some((len, mut what)) = replay::<V>(setup, &steps) else { return (steps, "not reproduced".into()) };
    steps.truncate(len);
    loop {
        let before = steps.len();
        for size in [8, 4, 3, 2, 1] {
            let mut at = 0;
            while at + size <= steps.len() {
                let mut fewer = steps.clone();
                fewer.drain(at..at + size);
                match replay::<V>(setup, &fewer) {
                    Some((len, other)) => {
                        fewer.truncate(len);
                        (steps, what) = (fewer, other);
                    }
                    None => at += 1,
                }
            }
        }
        if steps.len() == before {
            return (steps, what);
        }
    }
}
