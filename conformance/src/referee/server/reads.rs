//! The effect of each message: requests give reasons for responses and make names owed, responses use them up.

use std::collections::BTreeSet;

use super::super::{Rule, World};
use super::of_type::{Held, OfType, Wildcard, covers, is_collection};
use crate::message::{Item, Request, Response, Variant};

impl OfType {
    /// Reads the list of a SotW request.
    pub(super) fn read_list(&mut self, request: &Request, first: bool) {
        let mut list: BTreeSet<String> = request.names.iter().cloned().collect();
        self.named |= !list.is_empty();
        let wildcard = match list.remove("*") {
            true => Wildcard::Yes,
            false if self.named => Wildcard::No,
            // The legacy wildcard. The text names LDS and CDS; for other types, servers differ.
            false if self.full_state => Wildcard::Yes,
            false => Wildcard::Maybe,
        };
        if first {
            self.claimed = !request.version.is_empty();
        }
        let stale = !first && request.nonce != self.last_nonce;
        self.outstanding |= !first;
        if !stale {
            self.unanswered.clear();
        }
        let known = |name: &String| self.names.contains(name) && self.maybe.iter().all(|list| list.contains(name));
        let grows = !list.iter().all(known) || (wildcard != Wildcard::No && self.wildcard != wildcard) || first;
        if grows {
            self.give_reason_for_all();
        }
        if stale {
            // A server may drop a stale request, or heed it.
            if wildcard != Wildcard::No {
                list.insert("*".into());
                self.left_wildcard = true;
            }
            self.maybe.push(list);
            return;
        }
        let (maybe, crossing) = (std::mem::take(&mut self.maybe), std::mem::take(&mut self.crossing));
        if !maybe.is_empty() && grows {
            self.give_reason_for_all();
        }
        let had_wildcard = self.wildcard != Wildcard::No;
        let added: Vec<String> = list.difference(&self.names).cloned().collect();
        let may_be_heeded = |name: &&String| maybe.iter().any(|list| list.contains(*name));
        let doubtful: Vec<String> = list.iter().filter(may_be_heeded).cloned().collect();
        let heeded = maybe.iter().flatten().cloned().collect::<BTreeSet<_>>();
        self.left.extend(self.names.difference(&list).cloned());
        self.left.extend(heeded);
        self.names = list;
        if wildcard == Wildcard::No && had_wildcard {
            self.leave_wildcard();
        } else {
            self.wildcard = wildcard;
        }
        let (names, all) = (&self.names, self.wildcard != Wildcard::No);
        self.held.retain(|name, _| all || names.contains(name));
        self.owed.retain(|name, _| names.contains(name));
        for name in added {
            // A resource that was sent since a stale request may be the answer to that request; and a resource that was
            // sent under the wildcard was not "sent without having been asked for".
            if !doubtful.contains(&name) && !had_wildcard && !crossing.contains(&name) {
                self.held.remove(&name);
            }
            if !self.claimed || !first {
                self.owed.insert(name, Rule::Owed);
            }
        }
        self.settle_owed();
    }

    /// Removes the debt of each name that is held: its resource was sent before, for example in answer to a stale
    /// request.
    fn settle_owed(&mut self) {
        let held = &self.held;
        self.owed.retain(|name, rule| *rule != Rule::Owed || !held.contains_key(name));
    }

    /// Reads the changes of a delta request.
    pub(super) fn read_changes(&mut self, request: &Request, first: bool) {
        self.unanswered.retain(|nonce| *nonce != request.nonce);
        let nothing = request.names.is_empty() && request.unsubscribe.is_empty();
        if first {
            let claims = request.initial.iter().map(|(name, version)| (name.clone(), Held::Claimed(version.clone())));
            self.held.extend(claims);
            self.give_reason_for_all();
            if request.names.is_empty() {
                // "no resources in both"; for a request that only unsubscribes, two sentences differ.
                self.wildcard = if nothing && self.full_state { Wildcard::Yes } else { Wildcard::Maybe };
            }
        }
        if !nothing {
            self.give_reason();
        }
        for name in request.names.iter().filter(|name| !request.unsubscribe.contains(name)) {
            self.subscribe(name, first);
        }
        for name in &request.unsubscribe {
            self.unsubscribe(name);
        }
        if first {
            // The names in initial_resource_versions are no subscriptions, but some servers treat them as
            // subscriptions.
            self.left.extend(request.initial.keys().cloned());
        }
    }

