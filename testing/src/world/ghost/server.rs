//! The responses that a server may send, and the resources that it may omit.

use std::collections::{BTreeMap, BTreeSet};

use xds_machine::server::Action;
use xds_machine::{Code, Instant, ResourceName, Status, WILDCARD, type_url};

use super::super::store::is_shared;
use super::super::{Both, Bug, Feature, Made, Store, is_alias, is_resource, stands_for};
use super::{Deferral, Ghost, Memory, Out, Told, covers, version_of};
use crate::variant::{Request, Response};

/// The number of rejected responses that a server keeps apart; older ones it joins.
pub(super) const APART: u8 = 8;

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
        let only_beats = only_beats || self.types[t].repeats::<V>(setup, &response);
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
        let until = Some(now + setup.answer_wait()).filter(|_| !only_beats);
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

    /// Checks the order: listeners wait for unsent clusters, and clusters are removed after them.
    fn check_order<V: Both>(&self, setup: &Made, store: &Store, t: usize, response: &Response) {
        let number = |url: &str| setup.types.iter().position(|known| known == url);
        let (Some(listeners), Some(clusters)) = (number(type_url::LISTENER), number(type_url::CLUSTER)) else { return };
        let unsent = |t: usize| {
            let memory = &self.types[t];
            setup.names.iter().filter(|name| is_resource(name)).any(|name| {
                let there = store.content(setup, t, name);
                let wanted = there.is_some() && memory.server_wants(name, there);
                wanted && there.as_ref() != memory.delivered.get(name)
            })
        };
        if t == listeners && !self.types[t].asked_since && !self.types[t].time_passed {
            assert!(!unsent(clusters), "listeners are pushed before clusters");
        }
        // A removal that the client did not ask about; a timeout may end the wait.
        let delivered = &self.types[t].delivered;
        let is_gone = |name: &ResourceName| {
            let there = response.resources.iter().any(|(other, _)| other == name);
            let memory = &self.types[t];
            // A resource that changed before its removal is not known as the client has it, nor is one that the store
            // forgot; and a resource with an error is not removed.
            let known = !setup.is_forgetful() && !memory.unseen.contains(name);
            let fails = || store.error(setup, t, name).is_some();
            let wanted = || memory.server_wants(name, None);
            let kept = setup.hold && V::LISTS && setup.full_state && wanted() && known && !fails();
            // The former target of an alias is removed with the present one, if it exists or has an error.
            let is_absent = || store.state(setup, t, name) == xds_machine::server::State::Absent;
            (response.removed.contains(name) && is_absent()) || (kept && !there)
        };
        let gone = delivered.keys().any(is_gone);
        // A store that forgot a removal, a server at its limit, an alias, and a resubscription make the server repeat
        // removals, which are deferred too.
        let repeats = setup.is_forgetful()
            || setup.limit.is_some()
            || self.types[t].resubscribed
            || setup.names.iter().any(is_alias);
        let aged = self.types[t].deferral == Deferral::Over || (repeats && self.aged);
        if t == clusters && gone && !self.types[t].asked_since && !aged {
            assert!(!unsent(listeners), "clusters go away before the listeners that may refer to them");
        }
    }

    /// Checks that nothing waits without a clock, and that no clock stands still: a server that has nothing to send now,
    /// and has not sent all, has a time-out, which is to come.
    pub fn check_waiting(&mut self, setup: &Made, store: &Store, now: Instant, due: Option<Instant>) {
        assert!(due.is_none_or(|due| due > now), "a time-out that has come stays");
        for t in (0..setup.types.len()).filter(|t| store.is_known(*t)) {
            if let Some((name, _)) = self.types[t].unsent(setup, store, t).next() {
                assert!(due.is_some_and(|due| due < NEVER), "{name} is not sent, and waits without a clock");
            } else {
                self.types[t].time_passed &= self.types[t].is_out();
            }
        }
    }

    /// Checks that everything is sent, whether it is answered or not.
    pub fn check_sent(&self, setup: &Made, store: &Store, t: usize) {
        if self.up && store.is_known(t) {
            let unsent = self.types[t].unsent(setup, store, t).next();
            assert_eq!(unsent, None, "type {t}: a resource is not sent, though time has passed");
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

    /// Returns the features that are active on the stream.
    pub fn active(&self, setup: &Made, store: &Store) -> Vec<Feature> {
        let of_a_type = |feature| (0..setup.types.len()).any(|t| self.types[t].is_active(setup, store, t, feature));
        Feature::ALL.into_iter().filter(|&feature| of_a_type(feature)).collect()
    }
}

fn is_unknown(store: &Store, setup: &Made, t: usize, name: &ResourceName) -> bool {
    store.state(setup, t, name) == xds_machine::server::State::Unknown
}

/// A time-out that never comes.
const NEVER: Instant = Instant::from_epoch(std::time::Duration::MAX);

impl Memory {
    /// Returns the subscribed resources that are not sent in their current form, and were not rejected.
    pub(super) fn unsent(&self, setup: &Made, store: &Store, t: usize) -> impl Iterator<Item = (ResourceName, u8)> {
        let names = setup.names.iter().filter(|name| is_resource(name));
        names.filter_map(move |name| {
            let content = store.content(setup, t, name).filter(|content| self.server_wants(name, Some(*content)))?;
            let has = [self.delivered.get(name), self.rejected.get(name)].contains(&Some(&content));
            (!has).then(|| (name.clone(), content))
        })
    }

    fn is_active(&self, setup: &Made, store: &Store, t: usize, feature: Feature) -> bool {
        let mut names = setup.names.iter().filter(|name| is_resource(name));
        let there = |name: &ResourceName| store.content(setup, t, name);
        let sent_by = |is: fn(&ResourceName) -> bool| {
            let by = |(name, sent): (&ResourceName, &u8)| {
                self.listed.iter().any(|wanted| is(wanted) && stands_for(wanted, name, Some(*sent)))
            };
            self.delivered.iter().any(by)
        };
        let is_unsent = |name: &ResourceName| {
            let there = there(name);
            there.is_some() && self.server_wants(name, there) && self.delivered.get(name) != there.as_ref()
        };
        let is_gone = |name: &ResourceName| !is_unknown(store, setup, t, name) && there(name).is_none();
        match feature {
            Feature::ResponseLimit => {
                let out = self.outs.last().map_or(0, |out| out.resources.len());
                setup.response_limit.is_some_and(|response_limit| out >= response_limit) && names.any(is_unsent)
            }
            Feature::Pages => setup.page.is_some_and(|page| names.count() > page) && self.listed.contains(WILDCARD),
            Feature::Ttl => {
                setup.tells_ttls()
                    && self.delivered.iter().any(|(name, &content)| setup.told_ttl_of(name, content).is_some())
            }
            Feature::Hold => self.delivered.keys().any(|name| is_gone(name) && self.server_wants(name, None)),
            Feature::Alias => sent_by(is_alias),
            Feature::MovedAlias => {
                self.listed.iter().any(is_shared)
                    && self.delivered.iter().any(|(name, &sent)| sent == 1 && there(name) != Some(1))
            }
            Feature::Collection => sent_by(ResourceName::is_glob),
            Feature::Error => names.any(|name| self.server_wants(name, None) && store.error(setup, t, name).is_some()),
            Feature::Limit => setup.limit.is_some_and(|limit| self.listed.len() >= limit),
            Feature::Unknown => names.any(|name| {
                let fails = store.error(setup, t, name).is_some();
                self.server_wants(name, None) && is_unknown(store, setup, t, name) && !fails
            }),
            Feature::Claims => self.claimed,
            Feature::Wildcard => self.listed.contains(WILDCARD) && self.listed.len() > 1,
        }
    }

    /// Returns the responses with content that are in flight.
    pub(super) fn content_out(&self) -> impl DoubleEndedIterator<Item = &Out> {
        self.outs.iter().filter(|out| out.until.is_some())
    }

    pub(super) fn is_out(&self) -> bool {
        self.content_out().next().is_some()
    }

    /// Returns whether a response of SotW has heartbeats alone, with their content: so they are sent beside an unanswered
    /// response.
    fn repeats<V: Both>(&self, setup: &Made, response: &Response) -> bool {
        let lives = |(name, content): &(ResourceName, u8)| {
            let same = self.delivered.get(name) == Some(content) && !self.reasons.contains(name);
            same && setup.told_ttl_of(name, *content).is_some()
        };
        let version = self.content_out().next_back().map(|out| &out.version);
        let beside = version == Some(&response.version)
            && V::LISTS
            && !setup.full_state
            && self.due
            && self.is_out()
            && !self.asked_since;
        let all = !response.resources.is_empty() && response.resources.iter().all(lives);
        beside && all && response.errors.is_empty()
    }

    /// Records a response in flight. Two with content and one with heartbeats alone are recognised by their nonces: what
    /// an older one had shares the verdict of the next.
    fn put_out(&mut self, out: Out) {
        let alike = |other: &Out| other.until.is_some() == out.until.is_some();
        let most = usize::from(out.until.is_some());
        if self.outs.iter().filter(|other| alike(other)).count() > most {
            let oldest = self.outs.iter().position(alike).expect("one of them");
            let oldest = self.outs.remove(oldest);
            if let Some(next) = self.outs.iter_mut().find(|other| alike(other)) {
                oldest
                    .resources
                    .into_iter()
                    .for_each(|(name, content)| _ = next.resources.entry(name).or_insert(content));
                next.removed.extend(oldest.removed);
                next.beats.extend(oldest.beats);
            }
        }
        self.outs.push(out);
        self.several |= self.content_out().count() > 1;
    }

    /// Records the ACK or NACK of a response in flight. A client answers in order; in SotW the version that it accepted
    /// last tells about the responses before.
    fn answers(&mut self, setup: &Made, request: &Request<'_>) {
        let Some(at) = self.outs.iter().position(|out| out.nonce == *request.nonce) else { return };
        let answered = self.outs.remove(at);
        let (content, rejects) = (answered.until.is_some(), request.error.is_some());
        let before: Vec<Out> = self.outs.drain(..at).collect();
        for (place, out) in before.into_iter().enumerate() {
            let same = request.version.is_none_or(|version| *version == out.version);
            let settled = content || (request.version.is_some() && (out.until.is_none() || rejects || same));
            match settled {
                true if out.until.is_some() => self.judge(setup, out, rejects && !same),
                true => {}
                false => self.outs.insert(place.min(self.outs.len()), out),
            }
        }
        if rejects {
            // The client does not have these: they are sent again with their content.
            self.reasons.extend(answered.beats.iter().cloned());
        }
        self.judge(setup, answered, rejects);
    }

    /// Applies the client's ACK or NACK of the response in flight.
    fn judge(&mut self, setup: &Made, out: Out, rejected: bool) {
        if rejected {
            // A seeded loop of rejections has to come back to one state.
            let counted = setup.bug.is_none();
            self.rejections += u8::from(counted && self.rejections <= APART);
            self.refused.extend(out.resources.iter().map(|(name, content)| (name.clone(), *content)));
        } else {
            self.refused.retain(|name, _| !out.resources.contains_key(name));
            self.rejected.retain(|name, _| !out.resources.contains_key(name));
            self.rejected_whole = self.rejected_whole.take().filter(|whole| *whole != out.resources);
            return;
        }
        if out.resources.keys().all(|name| !self.reasons.contains(name)) && self.reasons.is_empty() {
            self.rejected_whole = Some(out.resources.clone());
        }
        for (name, content) in out.resources {
            if !self.reasons.contains(&name) {
                self.rejected.insert(name, content);
            }
        }
    }

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

    /// Checks the rules that hold for every response.
    fn check_shape<V: Both>(&self, setup: &Made, store: &Store, now: Instant, t: usize, response: &Response) {
        let only_beats = response.resources.is_empty() && response.removed.is_empty() && !response.beats.is_empty();
        let only_beats = only_beats || self.repeats::<V>(setup, response);
        let waits = self.content_out().next_back().is_some_and(|out| out.until > Some(now));
        // Heartbeats do not wait. A new name of delta is answered at once, if one response is out.
        let answers = !V::LISTS && self.asked_since && self.content_out().count() < 2;
        let repeats = V::LISTS && self.due;
        assert!(!waits || only_beats || answers || repeats, "a response does not wait for the ACK of the last one");
        assert!(!response.nonce.is_empty() && !response.version.is_empty(), "a response has a nonce and a version");
        let names: BTreeSet<&ResourceName> = response.resources.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), response.resources.len(), "a name is in a response once");
        assert!(names.iter().all(|name| !response.removed.contains(*name)), "a name is there or gone");
        for name in &response.errors {
            let wanted = self.server_wants(name, None);
            assert!(wanted, "{name} has an error, and is not wanted as far as the server can know");
            assert!(!names.contains(name), "{name} is there, and has an error");
        }
        for (name, content) in &response.resources {
            let wanted = self.server_wants(name, Some(*content));
            assert!(wanted, "{name} is sent, and not wanted as far as the server can know");
        }
        assert!(self.due || response.beats.is_empty(), "a heartbeat before its time");
        for (name, (_, ttl)) in &response.beats {
            let there = store.content(setup, t, name);
            let told = there.and_then(|content| setup.told_ttl_of(name, content));
            assert!(ttl.is_some() && *ttl == told, "{name} lives on for {ttl:?}, its TTL is {told:?}");
            let wanted = self.server_wants(name, there);
            assert!(wanted, "{name} lives on, and is not wanted as far as the server can know");
            assert!(there.is_some() && there.as_ref() == self.delivered.get(name), "{name} lives on unsent");
        }
    }

    /// Checks that a response of a full-state type has all subscribed resources, and a reason.
    fn check_whole(&self, setup: &Made, store: &Store, t: usize, out: &Out, has_reason: bool) {
        let there = |name: &&ResourceName| {
            let content = store.content(setup, t, name);
            is_resource(name) && content.is_some() && self.server_wants(name, content)
        };
        let all: BTreeSet<&ResourceName> = setup.names.iter().filter(there).collect();
        let mut gone = out.resources.keys().filter(|name| !all.contains(name));
        // Clusters and endpoints may stay for a time, but only those that the client has.
        let stays = |name: &ResourceName| {
            let same = self.delivered.get(name) == out.resources.get(name);
            setup.hold && [type_url::CLUSTER, type_url::ENDPOINT].contains(&setup.types[t].as_str()) && same
        };
        assert!(gone.all(stays), "a full-state type has what is wanted");
        let there = out.resources.keys().filter(|name| all.contains(name));
        assert!(all.iter().copied().eq(there), "a full-state type has all that is wanted");
        let wanted = |name: &ResourceName| self.server_wants(name, store.content(setup, t, name));
        let changed = || self.reasons.iter().any(|name| wanted(name) || self.delivered.contains_key(name));
        // A store that forgets removals can't tell that a resource never existed.
        let new = has_reason || self.asked_since || setup.hold || setup.is_forgetful() || changed();
        assert!(new, "nothing changed, and all is sent again");
    }

    /// Checks that each resource of another type has a reason.
    fn check_reasons(&self, setup: &Made, out: &Out, lives: bool) {
        for (name, content) in &out.resources {
            // Beside an unanswered response of SotW, heartbeats have content.
            let lives = lives && setup.told_ttl_of(name, *content).is_some();
            if lives || self.reasons.contains(name) || self.delivered.get(name) != Some(content) {
                continue;
            }
            let rejected = self.rejected.get(name) == Some(content);
            // A server at its limit may forget resources that it sent.
            assert!(!rejected || setup.limit.is_some(), "{name} was rejected and is sent again");
            assert!(setup.limit.is_some(), "{name} did not change and is sent again");
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
