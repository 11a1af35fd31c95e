//! The same model in another checker, which counts the same states.

use stateright::{Checker, Model, Property};
use xds_machine_testing::search::{self, Model as _};

use super::world::{Budget, Step, World};

struct Stateright(Budget);

impl Model for Stateright {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(None, self.0)]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        world.steps(steps);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        next.take(step); // which checks what must hold
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("checked by each step", |_, _| true)]
    }
}

#[test]
fn two_checkers_count_the_same_states() {
    let budget = Budget { listeners: 1, routes: 2, clusters: 2, endpoints: 1, references: 1, late: 0, notes: 1 };
    let ours = search::explore(World::new(None, budget), 4_000_000);
    assert!(ours.complete && ours.fault.is_none(), "{:?}", ours.fault);
    let theirs = Stateright(budget).checker().threads(2).spawn_bfs().join();
    theirs.assert_properties();
    assert_eq!(theirs.unique_state_count(), ours.states);
}