    fn subscribe(&mut self, name: &str, first: bool) {
        if self.wildcard == Wildcard::Maybe {
            self.wildcard = if self.named { Wildcard::No } else { Wildcard::Maybe };
        }
        self.named = true;
        if name == "*" {
            self.wildcard = Wildcard::Yes;
            return self.give_reason_for_all();
        }
        self.give_reason_for(name);
        if is_collection(name) {
            self.give_reason_for_all(); // for each member
        }
        self.names.insert(name.to_owned());
        let has_member = || is_collection(name) && self.held.keys().any(|held| covers(name, held));
        if first && (self.held.contains_key(name) || has_member()) {
            return; // two sentences differ on whether a claimed resource is sent again
        }
        self.held.remove(name);
        self.owed.insert(name.to_owned(), Rule::Unanswered);
    }

    fn unsubscribe(&mut self, name: &str) {
        if name == "*" {
            return self.leave_wildcard();
        }
        self.give_reason_for(name);
        self.left.insert(name.to_owned());
        let had = self.names.remove(name);
        self.owed.remove(name);
        if self.wildcard == Wildcard::No {
            self.held.remove(name);
        } else if had && self.wildcard == Wildcard::Yes {
            self.owed.insert(name.to_owned(), Rule::UnsubscribedInWildcard);
        }
    }

    /// Judges a response, and uses up the reasons for it.
    pub(super) fn receive(
        &mut self,
        variant: Variant,
        response: &Response,
        world: &World,
        complain: &mut impl FnMut(Rule, String),
    ) {
        self.last_nonce.clone_from(&response.nonce);
        if std::mem::take(&mut self.outstanding) {
            self.crossing.extend(response.resources.iter().map(|item| item.name.clone()));
        }
        self.unanswered.push(response.nonce.clone());
        self.beats |= response.resources.iter().any(|item| item.ttl.is_some() || item.body.is_none());
        for item in response.resources.iter().filter(|item| item.body.is_some()) {
            self.check_content(variant, response, item, world, complain);
        }
        if variant == Variant::Delta {
            self.check_versions(response, complain);
        }
        if variant == Variant::Sotw && self.full_state {
            self.check_full_state(response, world, complain);
        }
        let needless = self.needless(variant, response).filter(|_| !self.beats);
        match needless {
            // A reason for all names is kept for a response that has no other reason, so that a response that crossed
            // the request does not use it up. A response that uses it leaves the other reasons.
            Some(what) => {
                let again = response.resources.iter().filter(|item| self.is_same(item)).map(|item| item.name.as_str());
                let names: Vec<&str> = again.chain(response.removed.iter().map(String::as_str)).collect();
                let whole = variant == Variant::Sotw && self.full_state;
                if !self.use_reason_for_all(&names, whole) {
                    complain(Rule::Needless, what);
                }
            }
            None => self.use_up(response),
        }
        self.owed.retain(|name, _| !answers(response, name));
        self.hold(variant, response);
    }

    fn check_content(
        &mut self,
        variant: Variant,
        response: &Response,
        item: &Item,
        world: &World,
        complain: &mut impl FnMut(Rule, String),
    ) {
        let wanted = self.may_want(&item.name) || item.aliases.iter().any(|alias| self.may_want(alias));
        // "The server can also send updates for resources the client has not subscribed to" (delta, discovery.proto).
        if variant == Variant::Sotw && !wanted {
            complain(Rule::Unwanted, format!("{} is sent, and not wanted", item.name));
        }
        let states = world.states(&response.type_url, &item.name);
        if states == [None] {
            complain(Rule::Content, format!("{} is sent, and does not exist", item.name));
        }
        let Some(revision) = item.revision else { return };
        if !states.is_empty() && states != [None] && !states.contains(&Some(revision)) {
            complain(Rule::Content, format!("{} is sent with the content {revision}, which is not current", item.name));
        }
        let version = if variant == Variant::Delta { &item.version } else { &response.version };
        let before = *self.versions.entry((item.name.clone(), version.clone())).or_insert(revision);
        if before != revision && !version.is_empty() {
            let what = format!("{} has the contents {before} and {revision} at one version, {version:?}", item.name);
            complain(Rule::Version, what);
        }
    }

