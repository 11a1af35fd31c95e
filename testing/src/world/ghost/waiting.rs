//! Nothing waits without a clock: a server that has not sent all sends it now, or has a time-out that is to come.

use xds_machine::{Instant, ResourceName};

use super::super::{Made, Store, is_resource};
use super::{Ghost, Memory};

/// A time-out that never comes.
const NEVER: Instant = Instant::from_epoch(std::time::Duration::MAX);

impl Ghost {
    /// Checks that nothing waits without a clock, and that no clock stands still: a server that has nothing to send now,
    /// and has not sent all, has a time-out, which is to come.
    pub fn check_waiting(&mut self, setup: &Made, store: &Store, now: Instant, due: Option<Instant>) {
        assert!(due.is_none_or(|due| due > now), "a time-out that has come stays");
        for t in (0..setup.types.len()).filter(|t| store.is_known(*t)) {
            if let Some((name, _)) = self.types[t].unsent(setup, store, t).next() {
                assert!(due.is_some_and(|due| due < NEVER), "{name} is not sent, and waits without a clock");
            } else {
                self.types[t].time_passed &= self.types[t].is_out();
            }
        }
    }

    /// Checks that everything is sent, whether it is answered or not.
    pub fn check_sent(&self, setup: &Made, store: &Store, t: usize) {
        if self.up && store.is_known(t) {
            let unsent = self.types[t].unsent(setup, store, t).next();
            assert_eq!(unsent, None, "type {t}: a resource is not sent, though time has passed");
        }
    }
}

impl Memory {
    /// Returns the subscribed resources that are not sent in their current form, and were not rejected.
    pub(super) fn unsent(&self, setup: &Made, store: &Store, t: usize) -> impl Iterator<Item = (ResourceName, u8)> {
        let names = setup.names.iter().filter(|name| is_resource(name));
        names.filter_map(move |name| {
            let content = store.content(setup, t, name).filter(|content| self.server_wants(name, Some(*content)))?;
            let has = [self.delivered.get(name), self.rejected.get(name)].contains(&Some(&content));
            (!has).then(|| (name.clone(), content))
        })
    }
}
