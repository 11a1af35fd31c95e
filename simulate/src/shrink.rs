//! What is left of a run that fails when all is taken out that it fails without.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use crate::run::{attempt, come_to_rest};
use crate::world::{Both, Made, Step, World};

/// Plays steps, those that can be taken, and lets the world come to rest. After how many steps it failed.
fn failure<V: Both>(setup: &Arc<Made>, steps: &[Step]) -> Option<usize> {
    let at = Cell::new(0);
    let play = || {
        let mut world = World::<V>::new(setup.clone());
        for &step in steps {
            at.set(at.get() + 1);
            attempt(&mut world, step);
        }
        come_to_rest(&mut world, &mut |_| {});
    };
    panic::catch_unwind(AssertUnwindSafe(play)).is_err().then(|| at.get())
}

/// The fewest steps, and at last how they fail, aloud.
pub fn shrink<V: Both>(setup: &Arc<Made>, mut steps: Vec<Step>) -> Vec<Step> {
    panic::set_hook(Box::new(|_| {}));
    let mut size = steps.len();
    while size > 0 {
        let (mut at, before) = (0, steps.len());
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + size).min(steps.len()));
            match failure::<V>(setup, &fewer) {
                Some(len) => {
                    fewer.truncate(len);
                    steps = fewer;
                }
                None => at += size,
            }
        }
        size = if steps.len() < before && size == 1 { 1 } else { size / 2 };
    }
    let _ = panic::take_hook();
    failure::<V>(setup, &steps);
    steps
}
