//! Layers that get it wrong, each in one way: what a driver, or what stands between it and the servers, can do wrong.

use std::collections::BTreeMap;

use xds_machine::servers::{Connect, Policy};
use xds_machine::{ResourceName, Version};

use super::{Both, World};

/// What a layer can do wrong. The check has to find each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bug {
    /// Asks the next server when one fails, though all that is wanted is known (gRFC A71).
    FallsBackThoughCached,
    /// Claims to a server what that server sent once, though another replaced it (C-RECON-05).
    ClaimsReplaced,
    /// Does not try a server again once another is used.
    StaysOnFallback,
    /// Keeps the stream of a server that is not asked any more.
    KeepsStream,
}

/// What such a layer remembers: of each server, what it sent last.
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

    /// A server failed.
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

    pub(super) fn claim(&self, s: usize, request: &mut V::Req) {
        for (name, version) in
            V::request_mut(request).initial.into_iter().flatten().filter(|(_, version)| version.is_empty())
        {
            if let Some(sent) = self.faulty.sent.get(&(s, name.clone())) {
                *version = sent.clone();
            }
        }
    }
}
