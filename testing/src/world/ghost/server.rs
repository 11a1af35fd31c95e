//! What a server has read and sent: what its client has, and the reasons to send a resource.

use std::collections::{BTreeMap, BTreeSet};

use xds_machine::server::Action;
use xds_machine::{Code, Instant, ResourceName, Status, WILDCARD, type_url};

use super::super::store::is_shared;
use super::super::{Both, Bug, Made, Store, is_alias, is_resource, stands_for};
use super::{Deferral, Ghost, Memory, Out, Told, covers, version_of};
use crate::variant::{Request, Response};

impl Ghost {
    /// Records a request. Returns whether the server accepts it.
    pub fn server_reads<V: Both>(&mut self, setup: &Made, store: &Store, request: &V::Request) -> bool {
        let request = V::request(request);
        let t = setup.type_number(request.type_url);
        let memory = &mut self.types[t];
        let is_last = memory.sent.as_ref() == Some(request.nonce);
        if setup.strict_server && V::LISTS && memory.sent.is_some() && !is_last {
            return false;
        }
        memory.answers(setup, &request);
        let before = memory.listed.clone();
        let again = if V::LISTS { memory.read_list(setup, &request) } else { memory.read_changes(setup, &request) };
        memory.asked_since |= !again.is_empty();
        let content = |name: &ResourceName| store.content(setup, t, name);
        let listed = &memory.listed;
        memory.delivered.retain(|name, sent| covers(listed, name, Some(*sent)));
        memory.cold.retain(|name| covers(listed, name, content(name)));
        // A refetched resource is sent again, rejected or not.
        let asked = setup.names.iter().filter(|name| is_resource(name) && covers(&again, name, content(name)));
        let asked: Vec<ResourceName> = asked.cloned().collect();
        if setup.response_limit.is_some() && memory.sent.is_some() {
            // A resource that is asked for again waits for its turn, and has no heartbeat before.
            memory.silent.extend(asked.iter().map(|name| (name.clone(), false)));
        }
        // A resource that waited for its turn by a name that is unsubscribed has its heartbeat now.
        memory.due |= !before.is_subset(&memory.listed);
        memory.reasons.extend(asked);
        if again.iter().any(is_shared) {
            memory.reasons.extend(memory.delivered.keys().cloned()); // the alias's target may be removed with it
        }
        if !again.is_empty() {
            memory.rejected_whole = None;
        }
        memory.rejected.retain(|name, _| !covers(&again, name, content(name)));
        let by_alias = |name: &ResourceName| {
            let may_stand = |asked: &ResourceName| is_shared(asked) || stands_for(asked, name, content(name));
            again.iter().any(|asked| is_alias(asked) && may_stand(asked))
        };
        // The former targets of an alias that is requested again are removed again, and later than it is answered if its
        // target is unknown then.
        memory.told_gone.retain(|name| !by_alias(name));
        memory.claims(setup, &request, |name| if by_alias(name) { None } else { content(name) });
        true
    }

    pub fn server_acts<V: Both>(&mut self, setup: &Made, action: Action) {
        match action {
            Action::Close(status) => panic!("the stream is to close: {status}"),
            Action::DropStale { .. } if setup.strict_server && V::LISTS => panic!("stale requests do not get here"),
            _ => {}
        }
    }

    /// Checks that the stream may end: only if the store may have forgotten a removal that the client has not received,
    /// or at the limit of the unsubscribed names whose errors the client may keep.
    pub fn server_closes(&mut self, setup: &Made, action: Action) -> bool {
        let at_limit = |status: &Status| {
            setup.limit.is_some() && setup.budget.fails > 0 && status.code == Code::ResourceExhausted.number()
        };
        match action {
            Action::Close(status) if at_limit(&status) => true,
            Action::Close(status) if setup.is_forgetful() => status.code == Code::Unavailable.number(),
            other => panic!("nothing happened, and yet {other:?}"),
        }
    }

