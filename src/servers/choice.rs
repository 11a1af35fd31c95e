//! The choice of servers: the two policies.

use alloc::vec::Vec;

use super::action::Action;
use super::config::{Policy, ServerId};
use super::{Servers, authority};
use crate::client::Variant;
use crate::name::{ResourceName, TypeUrl};
use crate::time::Instant;

/// The name of a resource, the aliases by which it is subscribed to, and the time when it expires.
type Held = (ResourceName, Vec<ResourceName>, Option<Instant>);

impl<V: Variant> Servers<V> {
    /// Records that a stream ended or could not be opened. `answered`: the stream had carried a response.
    pub(super) fn ended(&mut self, server: usize, answered: bool) {
        for at in 0..self.groups.len() {
            let group = &mut self.groups[at];
            let Some(place) = group.place(self.policy, server) else { continue };
            let last = place == group.current;
            match self.policy {
                Policy::Grpc if answered || !last => {} // gRFC A57: a server may end a stream after a response
                Policy::Grpc => self.fall_back_or_report(at),
                Policy::Envoy if place > 0 => {
                    self.turn_to(at, 0);
                    if !answered {
                        self.unreachable(at, server);
                    }
                }
                Policy::Envoy if answered => {}
                Policy::Envoy if group.reached || group.servers.len() == 1 => self.unreachable(at, server),
                Policy::Envoy => {
                    group.failures = (group.failures + 1).min(2);
                    if group.failures >= 2 {
                        self.turn_to(at, 1);
                    }
                }
            }
        }
    }

    /// Records a response.
    pub(super) fn answered(&mut self, server: usize) {
        for at in 0..self.groups.len() {
            let group = &mut self.groups[at];
            let Some(place) = group.place(self.policy, server) else { continue };
            if self.policy == Policy::Envoy && place > 0 {
                self.reachable(at);
                continue; // the primary is retried when this stream ends
            }
            (group.failures, group.reached) = (0, true);
            for leaving in place + 1..group.members {
                self.leave(at, leaving, place);
            }
            let group = &mut self.groups[at];
            group.members = place + 1;
            if core::mem::replace(&mut group.current, place) != place {
                self.switched(at);
            }
            self.reachable(at);
        }
        self.clear_failures();
    }

    /// Resets servers that are no longer used, so that a server that is used again is tried before it counts as
    /// failing. The server's backoff continues.
    pub(super) fn clear_failures(&mut self) {
        for server in 0..self.links.len() {
            if self.links[server].failing && !self.is_used(server) {
                self.links[server].failing = false;
            }
        }
    }

    /// `Policy::Grpc`: falls back to the next servers if gRFC A71 requires it, or reports that none is left.
    pub(super) fn fall_back_or_report(&mut self, at: usize) {
        self.fall_back(at);
        let server = self.groups[at].server();
        if self.links[server].failing {
            self.unreachable(at, server);
        }
    }

    /// `Policy::Grpc`: falls back to the next servers, up to one that is not known to fail, if the last server in use
    /// fails and nothing is known about some subscribed resource (gRFC A71).
    pub(super) fn fall_back(&mut self, at: usize) {
        let mut joined = false;
        loop {
            let group = &self.groups[at];
            let fails = self.policy == Policy::Grpc && self.links[group.server()].failing;
            if !fails || group.members == group.servers.len() || !(joined || self.lacks(at)) {
                break;
            }
            self.join(at);
            joined = true;
        }
        if joined {
            self.switched(at);
        }
    }

    /// `Policy::Envoy`: switches servers, of which one is used at a time.
    fn turn_to(&mut self, at: usize, place: usize) {
        if place == self.groups[at].members {
            self.join(at);
        }
        self.groups[at].current = place;
        self.switched(at);
    }

