//! States in canonical form: a value that has only an order is replaced by its rank among those of its server, and a
//! time by the time remaining.

use std::hash::{Hash, Hasher};

use xds_machine::model::{Label, Ranks, Relabel};

use super::{Both, Side, Step, World};
use crate::search::Model;

impl<V: Both> Relabel for World<V> {
    /// Visits the labels of each server separately.
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        let Self { servers, sides, apps, now, .. } = self;
        now.relabel(by);
        servers.relabel(by);
        apps.iter_mut().flat_map(|app| app.judging.values_mut()).for_each(|(update, _)| update.relabel(by));
        for (s, Side { cache, stream, server, to, from, .. }) in sides.iter_mut().enumerate() {
            by(Label::Client(s as u64));
            stream.relabel(by);
            cache.relabel(by);
            server.relabel(by);
            to.iter_mut().for_each(|request| request.relabel(by));
            from.iter_mut().for_each(|response| response.relabel(by));
        }
    }
}

impl<V: Both> Model for World<V> {
    type Step = Step;

    fn steps(&self, steps: &mut Vec<Step>) {
        let (own, others) = World::steps(self);
        let later = self.due().is_some_and(|due| due > self.now);
        let others = others.into_iter().filter(|&step| match step {
            Step::Early => later && !own.is_empty(),
            _ => true,
        });
        steps.extend(others.filter(|&step| self.budget.is_none_or(|budget| budget.allows(step))));
        if own.is_empty() && later {
            steps.push(Step::Tick);
        }
        steps.extend(own);
    }

    fn is_own(step: Step) -> bool {
        use Step::{Accept, ClientReads, ClientSends, Connect, Opened, Refused, ServerReads, ServerSends, Tick};
        matches!(
            step,
            Connect
                | Opened { .. }
                | Refused { .. }
                | ClientSends { .. }
                | ServerReads { .. }
                | ServerSends { .. }
                | ClientReads { .. }
                | Accept { .. }
                | Tick
        )
    }

    fn may_repeat(step: Step) -> bool {
        matches!(step, Step::Connect | Step::Refused { .. } | Step::Tick)
    }

    fn take(&mut self, step: Step) {
        World::take(self, step);
    }

    fn check_settled(&self) {
        World::check_settled(self);
    }

    fn canonicalize(&mut self) {
        let (mut ranks, now) = (vec![Ranks::default(); self.sides.len()], self.now);
        let mut of = 0;
        self.relabel(&mut |label| {
            of = if let Label::Client(id) = &label { *id as usize } else { of };
            ranks[of].note(&label);
        });
        of = 0;
        self.relabel(&mut |label| {
            of = if let Label::Client(id) = &label { *id as usize } else { of };
            ranks[of].replace(now, label);
        });
        // Each server has at most one stream.
        self.streams = 1;
    }

    fn goals(&self) -> u128 {
        self.goals
    }
}

impl<V: Both> Hash for World<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { fixed: _, budget, servers, sides, apps, now, streams, current, unreachable, faulty, goals: _ } =
            self;
        (budget, servers, sides, apps, now, streams, current, unreachable, faulty).hash(state);
    }
}
