//! Faulty layers, each with one defect of a driver or of a layer above the servers.

use std::collections::BTreeMap;

use xds_machine::servers::{Connect, Policy};
use xds_machine::{ResourceName, Version};

use super::{Both, World};

/// A defect of a layer. The check must find each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bug {
    /// Falls back to the next server when one fails, though all subscribed resources are known (gRFC A71).
    FallsBackThoughCached,
    /// Claims a version to the server that sent it, though another server replaced the resource.
    ClaimsReplaced,
    /// Does not retry a server once another is in use.
    StaysOnFallback,
    /// Keeps the stream of a server that is no longer used.
    KeepsStream,
}

/// The memory of a faulty layer: for each server, the versions that it sent last.
#[derive(Clone, Default, Hash)]
pub(super) struct Faulty {
    sent: BTreeMap<(usize, ResourceName), Version>,
}

impl<V: Both> World<V> {
    fn has(&self, bug: Bug) -> bool {
        self.fixed.setup.bug == Some(bug)
    }

    pub(super) fn is_overlooked(&self, next: Connect) -> bool {
        let preferred = |stream: xds_machine::servers::Stream| {
            let s = stream.server().0;
            (0..self.current.len()).any(|l| self.list(l)[..self.current[l]].contains(&s))
        };
        self.has(Bug::StaysOnFallback) && matches!(next, Connect::Open(stream) if preferred(stream))
    }

    /// Handles the failure of a server.
    pub(super) fn forget_all(&mut self) {
        if self.has(Bug::FallsBackThoughCached) && self.fixed.setup.policy == Policy::Grpc {
            for (type_url, app) in self.fixed.types.iter().zip(&self.apps) {
                self.servers.resources_mut(type_url).forget(app.has.keys().map(ResourceName::as_str));
            }
        }
    }

    pub(super) fn note_accepted(&mut self, s: usize, t: usize) {
        if self.has(Bug::ClaimsReplaced) {
            let (update, _) = &self.apps[t].judging[&s];
            let sent = update.resources().map(|of| ((s, of.name().clone()), of.version().clone()));
            self.faulty.sent.extend(sent);
        }
    }

    pub(super) fn claim(&self, s: usize, request: &mut V::Request) {
        let Some(initial) = V::request_mut(request).initial else { return };
        let mut versions = BTreeMap::from(&*initial);
        for (name, version) in versions.iter_mut().filter(|(_, version)| version.is_empty()) {
            if let Some(sent) = self.faulty.sent.get(&(s, name.clone())) {
                *version = sent.clone();
            }
        }
        *initial = versions.into();
    }
}