    /// Subscribes the next server of a list to the names, and informs its client about the application's resources.
    fn join(&mut self, at: usize) {
        let group = &self.groups[at];
        let (from, to) = (group.server(), group.servers[group.members]);
        for (type_url, names) in &group.subscribed {
            let subscribed = self.links[to].client.resources_mut(type_url).subscribe(names);
            debug_assert!(subscribed.is_ok(), "these are names");
            let held = self.held(at, from, type_url);
            let known = self.links[from].client.layer(type_url);
            let missing: Vec<ResourceName> = names.iter().filter(|&name| known.does_not_exist(name)).cloned().collect();
            let held = held.iter().map(|(name, aliases, _)| (name, &aliases[..], None));
            let mut layer = self.links[to].client.layer_mut(type_url);
            layer.adopt_with_aliases(held);
            layer.mark_does_not_exist(&missing);
        }
        let group = &mut self.groups[at];
        group.current = group.members;
        group.members += 1;
        self.block_while_judged(to);
    }

    /// Stops using a server of a list. The application keeps the server's resources, which expire as before.
    fn leave(&mut self, at: usize, leaving: usize, stays: usize) {
        let group = &self.groups[at];
        let (from, to) = (group.servers[leaving], group.servers[stays]);
        for (type_url, names) in &group.subscribed {
            let held = self.held(at, from, type_url);
            let expiring = held.iter().filter(|(_, _, expires)| expires.is_some());
            let expiring = expiring.map(|(name, aliases, expires)| (name, &aliases[..], *expires));
            self.links[to].client.layer_mut(type_url).adopt_with_aliases(expiring);
            self.links[from].client.resources_mut(type_url).unsubscribe(names);
        }
    }

    /// Returns the resources of a group that the application has, as a server's client knows them. A resource that is
    /// subscribed to by an alias belongs to the group of the alias.
    pub(super) fn held(&self, at: usize, server: usize, type_url: &TypeUrl) -> Vec<Held> {
        let layer = self.links[server].client.layer(type_url);
        let with_aliases = layer.held().map(|(name, expires)| {
            let aliases: Vec<ResourceName> = layer.aliases(name).cloned().collect();
            (name.clone(), aliases, expires)
        });
        let of_group =
            |(name, aliases, _): &Held| self.group_of(aliases.first().unwrap_or(name).as_str()).unwrap_or(0) == at;
        with_aliases.filter(of_group).collect()
    }

    /// Returns whether nothing is known about some subscribed resource. A resource that does not exist counts as known
    /// (C-TIMER-18).
    fn lacks(&self, at: usize) -> bool {
        let group = &self.groups[at];
        let awaited = |type_url, name: &ResourceName| {
            group.members().iter().all(|&server| self.links[server].client.layer(type_url).is_awaited(name))
        };
        group.subscribed.iter().any(|(type_url, names)| names.iter().any(|name| awaited(type_url, name)))
    }

    /// Returns the list that a name belongs to; `None` if the authority is unknown or has no servers.
    pub(super) fn group_of(&self, name: &str) -> Option<usize> {
        let at = match authority::of(name) {
            None => 0,
            Some(authority) => *self.authorities.get(authority)?,
        };
        (!self.groups[at].servers.is_empty()).then_some(at)
    }

    pub(super) fn switched(&mut self, at: usize) {
        let group = &self.groups[at];
        self.actions.push(Action::Switched { authority: group.authority.clone(), to: group.server_id() });
        // With Envoy's policy the servers alternate until one responds.
        if self.policy == Policy::Grpc && !self.links[self.groups[at].server()].failing {
            self.reachable(at);
        }
    }

    pub(super) fn unreachable(&mut self, at: usize, server: usize) {
        let group = &mut self.groups[at];
        group.unreachable = true;
        self.actions.push(Action::Unreachable { authority: group.authority.clone(), server: ServerId(server) });
    }

    /// Reports that the servers are reachable, if the application was informed otherwise.
    pub(super) fn reachable(&mut self, at: usize) {
        let group = &mut self.groups[at];
        if core::mem::take(&mut group.unreachable) {
            self.actions.push(Action::Reachable { authority: group.authority.clone() });
        }
    }
}