    pub fn server_sends<V: Both>(&mut self, setup: &Made, store: &Store, now: Instant, response: &V::Response) -> Told {
        let response = V::response(response);
        let t = setup.type_number(&response.type_url);
        assert!(store.is_known(t), "something is said of a type of which nothing is known");
        self.types[t].check_shape::<V>(setup, store, now, t, &response);
        self.types[t].check_news::<V>(setup, &response);
        let due = self.types[t].due;
        let same = |(name, content): &(ResourceName, u8)| self.types[t].delivered.get(name) == Some(content);
        let all_lives = due && V::LISTS && setup.full_state && response.resources.iter().all(same);
        let beats = all_lives || !response.beats.is_empty() || self.types[t].repeats::<V>(setup, &response);
        let only_beats = response.resources.is_empty() && response.removed.is_empty() && !response.beats.is_empty();
        let only_beats = (only_beats && response.errors.is_empty()) || self.types[t].repeats::<V>(setup, &response);
        if !all_lives && !only_beats {
            self.check_order::<V>(setup, store, t, &response);
        }
        let resources: BTreeMap<ResourceName, u8> = response.resources.iter().cloned().collect();
        let memory = &mut self.types[t];
        let is_out = memory.is_out();
        let sent_or_lives =
            |name| response.resources.iter().any(|(sent, _)| sent == name) || response.beats.contains_key(name);
        // A resource that had no heartbeat because it changed has one at once if the change is reverted.
        let left_out =
            memory.delivered.keys().any(|name| !sent_or_lives(name) && store.content(setup, t, name).is_some());
        memory.due &= !beats || left_out;
        let removed = response.removed.iter().cloned().collect();
        let until = Some(now + setup.answer_wait).filter(|_| !only_beats);
        let (nonce, version) = (response.nonce.clone(), response.version.clone());
        let beats_of = response.beats.keys().cloned().collect();
        let out = Out { nonce, version, until, resources, beats: beats_of, removed };
        memory.sent = Some(response.nonce.clone());
        for (name, sent) in &mut memory.silent {
            *sent |= out.resources.contains_key(name) || response.beats.contains_key(name);
        }
        if only_beats {
            memory.put_out(out);
            return Told { beats, ..Told::default() };
        }
        if setup.bug != Some(Bug::NackLoop) {
            if V::LISTS && setup.full_state {
                memory.check_whole(setup, store, t, &out, due || !response.errors.is_empty());
            } else {
                memory.check_reasons(setup, &out, V::LISTS && due && is_out);
            }
        }
        let warm = memory.note_sent::<V>(setup, &response, &out);
        let new = |(name, content): &(&ResourceName, &u8)| memory.delivered.get(*name) != Some(*content);
        let changed: BTreeSet<ResourceName> = out.resources.iter().filter(new).map(|(name, _)| name.clone()).collect();
        if V::LISTS && setup.full_state {
            memory.delivered.clear();
        }
        memory.delivered.extend(out.resources.iter().map(|(name, content)| (name.clone(), *content)));
        memory.delivered.retain(|name, _| !response.removed.contains(name));
        let sent: Vec<ResourceName> = out.resources.keys().cloned().collect();
        memory.had.extend(sent.iter().cloned());
        memory.put_out(out);
        self.parent_sent(setup, store, t, &sent, &changed);
        Told { warm, beats }
    }

    /// Once a new or changed cluster is sent, its endpoints must be sent again, if they were sent before.
    fn parent_sent(
        &mut self,
        setup: &Made,
        store: &Store,
        t: usize,
        sent: &[ResourceName],
        changed: &BTreeSet<ResourceName>,
    ) {
        let endpoints = setup.types.iter().position(|url| url == type_url::ENDPOINT);
        let Some(endpoints) = endpoints.filter(|_| setup.types[t] == type_url::CLUSTER) else { return };
        let memory = &mut self.types[endpoints];
        for name in sent {
            let there = store.content(setup, endpoints, name);
            if there.is_some() && memory.server_wants(name, there) {
                // A rejected resource may be sent again too: the cluster may be another one.
                memory.rejected.remove(name);
                memory.rejected_whole = None;
                memory.reasons.insert(name.clone());
                if memory.delivered.contains_key(name) && changed.contains(name) {
                    memory.cold.insert(name.clone());
                }
            }
        }
    }

    /// Records that the server looked at the store: without a removed resource no removal is deferred any more.
    pub fn server_looks(&mut self, setup: &Made, store: &Store) {
        for (t, memory) in self.types.iter_mut().enumerate() {
            let is_unwanted = |name: &ResourceName| !memory.server_wants(name, None);
            let has_all = || memory.delivered.keys().all(|name| store.content(setup, t, name).is_some());
            if !memory.is_out() && has_all() && memory.gone.iter().all(is_unwanted) {
                memory.deferral = Deferral::None;
            }
        }
    }

