//! Reduces a failing run: removes every step that the failure does not need.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Arc;

use xds_machine_testing::checker::walk;
use xds_machine_testing::shrink::fewest;
use xds_machine_testing::world::{Both, Made, Step, World};

use crate::run::{attempt, come_to_rest};

thread_local! {
    /// The place and message of the last failed check.
    static CHECK: RefCell<Option<(Location, String)>> = const { RefCell::new(None) };
}

/// A file and a line.
type Location = (String, u32);

fn note(panic: &PanicHookInfo<'_>) {
    let payload = panic.payload();
    let what = payload.downcast_ref::<String>().cloned();
    let what = what.or_else(|| Some((*payload.downcast_ref::<&str>()?).to_owned())).unwrap_or_default();
    CHECK.set(panic.location().map(|at| ((at.file().to_owned(), at.line()), what)));
}

/// Records panics from now on, instead of printing them.
pub fn note_panics() {
    panic::set_hook(Box::new(note));
}

/// Returns the last panic of this thread.
pub fn last_panic() -> Option<(Location, String)> {
    CHECK.take()
}

/// Plays the steps that are possible, and lets the world come to rest. Returns the number of steps until the failure,
/// and the check that failed.
fn failure<V: Both>(setup: &Arc<Made>, steps: &[Step], on: impl Fn(&World<V>, Step)) -> Option<(usize, Location)> {
    let at = Cell::new(0);
    let play = || {
        let mut world = World::<V>::new(setup.clone());
        for &step in steps {
            at.set(at.get() + 1);
            // Time passes only when the world is quiet, and must not pass merely because an earlier step was removed.
            let waits = step == Step::Tick && {
                // A poll of the server counts as a step only if it yields something.
                let polled = (0..setup.clients).filter(|&c| attempt(&mut world, Step::ServerSends { c })).count();
                let mut steps = Vec::new();
                world.protocol_steps(&mut steps);
                polled > 0 || steps != [Step::Tick]
            };
            if !waits && attempt(&mut world, step) {
                on(&world, step);
            }
        }
        come_to_rest(&mut world, &on);
    };
    let failed = panic::catch_unwind(AssertUnwindSafe(play)).is_err();
    failed.then(|| at.get()).zip(last_panic().map(|(place, _)| place))
}

/// Returns the fewest steps for which the same check fails, and finally prints them with the failure.
pub fn shrink<V: Both>(setup: &Arc<Made>, mut steps: Vec<Step>) -> Vec<Step> {
    note_panics();
    let check = failure::<V>(setup, &steps, |_, _| {}).map(|(_, check)| check);
    let fails = |mut fewer: Vec<Step>| {
        let (len, at) = failure::<V>(setup, &fewer, |_, _| {})?;
        fewer.truncate(len);
        (Some(at) == check).then_some(fewer)
    };
    // Removes all steps of a client first, because most clients are not needed.
    for c in 0..setup.clients {
        let fewer = steps.iter().copied().filter(|step| step.client() != Some(c)).collect();
        steps = fails(fewer).unwrap_or(steps);
    }
    steps = fewest(steps, fails);
    let _ = panic::take_hook();
    failure::<V>(setup, &steps, |world, step| println!("{}", walk::line(world, step)));
    steps
}
