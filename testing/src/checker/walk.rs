//! Random walks, which reach states that no exhaustive check does, and the shrinking of their faults.

use std::sync::Arc;

use super::catch;
use crate::random::Random;
use crate::shrink::fewest;
use crate::world::{Both, Made, Step, World, words};

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
    for _ in 0..words::SETTLES {
        steps.clear();
        world.protocol_steps(&mut steps);
        if steps.is_empty() {
            return world.check_settled();
        }
        world.take(steps[random.below(steps.len())]);
    }
    panic!("the protocol does not come to rest");
}

/// Replays those of the steps that are possible, then lets the world settle. Returns the fault and the steps that were
/// taken before it; `None` without a fault.
pub fn replay<V: Both>(setup: &Arc<Made>, steps: &[Step]) -> Option<(Vec<Step>, String)> {
    let mut world = World::<V>::new(setup.clone());
    let mut taken = Vec::new();
    for &step in steps {
        // Time must not pass merely because an earlier step is missing.
        let possible = if step == Step::Tick { is_quiet(&world) && world.can(step) } else { world.can(step) };
        if possible {
            taken.push(step);
            if let Some(what) = catch(|| world.take(step)) {
                return Some((taken, what));
            }
        }
    }
    catch(|| settle(&mut world, 0)).map(|what| (taken, what))
}

/// The steps of a world that tries to settle which [`tell`] returns at most.
const TOLD: usize = 100;

/// Returns a line for each step of a faulty run, with the message that the step put on the wire; then for each step in
/// which the world tries to settle.
pub fn tell<V: Both>(setup: &Arc<Made>, steps: &[Step]) -> String {
    let (mut world, mut lines) = (World::<V>::new(setup.clone()), String::new());
    let mut take = |world: &mut World<V>, step: Step| {
        let fault = catch(|| world.take(step));
        lines += &line(world, step);
        lines.push('\n');
        fault.is_none()
    };
    if steps.iter().all(|&step| take(&mut world, step)) {
        let (mut random, mut left) = (Random(0), Vec::new());
        for _ in 0..TOLD {
            left.clear();
            world.protocol_steps(&mut left);
            if left.is_empty() || !take(&mut world, left[random.below(left.len())]) {
                break;
            }
        }
    }
    lines
}

/// Returns a step that was taken, with the time and the last message on the wire that the step writes to.
pub fn line<V: Both>(world: &World<V>, step: Step) -> String {
    let message = match step {
        Step::ClientSends { c } => world.pairs[c].up.back().map(|request| format!(" {:?}", V::request(request))),
        Step::ServerSends { c } => world.pairs[c].down.back().map(|response| format!(" {:?}", V::response(response))),
        _ => None,
    };
    format!("{:?} {step:?}{}", world.now, message.unwrap_or_default())
}

/// Returns whether nothing is left but to wait.
fn is_quiet<V: Both>(world: &World<V>) -> bool {
    let mut steps = Vec::new();
    world.protocol_steps(&mut steps);
    steps.iter().all(|&step| step == Step::Tick)
}

/// Removes steps from a faulty run as long as it stays faulty.
pub fn shrink<V: Both>(setup: &Arc<Made>, steps: Vec<Step>) -> (Vec<Step>, String) {
    let Some((steps, mut what)) = replay::<V>(setup, &steps) else { return (steps, "not reproduced".into()) };
    let steps = fewest(steps, |fewer| {
        let (taken, fault) = replay::<V>(setup, &fewer)?;
        what = fault;
        Some(taken)
    });
    (steps, what)
}
