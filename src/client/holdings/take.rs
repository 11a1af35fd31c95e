//! Additions to the held resources: updates that were accepted, completely or in part, and resources from elsewhere.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::{Existence, Held, Holdings, Taken, WantedBy};
use crate::name::{ResourceName, Version, WILDCARD};
use crate::time::Instant;

impl Holdings {
    /// Adds the accepted part of an update.
    pub(in crate::client) fn take(&mut self, now: Instant, taken: &Taken<'_>) {
        let &Taken { out, rejected, implied, aliases } = taken;
        let resources = &out.offer.resources;
        let wildcard = self.wants(WILDCARD);
        let named = self.subscribed.len() > usize::from(wildcard);
        if !wildcard && !named {
            return;
        }
        let seen = out.seen.as_ref().filter(|seen| seen.plain && seen.losses == self.losses);
        if let Some(seen) =
            seen.filter(|_| implied && !named && !self.mixed && self.expiry.is_empty() && !self.has_extensions())
        {
            let new = seen.new.iter().map(|&at| resources.at(at).name().clone());
            return self
                .add(new.map(|name| (name, Held { version: Version::default(), accepted_at: None, claimed: true })));
        }
        let was_mixed = core::mem::replace(&mut self.mixed, !implied);
        // With the wildcard, the held and the received names are mostly the same, in the same order.
        let dense = wildcard && resources.len() > self.held.len() / 8;
        let stays = |name: &&&ResourceName| self.held.contains_key(**name);
        let stay: BTreeSet<&ResourceName> = rejected.iter().filter(stays).copied().collect();
        let Self { subscribed, globs, held, bindings, not_found, expiry, extended, lapsed, mixed, .. } = self;
        let mut new = Vec::with_capacity(if held.is_empty() { resources.len() } else { 0 });
        let mut ahead = dense.then(|| held.iter_mut().peekable());
        let (mut orphaned, mut unwanted, mut count) = (Vec::new(), Vec::new(), 0);
        for resource in resources.iter() {
            let name = resource.name();
            let accepted = !rejected.contains(name);
            if named {
                let glob = globs.of(name.as_str());
                let mut is_wanted = wildcard || glob.is_some();
                if let Some((glob, entry)) = glob.and_then(|glob| Some((glob, subscribed.get_mut(glob)?))) {
                    entry.answered = true;
                    if accepted && entry.existence == Existence::DoesNotExist {
                        entry.existence = Existence::Unknown;
                        not_found.remove(glob);
                    }
                }
                let others =
                    resource.aliases().iter().filter(|alias| aliases && *alias != name && !alias.is_wildcard());
                for name in others.chain([name]) {
                    if let Some(entry) = subscribed.get_mut(name) {
                        let by_alias = name != resource.name() && stay.contains(resource.name());
                        let before = if accepted || by_alias { Existence::Unknown } else { entry.existence };
                        entry.existence = if accepted { before } else { before.rejected() };
                        entry.complete = false;
                        not_found.remove(name);
                        is_wanted = true;
                        if accepted && name == resource.name() {
                            bindings.unbind(name); // a former alias is now a name itself
                        } else if accepted || by_alias {
                            // If the new content is rejected, the held content stays, and has the alias from now on.
                            orphaned.extend(bindings.insert(name, resource.name()));
                        } else if name != resource.name() {
                            // An alias leaves its former resource even if the resource that it moves to is rejected.
                            orphaned.extend(bindings.remove(name.as_str()));
                        }
                    }
                }
                // An alias that the resource had before and does not carry now may still cover it.
                if !is_wanted && !bindings.aliases(name.as_str()).any(|alias| !bindings.is_unbound(alias)) {
                    unwanted.push(name);
                    continue;
                }
            }
            if !accepted {
                continue;
            }
            expiry.set(name, resource.ttl().map(|ttl| now + ttl));
            extended.remove(name);
            lapsed.remove(name);
            let claimed = !out.unsubscribed.contains(name);
            let (version, accepted_at) = match implied && claimed {
                true => (Version::default(), None),
                false => (resource.version().clone(), Some(now)),
            };
            let held = Held { version, accepted_at, claimed };
            *mixed |= !claimed;
            count += 1;
            if let Some(ahead) = &mut ahead {
                while ahead.next_if(|(other, _)| *other < name).is_some() {}
                if let Some((_, place)) = ahead.next_if(|(other, _)| *other == name) {
                    *place = held;
                    continue;
                }
            }
            new.push((name.clone(), held));
        }
        self.add(new.into_iter());
        // Drops the earlier content of resources that were unsubscribed while the update waited for its verdict.
        unwanted.into_iter().for_each(|name| self.drop_held(name));
        // An alias moves to the last resource that carries it, and may have been the only name of its former target.
        self.drop_orphaned(orphaned);
        // Held resources that are not in the update, such as those with a heartbeat, are unchanged.
        self.mixed |= was_mixed && self.held.len() > count;
    }

    fn add(&mut self, new: impl Iterator<Item = (ResourceName, Held)>) {
        if self.held.is_empty() {
            self.held = new.collect(); // building the tree at once is faster, and its nodes are fuller
        } else {
            self.held.extend(new);
        }
    }

    /// Drops the former targets of aliases that moved, except those that another name covers.
    fn drop_orphaned(&mut self, mut targets: Vec<ResourceName>) {
        targets.retain(|name| self.wanted_by(name.as_str()) == WantedBy::Nothing);
        targets.iter().for_each(|name| self.drop_held(name));
    }

    /// Adds a resource from elsewhere, with its subscribed aliases. Returns what was held before.
    pub(in crate::client) fn adopt(
        &mut self,
        name: &ResourceName,
        aliases: &[ResourceName],
        expires: Option<Instant>,
    ) -> Option<Held> {
        let mut orphaned = Vec::new();
        for alias in aliases {
            self.not_found.remove(alias);
            self.change(alias.as_str(), |entry| entry.existence = Existence::Unknown);
            orphaned.extend(self.bindings.insert(alias, name));
        }
        self.not_found.remove(name);
        let before =
            self.held.insert(name.clone(), Held { version: Version::default(), accepted_at: None, claimed: false });
        self.mixed = true;
        self.expiry.set(name, expires);
        self.extended.remove(name);
        self.note_lost(name);
        self.drop_orphaned(orphaned);
        before
    }
}
