//! The status that a client reports of each resource, against the knowledge of its application.

use xds_machine::client::ResourceStatus;
use xds_machine::{ResourceName, TypeUrl};

use super::{Application, Both, Pair, is_resource};

impl<V: Both> Pair<V> {
    /// Checks the status of every resource, as a dump would show it.
    pub(super) fn check_statuses(&self, types: &[TypeUrl], names: &[ResourceName]) {
        for (type_url, app) in types.iter().zip(&self.apps) {
            let resources = self.client.resources(type_url);
            for name in names.iter().filter(|name| is_resource(name)) {
                let state = resources.state(name.as_str());
                let has = app.applied.contains_key(name);
                let holds = state.is_some_and(|state| state.version.is_some());
                assert_eq!(holds, has, "{name} is applied, and the client holds it");
                check_status(app, name, state.map(|state| state.status));
            }
        }
    }
}

fn check_status(app: &Application, name: &ResourceName, status: Option<ResourceStatus>) {
    let [has, rejected] = [&app.applied, &app.rejected].map(|known| known.contains_key(name));
    let failed = app.failed.contains(name);
    match status {
        None => assert!(!app.wanted.contains(name) && !has, "{name} is subscribed or held, and has no status"),
        Some(ResourceStatus::Acked) => {
            // A removal that waits for its verdict ends an error.
            let ends = app.judging.is_some();
            assert!(has && (ends || !rejected && !failed), "{name} counts as accepted");
        }
        Some(ResourceStatus::Nacked) => {} // also for a heartbeat, which the application never sees
        Some(ResourceStatus::ReceivedError) => assert!(failed, "{name} counts as in error"),
        Some(ResourceStatus::DoesNotExist) => assert!(!has, "{name} counts as absent, and is held"),
        // A name that is subscribed to again has no error until the answer.
        Some(ResourceStatus::Requested) => assert!(!has, "{name} counts as requested"),
        Some(other) => panic!("{name} counts as {other:?}"),
    }
}
