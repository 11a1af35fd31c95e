//! What a response may say, in which order of types, and for which reasons.

use std::collections::BTreeSet;

use xds_machine::server::State;
use xds_machine::{Instant, ResourceName, type_url};

use super::super::{Both, Made, Store, is_alias, is_resource};
use super::{Deferral, Ghost, Memory, Out};
use crate::variant::Response;

impl Ghost {
    /// Checks the order: listeners wait for unsent clusters, and clusters are removed after them.
    pub(super) fn check_order<V: Both>(&self, setup: &Made, store: &Store, t: usize, response: &Response) {
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
        // Content that the client has already, as after a rejected heartbeat, refers to no new cluster.
        let same = |(name, content): &(ResourceName, u8)| self.types[t].delivered.get(name) == Some(content);
        let is_push = !response.removed.is_empty() || !response.resources.iter().all(same);
        if t == listeners && is_push && !self.types[t].asked_since && !self.types[t].time_passed {
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
            let is_absent = || store.state(setup, t, name) == State::Absent;
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
}

impl Memory {
    /// Returns whether a response of SotW has heartbeats alone, with their content: so they are sent beside an unanswered
    /// response.
    pub(super) fn repeats<V: Both>(&self, setup: &Made, response: &Response) -> bool {
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

    /// Checks the rules that hold for every response.
    pub(super) fn check_shape<V: Both>(
        &self,
        setup: &Made,
        store: &Store,
        now: Instant,
        t: usize,
        response: &Response,
    ) {
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
    pub(super) fn check_whole(&self, setup: &Made, store: &Store, t: usize, out: &Out, has_reason: bool) {
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
    pub(super) fn check_reasons(&self, setup: &Made, out: &Out, lives: bool) {
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
}
