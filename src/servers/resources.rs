//! The resources of one type, regardless of their server: the application's subscriptions.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::config::Policy;
use super::link::Link;
use super::{ServerId, Servers};
use crate::client::{self, Client, ResourceState, Variant};
use crate::error::Misuse;
use crate::name::{ResourceName, TypeUrl};

impl<V: Variant> Servers<V> {
    /// Returns the resources of one type, to subscribe and unsubscribe.
    pub fn resources_mut<'a>(&'a mut self, type_url: &'a TypeUrl) -> ResourcesMut<'a, V> {
        ResourcesMut { servers: self, type_url }
    }

    /// Returns the state of every resource at each server's client, for a dump (CSDS): see [`Client::states`]. A
    /// resource that several servers are subscribed to occurs once for each; the state at
    /// [`server_of`](Self::server_of) is authoritative.
    pub fn states(&self) -> impl Iterator<Item = (ServerId, &TypeUrl, &ResourceName, ResourceState<'_>)> {
        self.links.iter().enumerate().flat_map(|(server, link)| {
            link.client.states().map(move |(type_url, name, state)| (ServerId(server), type_url, name, state))
        })
    }

    /// Returns the client of one server for queries; `None` if the server does not exist.
    pub fn client(&self, server: ServerId) -> Option<&Client<V>> {
        Some(&self.links.get(server.0)?.client)
    }

    /// Returns whether the application holds a resource, whichever server sent it.
    pub fn is_held(&self, type_url: &TypeUrl, name: &ResourceName) -> bool {
        let held = |link: &Link<V>| {
            let state = link.client.resources(type_url).state(name);
            state.is_some_and(|state| state.version.is_some())
        };
        self.links.iter().any(held)
    }

    /// Returns the authoritative server for a resource of this name; `None` if the name's authority is not configured.
    pub fn server_of(&self, name: impl Into<ResourceName>) -> Option<ServerId> {
        self.group_of(name.into().as_str()).map(|at| self.groups[at].server_id())
    }

    fn by_group(&self, names: impl IntoIterator<Item = impl Into<ResourceName>>) -> BTreeMap<usize, Vec<ResourceName>> {
        let mut sorted: BTreeMap<usize, Vec<ResourceName>> = BTreeMap::new();
        for name in names.into_iter().map(Into::into) {
            if let Some(at) = self.group_of(name.as_str()) {
                sorted.entry(at).or_default().push(name);
            }
        }
        sorted
    }
}

/// The resources of one type, for subscriptions: see [`Servers::resources_mut`].
#[derive(Debug)]
pub struct ResourcesMut<'a, V: Variant> {
    servers: &'a mut Servers<V>,
    type_url: &'a TypeUrl,
}

impl<V: Variant> ResourcesMut<'_, V> {
    /// Subscribes to these resources at the servers of their authorities: see [`client::ResourcesMut::subscribe`].
    ///
    /// # Errors
    ///
    /// As for [`client::ResourcesMut::subscribe`], and [`Misuse::NoServer`] if the authority of a name is not
    /// configured; then none of the names is subscribed to.
    pub fn subscribe(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) -> Result<(), Misuse> {
        let Self { servers, type_url } = self;
        let mut sorted: BTreeMap<usize, Vec<ResourceName>> = BTreeMap::new();
        for name in names.into_iter().map(Into::into) {
            client::check_wish(&name, type_url)?;
            let Some(at) = servers.group_of(name.as_str()) else { return Err(Misuse::NoServer { name }) };
            sorted.entry(at).or_default().push(name);
        }
        for (at, names) in sorted {
            let new = servers.groups[at].subscribe(type_url, names);
            if new.is_empty() {
                continue;
            }
            for place in 0..servers.groups[at].members {
                let server = servers.groups[at].servers[place];
                servers.links[server].client.resources_mut(type_url).subscribe(&new)?;
                servers.block_while_judged(server);
            }
            // gRFC A71: known resources of a failing server cause no fallback; the new names do.
            if servers.links[servers.groups[at].server()].failing && servers.policy == Policy::Grpc {
                servers.fall_back_or_report(at);
            }
        }
        Ok(())
    }

    /// Unsubscribes from these resources: see [`client::ResourcesMut::unsubscribe`].
    pub fn unsubscribe(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        let Self { servers, type_url } = self;
        for (at, names) in servers.by_group(names) {
            servers.groups[at].unsubscribe(type_url, &names);
            for place in 0..servers.groups[at].members {
                let server = servers.groups[at].servers[place];
                servers.links[server].client.resources_mut(type_url).unsubscribe(&names);
            }
            if servers.groups[at].subscribed.is_empty() {
                servers.reachable(at);
            }
            let group = &mut servers.groups[at];
            if servers.policy == Policy::Grpc && group.subscribed.is_empty() {
                group.members = 1;
                if core::mem::take(&mut group.current) > 0 {
                    servers.switched(at);
                }
            }
        }
        servers.clear_failures();
    }

    /// Requests subscribed resources again from the authoritative server: see [`client::ResourcesMut::refetch`].
    pub fn refetch(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        for (at, names) in self.servers.by_group(names) {
            let server = self.servers.groups[at].server();
            self.servers.links[server].client.resources_mut(self.type_url).refetch(&names);
        }
    }

    /// Records that the application lost these resources: see [`client::LayerMut::forget`].
    pub fn forget(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        let names: Vec<ResourceName> = names.into_iter().map(Into::into).collect();
        // Whichever server sent the resource, and whichever name it was subscribed by.
        self.servers.links.iter_mut().for_each(|link| link.client.layer_mut(self.type_url).forget(&names));
        (0..self.servers.groups.len()).for_each(|at| self.servers.review(at));
    }

    /// Holds back the type's requests to every server: see [`client::ResourcesMut::pause`].
    pub fn pause(&mut self) {
        self.servers.links.iter_mut().for_each(|link| link.client.resources_mut(self.type_url).pause());
    }

    /// Ends one [`pause`](Self::pause).
    ///
    /// # Errors
    ///
    /// [`Misuse::NotPaused`].
    pub fn resume(&mut self) -> Result<(), Misuse> {
        self.servers.links.iter_mut().try_for_each(|link| link.client.resources_mut(self.type_url).resume())
    }
}
