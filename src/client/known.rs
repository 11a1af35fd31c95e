//! Keeps the client's view in sync with an application that may lose resources or obtain them from another server.
//! [`LayerMut`](super::LayerMut) has the methods.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::in_flight::Out;
use super::subscription::Subscription;
use super::variant::Protocol;
use crate::name::{ResourceName, WILDCARD};
use crate::time::Instant;

impl<T> Subscription<T> {
    pub(super) fn forget<V: Protocol<StreamState = T>>(&mut self, name: &str) {
        let Some((name, _)) = self.holdings.held().get_key_value(name) else { return };
        let (name, asked_by) = (name.clone(), self.asked_by::<V>(name));
        self.holdings.lose(&name);
        self.failures.remove(&name); // a repeated error is news again
        self.ask_anew::<V>(asked_by);
    }

    pub(super) fn adopt<V: Protocol<StreamState = T>>(
        &mut self,
        name: ResourceName,
        aliases: &[ResourceName],
        expires: Option<Instant>,
    ) {
        let wanted = |alias: &&ResourceName| V::ALIASES && **alias != name && self.wants(alias.as_str());
        let by_alias: Vec<ResourceName> = aliases.iter().filter(wanted).cloned().collect();
        if name.is_wildcard() || (by_alias.is_empty() && !self.holdings.covers(name.as_str())) {
            return;
        }
        by_alias.iter().chain([&name]).for_each(|name| self.timers.stop(name));
        let before = self.holdings.adopt(&name, &by_alias, expires);
        self.drop_uncovered_failures::<V>();
        self.failures.remove(&name);
        match before {
            Some(held) if held.is_claimed() => self.ask_anew::<V>(self.asked_by::<V>(&name)),
            Some(_) => {}
            None => {
                let unasked = by_alias.is_empty() && !self.wants(name.as_str());
                self.unannounced |= V::CLAIMS_HELD_VERSIONS && self.announced.asked() && unasked;
            }
        }
    }

    /// Notes accepted resources that the first request of this stream did not claim.
    pub(super) fn note_taken_unannounced(&mut self, out: &Out, rejected: &BTreeSet<&ResourceName>) {
        let taken = |name: &ResourceName| !rejected.contains(name) && self.holdings.has(name.as_str());
        let named = |name: &ResourceName| self.wants(name.as_str());
        let mut unannounced = out.offer.resources.iter().filter(|resource| out.unannounced.contains(resource.name()));
        self.unannounced |= unannounced
            .any(|resource| taken(resource.name()) && !named(resource.name()) && !resource.aliases().iter().any(named));
    }

    pub(super) fn mark_does_not_exist(&mut self, name: &str) {
        let Some(name) = self.holdings.find_name(name).cloned() else { return };
        if !self.holdings.has(name.as_str()) && !name.is_wildcard() {
            self.holdings.set_does_not_exist(&name, None);
            self.failures.remove(&name);
            self.timers.stop(&name);
        }
    }

    /// Returns the names that cover a resource and that the server may know, from the current subscription or an
    /// earlier one: own name, collection and aliases (which may have moved unseen); unless the own name is among these,
    /// also the wildcard, which covers the resource even if the others are unsubscribed before they are answered.
    fn asked_by<V: Protocol<StreamState = T>>(&self, name: &ResourceName) -> Vec<ResourceName> {
        let may_know = |name: &&ResourceName| V::may_know(self, name.as_str());
        let collection = self.holdings.globs().of(name.as_str());
        let others = collection.into_iter().chain(self.holdings.bindings().aliases(name.as_str())).filter(may_know);
        let by_name = Some(name).filter(may_know);
        let all = (by_name.is_none() && V::may_know(self, WILDCARD)).then(|| WILDCARD.into());
        by_name.into_iter().chain(others).cloned().chain(all).collect()
    }

    /// Requests these names again, because the server may believe that the client has their resources. A server that
    /// was not asked has sent nothing.
    fn ask_anew<V: Protocol<StreamState = T>>(&mut self, names: Vec<ResourceName>) {
        if self.announced.asked() {
            V::ask_anew(self, names);
        }
    }

