//! States in canonical form: a value that has only an order is replaced by its rank, and a time by the time remaining.

use std::hash::{Hash, Hasher};

use xds_machine::model::{Label, Relabel, canonical};

use super::{Both, Pair, World};

impl<V: Both> World<V> {
    /// Makes the state canonical for comparison. The state can be continued: later labels are new.
    pub fn canonicalize(&mut self) {
        self.streams = canonical(self, self.now);
    }
}

impl<V: Both> Relabel for World<V> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        let Self { setup: _, budget: _, now, store, streams: _, pairs } = self;
        now.relabel(by);
        store.relabel(by);
        for Pair { client, server, up, down, sending, apps, ghost, faulty, goals: _ } in pairs {
            client.relabel(by);
            server.relabel(by);
            up.iter_mut().for_each(|request| request.relabel(by));
            down.iter_mut().for_each(|response| response.relabel(by));
            sending.relabel(by);
            for app in apps {
                app.judging.relabel(by);
                app.until.values_mut().for_each(|until| until.relabel(by));
                app.extended.values_mut().for_each(|own| own.relabel(by));
            }
            ghost.relabel(by);
            faulty.relabel(by);
        }
    }
}

impl<V: Both> Hash for World<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { setup: _, budget, now, store, streams, pairs } = self;
        (budget, now, store, streams, pairs).hash(state);
    }
}

impl<V: Both> PartialEq for World<V> {
    fn eq(&self, other: &Self) -> bool {
        let Self { setup: _, budget, now, store, streams, pairs } = self;
        *budget == other.budget
            && *now == other.now
            && *store == other.store
            && *streams == other.streams
            && *pairs == other.pairs
    }
}

impl<V: Both> Eq for World<V> {}
