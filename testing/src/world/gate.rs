//! What stands between a machine and its wire: steps that a transport, or a seeded bug, does not allow now.

use xds_machine::type_url;

use super::{Both, Bug, Made, Pair, Store};

impl<V: Both> Pair<V> {
    /// Returns whether the server may be polled for a response.
    pub(super) fn may_send(&self, setup: &Made) -> bool {
        let has_room = !self.ghost.is_any_out();
        has_room || (setup.bug != Some(Bug::OneTypeAtATime) && (!setup.room || setup.bug == Some(Bug::NeedsRoom)))
    }

    /// Returns whether a seeded bug sends now what it held back for the first type.
    pub(super) fn sends_kept(&self, setup: &Made, store: &Store) -> bool {
        self.faulty.keeps() && !self.ghost.is_busy(setup, store, 0)
    }

    /// Returns whether the client reads what is on the wire.
    pub(super) fn may_read(&self, setup: &Made) -> bool {
        let judges = || self.apps.iter().any(|app| app.judging.is_some());
        self.client.wants_response() && (setup.bug != Some(Bug::StopsReading) || !judges())
    }

    /// Returns whether the application of a type may give its verdict now.
    pub(super) fn judges(&self, setup: &Made, t: usize) -> bool {
        self.apps[t].judging.is_some() && !self.is_silent(setup, t)
    }

    /// Returns whether the application of a type gives no verdict, or none before another type has answered.
    pub(super) fn is_silent(&self, setup: &Made, t: usize) -> bool {
        self.apps[t].silent || self.warms(setup, t)
    }

    /// Returns whether clusters wait for endpoints that the application asked for, and of which it knows nothing yet.
    fn warms(&self, setup: &Made, t: usize) -> bool {
        let endpoints = setup.types.iter().position(|url| url == type_url::ENDPOINT);
        let Some(endpoints) = endpoints.filter(|_| setup.warms && setup.types[t] == type_url::CLUSTER) else {
            return false;
        };
        let app = &self.apps[endpoints];
        let lacks =
            |name| app.wanted.contains(name) && !app.applied.contains_key(name) && !app.missing.contains_key(name);
        let judged = self.apps[t].judging.as_ref();
        judged.is_some_and(|update| update.resources().any(|cluster| lacks(cluster.name())))
    }
}
