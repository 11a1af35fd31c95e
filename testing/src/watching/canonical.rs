//! States in canonical form: a value that has only an order is replaced by its rank, and a time by the time remaining.

use std::hash::{Hash, Hasher};

use xds_machine::model::{Label, Relabel, canonical};

use super::{Both, Step, World};
use crate::search::Model;

impl<V: Both> Relabel for World<V> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        let Self { now, cache, client, server, actions, layer, verdicts, .. } = self;
        now.relabel(by);
        cache.relabel(by);
        client.relabel(by);
        server.relabel(by);
        actions.iter_mut().for_each(|action| action.relabel(by));
        layer.watches.relabel(by);
        verdicts.iter_mut().for_each(|verdict| verdict.relabel(by));
    }
}

impl<V: Both> Model for World<V> {
    type Step = Step;

    fn steps(&self, steps: &mut Vec<Step>) {
        World::steps(self, steps);
    }

    fn is_own(step: Step) -> bool {
        step.is_own()
    }

    fn take(&mut self, step: Step) {
        World::take(self, step);
    }

    fn check_settled(&self) {
        World::check_settled(self);
    }

    fn canonicalize(&mut self) {
        self.streams = canonical(self, self.now);
    }

    fn goals(&self) -> u128 {
        self.goals
    }
}

impl<V: Both> Hash for World<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            fixed: _,
            budget,
            now,
            cache,
            pointed,
            up,
            client,
            server,
            answered,
            streams,
            actions,
            layer,
            verdicts,
            ids,
            ghost,
            goals: _,
        } = self;
        (budget, now, cache, pointed, up, client, server, answered).hash(state);
        (streams, actions, layer, verdicts, ids, ghost).hash(state);
    }
}