    /// Checks that a heartbeat has the version that was sent last, and records the versions of resources with content.
    fn check_versions(&mut self, response: &Response, complain: &mut impl FnMut(Rule, String)) {
        for item in &response.resources {
            let before = self.sent_versions.get(&item.name);
            match (&item.body, before) {
                (Some(_), _) => _ = self.sent_versions.insert(item.name.clone(), item.version.clone()),
                (None, Some(before)) if item.ttl.is_some() && *before != item.version => {
                    let (name, version) = (&item.name, &item.version);
                    complain(
                        Rule::BeatVersion,
                        format!("{name} was sent at {before:?}, and its heartbeat is at {version:?}"),
                    );
                }
                (None, _) => {}
            }
        }
    }

    fn check_full_state(&self, response: &Response, world: &World, complain: &mut impl FnMut(Rule, String)) {
        for name in self.held.keys().filter(|name| self.wants(name)) {
            let exists = matches!(world.certain(&response.type_url, name), Some(Some(_)));
            if exists && !response.mentions(name) {
                complain(Rule::FullState, format!("{name} exists, was sent before, and is left out"));
            }
        }
    }

    /// Returns whether a faithful client holds exactly this content.
    fn is_same(&self, item: &Item) -> bool {
        self.held.get(&item.name) == Some(&Held::Sent(item.revision))
    }

    /// Returns what is needless in a response.
    fn needless(&self, variant: Variant, response: &Response) -> Option<String> {
        let same = |item: &&Item| self.is_same(item);
        if variant == Variant::Sotw {
            let all_same = response.resources.iter().all(|item| same(&item));
            let smaller = self.full_state && self.held.len() > response.resources.len();
            // Errors may be new information, which only the server can know.
            let reason = self.reasons > 0 || !all_same || smaller || !response.errors.is_empty();
            return (!reason).then(|| "the same again, and nothing has changed".into());
        }
        let unasked = |name: &str| self.reasons_for.get(name).is_none_or(|reasons| *reasons == 0);
        let again = response
            .resources
            .iter()
            .find(|item| same(item) && unasked(&item.name) && item.aliases.iter().all(|alias| unasked(alias)));
        if let Some(item) = again {
            return Some(format!("{} again, and it has not changed", item.name));
        }
        let known = |name: &&String| unasked(name) && !self.held.contains_key(*name) && !self.left_wildcard;
        if let Some(name) = response.removed.iter().find(known) {
            return Some(format!("the removal of {name} again"));
        }
        let empty = response.resources.is_empty() && response.removed.is_empty() && response.errors.is_empty();
        (empty && self.reasons == 0).then(|| "an empty response".into())
    }

    fn use_up(&mut self, response: &Response) {
        self.reasons = self.reasons.saturating_sub(1);
        let items = response.resources.iter().flat_map(|item| item.aliases.iter().chain([&item.name]));
        for name in items.chain(&response.removed) {
            if let Some(reasons) = self.reasons_for.get_mut(name) {
                *reasons = reasons.saturating_sub(1);
            }
        }
    }

    /// Updates the resources that a faithful client would hold now.
    fn hold(&mut self, variant: Variant, response: &Response) {
        if variant == Variant::Sotw && self.full_state {
            // An error of the name is no content: a response with the error alone is without the resource (DELETE-01).
            self.held.retain(|name, _| response.has(name));
        }
        for item in response.resources.iter().filter(|item| item.body.is_some()) {
            self.held.insert(item.name.clone(), Held::Sent(item.revision));
            // Delta: a client that wants a resource by an alias receives the removal of the resource under that alias.
            let aliases = item.aliases.iter().filter(|_| variant == Variant::Delta);
            self.held.extend(aliases.map(|alias| (alias.clone(), Held::Sent(item.revision))));
        }
        for name in &response.removed {
            self.held.remove(name);
        }
    }
}

/// Returns whether a response answers a subscription: a collection is answered by any of its members.
fn answers(response: &Response, name: &str) -> bool {
    let mut members = response.resources.iter().map(|item| &item.name).chain(&response.removed);
    response.mentions(name) || (is_collection(name) && members.any(|member| covers(name, member)))
}