    /// Records a change: a rejection of the resource no longer counts, even if the same content returns.
    pub fn changes(&mut self, t: usize, name: &ResourceName, there: Option<u8>) {
        let memory = &mut self.types[t];
        memory.told_gone.retain(|told| told != name && !is_alias(told));
        memory.told_errors.remove(name);
        if there.is_some() {
            memory.unseen.insert(name.clone());
        } else {
            memory.cold.remove(name);
            memory.silent.insert(name.clone(), false);
            memory.gone.insert(name.clone());
            memory.doubted.remove(name);
            let may_have = memory.delivered.contains_key(name) || memory.server_wants(name, None);
            if memory.deferral == Deferral::None && may_have {
                memory.deferral = Deferral::Waits;
            }
        }
        if !covers(&memory.listed, name, there) {
            memory.cold.remove(name); // the moving alias has another target
        }
        memory.reasons.insert(name.clone());
        memory.rejected.remove(name);
        memory.rejected_whole = None;
    }

    /// Records that nothing is known of a resource any more, nor of its former content.
    pub fn fails(&mut self, t: usize, name: &ResourceName) {
        self.changes(t, name, None);
        self.types[t].unseen.insert(name.clone());
        self.types[t].doubted.insert(name.clone());
    }
}

impl Memory {
    /// Applies a list of all subscribed names. Returns the names that are new.
    fn read_list(&mut self, setup: &Made, request: &Request<'_>) -> BTreeSet<ResourceName> {
        let mut listed: BTreeSet<ResourceName> = request.names.iter().cloned().collect();
        self.claimed |= self.sent.is_none() && request.version.is_some_and(|version| !version.is_empty());
        self.named_to_server |= !listed.is_empty();
        if !self.named_to_server && setup.legacy_wildcard {
            listed.insert(WILDCARD.into());
        }
        let new: BTreeSet<ResourceName> = listed.difference(&self.listed).cloned().collect();
        self.listed = listed;
        if self.listed.is_empty() {
            self.outs.clear(); // no ACK is expected for a type without subscriptions
        }
        new
    }

    /// Applies the changes of the subscriptions. Returns all names in the request.
    fn read_changes(&mut self, setup: &Made, request: &Request<'_>) -> BTreeSet<ResourceName> {
        let first = !std::mem::replace(&mut self.named_to_server, true);
        let nothing = request.names.is_empty() && request.unsubscribe.is_empty();
        self.asked_since |= first;
        let mut again: BTreeSet<ResourceName> = request.names.iter().chain(request.unsubscribe).cloned().collect();
        if first && nothing && setup.legacy_wildcard {
            self.listed.insert(WILDCARD.into());
            again.insert(WILDCARD.into());
        }
        let listed_before = |name: &ResourceName| !is_resource(name) && self.listed.contains(name);
        self.resubscribed |= setup.response_limit.is_some() && request.names.iter().any(listed_before);
        self.listed.extend(request.names.iter().cloned());
        self.listed.retain(|name| !request.unsubscribe.contains(name));
        if setup.response_limit.is_some() && request.unsubscribe.iter().any(ResourceName::is_wildcard) {
            // The answer to the wildcard may be incomplete: the names are answered by themselves, some of them again.
            again.extend(self.listed.iter().cloned());
        }
        again
    }

    /// Applies claimed versions, which need not be sent if they match `there`.
    fn claims(&mut self, setup: &Made, request: &Request<'_>, there: impl Fn(&ResourceName) -> Option<u8>) {
        self.due |= !request.initial.is_empty(); // little of the TTL may be left
        self.claimed |= !request.initial.is_empty();
        for (name, version) in &request.initial {
            let content = (0..2).find(|&content| version_of(setup, name, content) == *version);
            let Some(content) = content.filter(|content| covers(&self.listed, name, Some(*content))) else { continue };
            self.delivered.insert(name.clone(), content);
            if there(name) == Some(content) {
                self.reasons.remove(name);
            } else {
                self.gone.insert(name.clone()); // perhaps, before the stream
            }
        }
    }

    /// Records the sent resources. Returns whether a cluster was waiting for any of the endpoints.
    fn note_sent<V: Both>(&mut self, setup: &Made, response: &Response, out: &Out) -> bool {
        let mut warm = false;
        for name in out.resources.keys().chain(&response.removed) {
            self.unseen.remove(name);
            self.gone.remove(name);
            self.rejected.remove(name);
            self.reasons.remove(name);
            warm |= self.cold.remove(name);
        }
        response.errors.iter().for_each(|name| _ = self.reasons.remove(name));
        self.rejected_whole = None;
        if V::LISTS && setup.full_state {
            self.reasons.clear();
        }
        // A full response may not be complete.
        let fills = |response_limit: usize| response.resources.len() + response.removed.len() >= response_limit;
        self.asked_since &= !V::LISTS && setup.response_limit.is_some_and(fills);
        warm
    }
}
