//! The checks of a settled state: the client has the server's resources as far as they are subscribed to, and the
//! server knows the subscriptions.

use std::collections::BTreeSet;

use xds_machine::server::{Delivered, DeliveryStatus, State};
use xds_machine::{Code, ResourceName, WILDCARD};

use super::{Application, Both, Made, Pair, Store, World, is_alias, is_resource, stands_for};

impl<V: Both> World<V> {
    /// Returns whether no step is left.
    pub fn is_settled(&self) -> bool {
        let mut steps = Vec::new();
        self.protocol_steps(&mut steps);
        steps.is_empty()
    }

    /// Checks a settled state. Panics if a check fails.
    pub fn check_settled(&self) {
        for pair in &self.pairs {
            let is_silent = |t: usize| pair.is_silent(&self.setup, t);
            let silent = (0..pair.apps.len()).any(is_silent);
            assert!(pair.down.is_empty(), "a response is never read");
            if !silent {
                pair.check_verdicts(&self.setup, &self.store);
            }
            for (t, app) in pair.apps.iter().enumerate() {
                if is_silent(t) {
                    pair.ghost.check_sent(&self.setup, &self.store, t);
                    continue;
                }
                pair.check_view(&self.setup.types[t], app);
                pair.ghost.check_settled(t);
                let all = app.wanted.iter().any(|name| name.is_wildcard()) && self.store.is_known(t);
                assert!(app.heard || !all, "type {t}: everything is wanted, and there was no answer");
                for name in self.setup.names.iter().filter(|name| is_resource(name)) {
                    self.check_resource(t, pair, name);
                }
            }
            let waits = pair.server.as_ref().map_or(0, |server| server.in_flight());
            assert!(waits == 0 || silent, "the server waits for an answer that was given");
        }
    }

    fn check_resource(&self, t: usize, pair: &Pair<V>, name: &ResourceName) {
        let app = &pair.apps[t];
        let (there, has) = (self.content(t, name), app.applied.get(name).copied());
        let unknown = !self.store.is_known(t) || self.store.state(&self.setup, t, name) == State::Unknown;
        let wanted = |alias: bool| {
            let names = app.wanted.iter().filter(move |wanted| is_alias(wanted) == alias);
            names.filter(|wanted| stands_for(wanted, name, there)).count() > 0
        };
        let error = self.store.error(&self.setup, t, name);
        if !wanted(false) && !wanted(true) {
            // The former target of an alias may stay if its state is unknown, or if the present target of the alias is
            // unknown. A store that forgets does not know that the alias stood for a resource that is gone.
            let mut aliases = app.wanted.iter().filter(|name| is_alias(name));
            let gone = self.store.state(&self.setup, t, name) == State::Absent;
            let may_be_left = !gone || self.setup.is_forgetful();
            let mut may_stay = || {
                unknown
                    || (may_be_left && aliases.any(|alias| self.store.state(&self.setup, t, alias) == State::Unknown))
            };
            assert!(has.is_none() || (V::REMOVES && may_stay()), "type {t}: {name} is not wanted");
            return;
        }
        match error {
            Some(error) if error.is(Code::NotFound) => {
                // A wildcard subscriber receives no report about resources that do not exist.
                let told = app.wanted.contains(name) || V::REMOVES || self.setup.full_state;
                assert!(has.is_none() || !told, "type {t}: {name} is said not to exist, applied is {has:?}");
            }
            // The target of the alias is unknown.
            Some(_) => {
                let told = app.failed.contains(name) || !wanted(false);
                assert!(told, "type {t}: {name} has an error, and the application does not know");
            }
            None => {}
        }
        if unknown {
            return; // the held resource stays, and nothing is reported
        }
        let expired = app.expired.contains(name);
        let timed = app.wanted.contains(name) && self.setup.existence_timeout.is_some();
        match there {
            Some(content) => {
                // A part of a rejected response may have been accepted, and expired since.
                let lapsed = app.expired.contains(name) && pair.ghost.is_rejected(t, name);
                let rejected = app.rejected.get(name) == Some(&content) || lapsed;
                assert!(has == Some(content) || rejected, "type {t}: {name} is {content}, applied is {has:?}");
                assert!(!app.missing.contains_key(name), "type {t}: {name} is there, reported as missing");
                assert!(rejected || !app.failed.contains(name), "type {t}: {name} is there, and has an error");
            }
            None if V::REMOVES || self.setup.full_state => {
                assert_eq!(has, None, "type {t}: {name} does not exist");
                let knows = app.missing.contains_key(name) || app.rejected.contains_key(name) || expired;
                assert!(knows || !timed, "type {t}: {name} does not exist, and the application waits");
            }
            None => {
                // SotW reports no removal of a partial type: the held resource stays.
                let knows =
                    has.is_some() || app.missing.contains_key(name) || app.rejected.contains_key(name) || expired;
                assert!(knows || !timed, "type {t}: {name} does not exist, and the application waits");
            }
        }
    }
}

impl<V: Both> Pair<V> {
    /// Checks that the server knows the verdict on every resource: this is so if it has nothing to send, and nothing in
    /// flight, so that a caller who awaits a push waits neither too short nor for ever.
    pub(super) fn check_verdicts(&self, setup: &Made, store: &Store) {
        let Some(server) = self.server.as_ref().filter(|_| setup.bug.is_none()) else { return };
        assert!(server.is_settled(), "a response or a removal waits, and time does not pass");
        for (t, type_url) in setup.types.iter().enumerate().filter(|(t, _)| store.is_known(*t)) {
            let list = server.deliveries(type_url, &store.cache);
            assert!(list.is_sorted_by(|a, b| a.name < b.name), "{type_url}: each resource is listed once");
            for Delivered { name, delivery, rejection, .. } in &list {
                assert_eq!(server.delivery(type_url, *name, &store.cache), Some(*delivery), "{type_url}: {name}");
                assert_eq!(rejection.is_some(), delivery.status == DeliveryStatus::Rejected, "{type_url}: {name}");
            }
            for name in setup.names.iter().filter(|name| is_resource(name)) {
                let is_listed = list.binary_search_by(|listed| listed.name.cmp(name)).is_ok();
                let Some(delivery) = server.delivery(type_url, name.clone(), &store.cache) else {
                    assert!(!is_listed, "{type_url}: {name} is listed, and not subscribed");
                    continue;
                };
                assert!(is_listed || store.content(setup, t, name).is_none(), "{type_url}: {name} is not listed");
                let has_verdict = matches!(delivery.status, DeliveryStatus::Acknowledged | DeliveryStatus::Rejected);
                let unknown = store.state(setup, t, name) == State::Unknown;
                assert_eq!(has_verdict, !unknown, "{type_url}: {name} counts as {:?} and is not sent", delivery.status);
            }
        }
    }

    fn check_view(&self, type_url: &xds_machine::TypeUrl, app: &Application) {
        let Some(server) = &self.server else {
            assert!(!self.client.wants_stream(), "there is no stream, though something is wanted");
            return;
        };
        let interest = server.interest(type_url);
        let names = interest.into_iter().flat_map(|interest| interest.names().cloned());
        let wildcard = interest.filter(|interest| interest.wildcard()).map(|_| WILDCARD.into());
        let view: BTreeSet<ResourceName> = names.chain(wildcard).collect();
        assert_eq!(view, app.wanted, "{type_url}: the server's view of what is wanted");
    }
}
