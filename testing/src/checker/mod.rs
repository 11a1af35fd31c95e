//! The search ([`crate::search`]), random walks and shrinking, in a [`World`].

pub mod walk;

use std::sync::Arc;

pub use crate::search::catch;
use crate::search::{self, Model};
use crate::world::{Both, Budget, Made, Step, World};

/// The result of exploring a [`World`].
pub type Report = search::Report<Step>;

/// Explores all states, or slightly more than `limit`. Stops at the first fault.
pub fn explore<V: Both>(setup: &Arc<Made>, limit: usize) -> Report {
    search::explore(World::<V>::new(setup.clone()), limit)
}

/// Like `explore`, from the settled state after some steps, regardless of the budget.
pub fn explore_from<V: Both>(setup: &Arc<Made>, begun: &[Step], limit: usize) -> Report {
    let mut world = World::<V>::new(setup.clone());
    world.budget = Budget::PLENTY;
    let at_rest = catch(|| {
        begun.iter().for_each(|&step| world.take(step));
        walk::settle(&mut world, 0);
    });
    let fault = at_rest.map(|what| search::Fault { what, trace: begun.to_vec() });
    if fault.is_some() {
        return Report { fault, ..Report::default() };
    }
    world.budget = setup.budget;
    search::explore(world, limit)
}

impl<V: Both> Model for World<V> {
    type Step = Step;

    fn steps(&self, steps: &mut Vec<Step>) {
        World::steps(self, steps);
    }

    fn is_own(step: Step) -> bool {
        step.is_protocol()
    }

    fn take(&mut self, step: Step) {
        World::take(self, step);
    }

    fn check_settled(&self) {
        World::check_settled(self);
    }

    fn canonicalize(&mut self) {
        World::canonicalize(self);
    }

    fn goals(&self) -> u128 {
        self.pairs.iter().map(|pair| pair.goals.0).fold(0, |all, of| all | of)
    }
}