    pub(super) fn awaits(&self, name: &str) -> bool {
        if name == WILDCARD {
            let idle = self.holdings.held().is_empty() && self.in_flight.out().is_none();
            let asked_for = self.wants(WILDCARD) || self.is_name_added(WILDCARD);
            return asked_for && idle && !self.holdings.is_answered(WILDCARD);
        }
        match self.holdings.find_name(name) {
            Some(name) => self.is_awaited(name),
            None => self.is_name_added(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::super::{Action, Client, Config, Update, Variant};
    use super::*;
    use crate::message::{Any, Node, Resource, delta, sotw};
    use crate::{Delta, Sotw, TypeUrl, type_url};

    const NOW: Instant = Instant::EPOCH;

    fn of_type() -> TypeUrl {
        type_url::ENDPOINT.into()
    }

    fn any(name: &'static str) -> Any {
        let mut value = Vec::from([0x0a, name.len() as u8]);
        value.extend_from_slice(name.as_bytes());
        Any { type_url: of_type(), value: value.into() }
    }

    fn client<V: Variant>(names: &[&str]) -> Client<V> {
        let mut client = Client::new(Config::new(Node::new("n")));
        client.resources_mut(&of_type()).subscribe(names.iter().copied()).expect("names");
        client.handle_open();
        client
    }

    fn accept<V: Variant>(client: &mut Client<V>) {
        let Some(Action::Apply(update)) = client.poll_action() else { panic!("no update") };
        client.handle_verdict(NOW, update.accept()).expect("it is out");
        assert_eq!(client.check_invariants(), Ok(()));
    }

    fn sotw(nonce: &str, names: &[&'static str]) -> sotw::Response {
        sotw::Response {
            version: nonce.into(),
            resources: names.iter().map(|name| sotw::Item::Bare(any(name))).collect(),
            type_url: of_type(),
            nonce: nonce.into(),
            control_plane: Default::default(),
            errors: Vec::new(),
        }
    }

    fn delta(nonce: &str, names: &[&'static str], removed: &[&str]) -> delta::Response {
        let resource = |name: &&'static str| Resource {
            name: (*name).into(),
            version: nonce.into(),
            body: Some(any(name)),
            ttl: None,
            aliases: Vec::new(),
        };
        delta::Response {
            resources: names.iter().map(resource).collect(),
            removed: removed.iter().map(|&name| name.into()).collect(),
            system_version: nonce.into(),
            type_url: of_type(),
            nonce: nonce.into(),
            control_plane: Default::default(),
            errors: Vec::new(),
        }
    }

    fn lists(client: &mut Client<Sotw>) -> Vec<(Vec<ResourceName>, alloc::string::String)> {
        let requests = core::iter::from_fn(|| client.poll_transmit());
        requests.map(|sent| (sent.request.names, sent.request.version.as_str().into())).collect()
    }

    #[test]
    fn a_wildcard_with_a_held_resource_is_not_awaited_even_if_it_is_new() {
        let mut client = client::<Sotw>(&["a"]);
        client.resources_mut(&of_type()).subscribe(["*"]).expect("names");
        assert!(client.layer(&of_type()).is_awaited("*"));
        client.resources_mut(&of_type()).unsubscribe(["*"]);
        lists(&mut client);
        client.handle_response(NOW, sotw("1", &["a"])).expect("a response");
        accept(&mut client);
        client.resources_mut(&of_type()).subscribe(["*"]).expect("names");
        assert!(!client.layer(&of_type()).is_awaited("*"));
        lists(&mut client);
        assert!(!client.layer(&of_type()).is_awaited("*"));
    }

    #[test]
    fn sotw_a_lost_resource_is_omitted_and_requested_again() {
        let mut client = client::<Sotw>(&["a", "b"]);
        lists(&mut client);
        client.handle_response(NOW, sotw("1", &["a", "b"])).expect("a response");
        accept(&mut client);
        assert_eq!(lists(&mut client), [(["a", "b"].map(ResourceName::from).into(), "1".into())]);
        client.layer_mut(&of_type()).forget(["a", "nothing"]);
        let again = [Vec::from(["b".into()]), Vec::from(["a".into(), "b".into()])];
        assert_eq!(lists(&mut client), again.clone().map(|names| (names, "1".into())));
        assert!(client.layer(&of_type()).is_awaited("a") && !client.layer(&of_type()).is_awaited("b"));
        // A new stream claims nothing until the resource is received again, and then everything.
        client.handle_open();
        assert_eq!(lists(&mut client), [(again[1].clone(), "".into())]);
        client.handle_response(NOW, sotw("2", &["a"])).expect("a response");
        accept(&mut client);
        client.handle_open();
        assert_eq!(lists(&mut client), [(again[1].clone(), "2".into())]);
    }

    /// The second time-out passes after a list without the name and before the list with it: the name is announced all
    /// the same, or the server would never send it.
    #[test]
    fn sotw_a_name_omitted_at_its_time_out_is_listed_again() {
        let mut client = client::<Sotw>(&["a", "b"]);
        let say = |client: &mut Client<Sotw>, now| {
            let transmit = client.poll_transmit()?;
            client.handle_sent(now, transmit.sent);
            Some((transmit.request.names, transmit.request.version.as_str().parse::<u8>().ok()))
        };
        let list = |names: &[&'static str], version| Some((names.iter().map(|&name| name.into()).collect(), version));
        assert_eq!(say(&mut client, NOW), list(&["a", "b"], None));
        client.handle_response(NOW, sotw("1", &["a", "b"])).expect("a response");
        accept(&mut client);
        assert_eq!(say(&mut client, NOW), list(&["a", "b"], Some(1)));
        client.layer_mut(&of_type()).forget(["a"]);
        let times_out = NOW + Duration::from_secs(15);
        for now in [NOW, times_out] {
            client.handle_timeout(now);
            assert_eq!(say(&mut client, now), list(&["b"], Some(1)));
            assert_eq!(say(&mut client, now), list(&["a", "b"], Some(1)));
            assert_eq!(say(&mut client, now), None);
        }
        client.handle_response(times_out, sotw("2", &["b"])).expect("a response");
        accept(&mut client);
        assert_eq!(say(&mut client, times_out), list(&["b"], Some(2)));
        client.handle_timeout(times_out + Duration::from_secs(15));
        assert!(client.layer(&of_type()).does_not_exist("a"));
        assert_eq!(say(&mut client, times_out), list(&["a", "b"], Some(2)));
    }

    /// Returns a client on a second stream, its first request there, and the update of the stream before, which has `a`
    /// and `b`. The client was unsubscribed from `b` between the two.
    fn unsubscribed_between_streams() -> (Client<Delta>, delta::Request, Update) {
        let mut client = client::<Delta>(&["a", "b"]);
        _ = client.poll_transmit().expect("the first request");
        client.handle_response(NOW, delta("1", &["a", "b"], &[])).expect("a response");
        let Some(Action::Apply(update)) = client.poll_action() else { panic!("no update") };
        client.handle_close();
        client.resources_mut(&of_type()).unsubscribe(["b"]);
        client.handle_open();
        let first = client.poll_transmit().expect("a first request").request;
        (client, first, update)
    }

    #[test]
    fn delta_a_resource_accepted_late_and_not_claimed_needs_a_new_stream() {
        let (mut client, first, update) = unsubscribed_between_streams();
        assert_eq!(first.initial_versions.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a"]);
        client.resources_mut(&of_type()).subscribe([WILDCARD]).expect("names");
        while client.poll_transmit().is_some() {}
        // `a` is subscribed to by name, and was claimed; of `b` this server knows nothing.
        client.handle_verdict(NOW, update.accept()).expect("it is out");
        assert_eq!(client.check_invariants(), Ok(()));
        assert!(client.wants_new_stream());
        client.handle_close();
        assert!(!client.wants_new_stream());
        client.handle_open();
        let first = client.poll_transmit().expect("a first request").request;
        assert_eq!(first.initial_versions, [("a", "1"), ("b", "")].into());
    }

    #[test]
    fn delta_a_resource_accepted_without_a_stream_is_claimed_by_the_next_one() {
        let (mut client, _, update) = unsubscribed_between_streams();
        client.resources_mut(&of_type()).subscribe([WILDCARD]).expect("names");
        client.handle_close();
        client.handle_verdict(NOW, update.accept()).expect("it is out");
        assert_eq!(client.check_invariants(), Ok(()));
        assert!(!client.wants_new_stream(), "the next stream claims both");
        client.handle_open();
        assert!(!client.wants_new_stream());
        let first = client.poll_transmit().expect("a first request").request;
        assert_eq!(first.initial_versions, [("a", "1"), ("b", "")].into());
    }

    #[test]
    fn delta_a_resource_accepted_late_and_requested_by_name_needs_no_new_stream() {
        for (others, is_held) in [(&["b"][..], true), (&[], false)] {
            let (mut client, _, update) = unsubscribed_between_streams();
            client.resources_mut(&of_type()).subscribe(others.iter().copied()).expect("names");
            client.handle_verdict(NOW, update.accept()).expect("it is out");
            assert_eq!(client.resources(&of_type()).state("b").is_some(), is_held);
            assert!(!client.wants_new_stream(), "it is asked for, or nobody has it");
        }
    }

    #[test]
    fn delta_a_lost_resource_is_subscribed_to_again_and_not_claimed() {
        let mut client = client::<Delta>(&["a", "b"]);
        _ = client.poll_transmit().expect("the first request");
        client.handle_response(NOW, delta("1", &["a", "b"], &[])).expect("a response");
        accept(&mut client);
        _ = client.poll_transmit().expect("an ACK");
        client.layer_mut(&of_type()).forget(["a"]);
        let again = client.poll_transmit().expect("a request").request;
        assert_eq!((again.subscribe, again.unsubscribe), (Vec::from(["a".into()]), Vec::new()));
        assert_eq!(client.poll_transmit(), None);
        client.handle_open();
        let first = client.poll_transmit().expect("the first request").request;
        assert_eq!(first.initial_versions, [("b", "1")].into());
    }

    #[test]
    fn a_lost_resource_of_the_wildcard_is_requested_by_the_wildcard() {
        let mut client = client::<Delta>(&["*", "b"]);
        _ = client.poll_transmit().expect("the first request");
        client.handle_response(NOW, delta("1", &["a", "b"], &[])).expect("a response");
        accept(&mut client);
        _ = client.poll_transmit().expect("an ACK");
        client.layer_mut(&of_type()).forget(["a"]);
        assert_eq!(client.poll_transmit().expect("a request").request.subscribe, [ResourceName::from("*")]);

        let mut client = self::client::<Sotw>(&["*", "b"]);
        lists(&mut client);
        client.handle_response(NOW, sotw("1", &["a", "b"])).expect("a response");
        accept(&mut client);
        lists(&mut client);
        client.layer_mut(&of_type()).forget(["a"]);
        let names = lists(&mut client).into_iter().map(|(names, _)| names);
        let expected: [Vec<ResourceName>; 2] = [Vec::from(["b".into()]), Vec::from(["*".into(), "b".into()])];
        assert_eq!(names.collect::<Vec<_>>(), expected);
        client.handle_open();
        assert_eq!(lists(&mut client)[0].1, "", "the wildcard is not complete");
    }

    #[test]
    fn an_adopted_resource_is_replaced_or_removed_and_its_version_not_claimed() {
        let mut client = client::<Delta>(&["a", "b"]);
        client.handle_close();
        let soon = NOW + Duration::from_secs(9);
        client.layer_mut(&of_type()).adopt([("a", Some(soon)), ("b", None), ("c", None)]);
        let held: Vec<_> = client.layer(&of_type()).held().map(|(name, expires)| (name.as_str(), expires)).collect();
        assert_eq!(held, [("a", Some(soon)), ("b", None)]);
        assert_eq!(client.poll_timeout(), Some(soon));
        client.handle_open();
        let first = client.poll_transmit().expect("the first request").request;
        assert_eq!(first.initial_versions, [("a", ""), ("b", "")].into());
        client.handle_response(NOW, delta("1", &["b"], &["a"])).expect("a response");
        let Some(Action::Apply(update)) = client.poll_action() else { panic!("no update") };
        assert_eq!((update.removed(), update.resources().len()), (&["a".into()][..], 1));
        client.handle_verdict(NOW, update.accept()).expect("it is out");
        assert_eq!(client.poll_timeout(), None);
        _ = client.poll_transmit().expect("an ACK");
        // A claimed resource is requested again; a resource that is not held any more has no expiry.
        client.layer_mut(&of_type()).adopt([("b", Some(soon))]);
        assert_eq!(client.poll_transmit().expect("a request").request.subscribe, [ResourceName::from("b")]);
        client.layer_mut(&of_type()).adopt([("b", Some(soon))]);
        assert_eq!(client.poll_transmit(), None, "it is asked for");
        client.handle_timeout(soon);
        assert_eq!(client.poll_action(), Some(Action::Expired { type_url: of_type(), names: Vec::from(["b".into()]) }));
        assert_eq!(client.check_invariants(), Ok(()));
    }

    #[test]
    fn a_blocked_update_is_compared_with_the_held_resources_when_unblocked() {
        let mut client = Client::<Sotw>::new(Config::new(Node::new("n")));
        let clusters = TypeUrl::from(type_url::CLUSTER);
        let response = |nonce: &str, names: &[&'static str]| {
            let mut response = sotw(nonce, names);
            response.type_url = clusters.clone();
            for item in &mut response.resources {
                let sotw::Item::Bare(any) = item else { unreachable!("bare") };
                any.type_url = clusters.clone();
            }
            response
        };
        client.resources_mut(&clusters).subscribe(["a", "b"]).expect("names");
        client.handle_open();
        _ = client.poll_transmit().expect("the first request");
        client.layer_mut(&clusters).block_updates();
        client.handle_response(NOW, response("1", &["a"])).expect("a response");
        assert_eq!((client.poll_action(), client.poll_transmit()), (None, None));
        assert_eq!(client.check_invariants(), Ok(()));
        client.layer_mut(&clusters).adopt([("b", None)]);
        client.layer_mut(&clusters).unblock_updates(NOW);
        let Some(Action::Apply(update)) = client.poll_action() else { panic!("no update") };
        assert_eq!(update.removed(), [ResourceName::from("b")], "it came while the response waited");
    }
}
