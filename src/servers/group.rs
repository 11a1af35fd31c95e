//! The names of one authority, and the servers that are used for them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::config::{Policy, ServerId};
use crate::name::{ResourceName, TypeUrl};

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Group {
    pub(super) authority: Option<Arc<str>>,
    /// The servers in order of preference.
    pub(super) servers: Vec<usize>,
    pub(super) subscribed: BTreeMap<TypeUrl, BTreeSet<ResourceName>>,
    /// The number of servers, counted from the first, that are subscribed to the names and know the application's
    /// resources.
    pub(super) members: usize,
    /// The position of the authoritative server.
    pub(super) current: usize,
    /// `Policy::Envoy`: consecutive failures of the primary, up to two.
    pub(super) failures: u8,
    /// `Policy::Envoy`: the primary responded once.
    pub(super) reached: bool,
    /// The application was informed that no server is reachable.
    pub(super) unreachable: bool,
}

impl Group {
    pub(super) fn new(authority: Option<Arc<str>>, servers: Vec<usize>) -> Self {
        let subscribed = BTreeMap::new();
        let (members, current, failures) = (1, 0, 0);
        Self { authority, servers, subscribed, members, current, failures, reached: false, unreachable: false }
    }

    /// Returns the position of a server that is, or should be, subscribed to the names.
    pub(super) fn place(&self, policy: Policy, server: usize) -> Option<usize> {
        if self.subscribed.is_empty() {
            return None;
        }
        let asked = match policy {
            Policy::Grpc => 0..self.members,
            Policy::Envoy => self.current..self.current + 1,
        };
        self.servers.iter().position(|&known| known == server).filter(|place| asked.contains(place))
    }

    /// Returns the authoritative server.
    pub(super) fn server(&self) -> usize {
        self.servers[self.current]
    }

    pub(super) fn server_id(&self) -> ServerId {
        ServerId(self.server())
    }

    pub(super) fn members(&self) -> &[usize] {
        &self.servers[..self.members]
    }

    /// Adds subscribed names. Returns those that are new.
    pub(super) fn subscribe(&mut self, type_url: &TypeUrl, names: Vec<ResourceName>) -> Vec<ResourceName> {
        let subscribed = self.subscribed.entry(type_url.clone()).or_default();
        names.into_iter().filter(|name| subscribed.insert(name.clone())).collect()
    }

    pub(super) fn unsubscribe(&mut self, type_url: &TypeUrl, names: &[ResourceName]) {
        if let Some(subscribed) = self.subscribed.get_mut(type_url) {
            names.iter().for_each(|name| _ = subscribed.remove(name));
            if subscribed.is_empty() {
                self.subscribed.remove(type_url);
            }
        }
    }
}
