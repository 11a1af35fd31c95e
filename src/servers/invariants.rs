//! The invariants of the layer, which hold between any two calls.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use super::Servers;
use super::link::Link;
use crate::client::{Update, Variant};
use crate::ensure::ensure;

impl<V: Variant> Servers<V> {
    /// Checks the invariants: see [`Client::check_invariants`](crate::client::Client::check_invariants).
    ///
    /// # Errors
    ///
    /// A description of the violated invariant, which is a bug in this crate.
    pub fn check_invariants(&self) -> Result<(), String> {
        for (server, link) in self.links.iter().enumerate() {
            link.client.check_invariants().map_err(|what| format!("server {server}: {what}"))?;
            for update in link.out.iter().map(|out| &out.update) {
                let all = |link: &Link<V>| link.client.resources(update.type_url()).interest().wildcard();
                for &other in link.related.iter().filter(|&&other| !all(link) && !all(&self.links[other])) {
                    let beside = self.links[other].out.iter().map(|out| &out.update);
                    let beside = beside.filter(|beside| beside.type_url() == update.type_url());
                    let names = |of: &Update| of.resources().map(|it| it.name().clone()).collect::<BTreeSet<_>>();
                    let both = beside.flat_map(names).find(|name| update.resource(name.clone()).is_some());
                    ensure!(both.is_none(), "{both:?} is in updates of servers {server} and {other} at the same time");
                }
            }
        }
        for (at, group) in self.groups.iter().enumerate() {
            ensure!(group.members >= 1, "nobody is asked");
            ensure!(group.current < group.members, "the word of a server counts that is not asked");
            ensure!(!group.unreachable || !group.subscribed.is_empty(), "nothing is wanted, and nobody can be reached");
            ensure!(group.subscribed.values().all(|names| !names.is_empty()), "a type is wanted without names");
            for type_url in group.subscribed.keys() {
                let names =
                    |server| self.held(at, server, type_url).into_iter().map(|(name, aliases, _)| (name, aliases));
                let (first, others) = (group.servers[0], &group.members()[1..]);
                let differs = others.iter().find(|&&other| !names(first).eq(names(other)));
                ensure!(
                    differs.is_none(),
                    "servers {first} and {differs:?} differ in what the application has of {type_url}"
                );
            }
        }
        Ok(())
    }
}
