//! The names of one authority, and who is asked for them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::config::{Policy, ServerId};
use crate::name::{ResourceName, TypeUrl};

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Group {
    pub(super) authority: Option<Arc<str>>,
    /// In the order in which they are preferred.
    pub(super) servers: Vec<usize>,
    pub(super) wanted: BTreeMap<TypeUrl, BTreeSet<ResourceName>>,
    /// So many servers, the first ones, want the names, and know what the application has of them.
    pub(super) members: usize,
    /// The place of the server whose word counts.
    pub(super) current: usize,
    /// `Policy::Envoy`: failures of the primary in a row, up to two.
    pub(super) failures: u8,
    /// `Policy::Envoy`: the primary answered once.
    pub(super) reached: bool,
    /// The application was told that nobody can be reached.
    pub(super) unreachable: bool,
}

impl Group {
    pub(super) fn new(authority: Option<Arc<str>>, servers: Vec<usize>) -> Self {
        let wanted = BTreeMap::new();
        let (members, current, failures) = (1, 0, 0);
        Self { authority, servers, wanted, members, current, failures, reached: false, unreachable: false }
    }

    /// The place of a server that is asked for the names, or should be.
    pub(super) fn place(&self, policy: Policy, server: usize) -> Option<usize> {
        if self.wanted.is_empty() {
            return None;
        }
        let asked = match policy {
            Policy::Grpc => 0..self.members,
            Policy::Envoy => self.current..self.current + 1,
        };
        self.servers.iter().position(|&known| known == server).filter(|place| asked.contains(place))
    }

    /// The server whose word counts.
    pub(super) fn server(&self) -> usize {
        self.servers[self.current]
    }

    pub(super) fn server_id(&self) -> ServerId {
        ServerId(self.server())
    }

    pub(super) fn members(&self) -> &[usize] {
        &self.servers[..self.members]
    }

    /// Wants these. Returns those of them that are new.
    pub(super) fn want(&mut self, type_url: &TypeUrl, names: Vec<ResourceName>) -> Vec<ResourceName> {
        let wanted = self.wanted.entry(type_url.clone()).or_default();
        names.into_iter().filter(|name| wanted.insert(name.clone())).collect()
    }

    pub(super) fn want_no_more(&mut self, type_url: &TypeUrl, names: &[ResourceName]) {
        if let Some(wanted) = self.wanted.get_mut(type_url) {
            names.iter().for_each(|name| _ = wanted.remove(name));
            if wanted.is_empty() {
                self.wanted.remove(type_url);
            }
        }
    }
}
