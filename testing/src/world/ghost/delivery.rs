//! The delivery that a server reports of each resource, against the messages on the wire.

use xds_machine::ResourceName;
use xds_machine::server::{DeliveryStatus, Server, State};

use super::super::{Both, Made, Store, is_alias, is_resource};
use super::server::APART;
use super::{Ghost, Memory};

impl Ghost {
    /// Checks the status of every resource that the server knows to be subscribed.
    pub fn check_deliveries<V: Both>(&self, setup: &Made, store: &Store, server: &Server<V>) {
        for (t, memory) in self.types.iter().enumerate() {
            for name in setup.names.iter().filter(|name| is_resource(name)) {
                let delivery = server.delivery(&setup.types[t], name.clone(), &store.cache);
                let status = delivery.map(|delivery| delivery.status);
                memory.check_delivery::<V>(setup, store, t, name, status);
            }
        }
    }
}

impl Memory {
    fn check_delivery<V: Both>(
        &self,
        setup: &Made,
        store: &Store,
        t: usize,
        name: &ResourceName,
        status: Option<DeliveryStatus>,
    ) {
        let there = store.content(setup, t, name);
        let Some(content) = there else { return self.check_removal::<V>(setup, store, t, name, status) };
        if !store.is_known(t) {
            return;
        }
        let Some(status) = status else {
            assert!(!self.server_wants(name, there), "{name} is subscribed, and has no delivery");
            return;
        };
        assert!(self.server_wants(name, there), "{name} is {status:?}, and not subscribed");
        let sent = self.delivered.get(name) == Some(&content);
        // A change that is reverted before it is sent costs no response: the verdict on the earlier one counts.
        let reverted = self.reasons.contains(name);
        let in_flight = self.out.as_ref().is_some_and(|out| out.resources.get(name) == Some(&content));
        match status {
            DeliveryStatus::NotSent => {
                // Claims are compared with the first response.
                let due = reverted || !sent || self.sent.is_none();
                assert!(due || setup.limit.is_some(), "{name} was sent, did not change, and counts as not sent");
            }
            DeliveryStatus::Sent => {
                let may_be = in_flight || (reverted && self.out.is_some());
                assert!(may_be, "{name} is not in flight, and counts as sent");
            }
            DeliveryStatus::Acknowledged => {
                assert!(sent, "{name} was not sent, and counts as acknowledged");
                assert!(!in_flight || setup.limit.is_some(), "{name} is in flight, and counts as acknowledged");
                let refused = self.refused.get(name) == Some(&content);
                assert!(!refused || setup.limit.is_some(), "{name} was rejected, and counts as acknowledged");
            }
            DeliveryStatus::Rejected => {
                assert!(sent && !in_flight, "{name} is due or in flight, and counts as rejected");
                let refused = self.refused.get(name) == Some(&content);
                let joined = self.rejections > APART || setup.limit.is_some();
                assert!(refused || joined, "{name} was not rejected, and counts as rejected");
            }
            other => panic!("{other:?}"),
        }
    }

    fn check_removal<V: Both>(
        &self,
        setup: &Made,
        store: &Store,
        t: usize,
        name: &ResourceName,
        status: Option<DeliveryStatus>,
    ) {
        let Some(status) = status else { return };
        if store.state(setup, t, name) == State::Unknown {
            assert_eq!(status, DeliveryStatus::NotSent, "{name} is unknown");
            return;
        }
        let announces = !V::LISTS || setup.full_state;
        match status {
            _ if !announces => {}
            DeliveryStatus::Acknowledged => {
                let in_flight = self.out.as_ref().is_some_and(|out| out.removed.contains(name));
                let at_limit = setup.limit.is_some();
                assert!(!in_flight || at_limit, "the removal of {name} is in flight, and counts as acknowledged");
                // The removal of an alias stands for that of its target.
                let by_alias = setup.names.iter().any(is_alias);
                let has = !by_alias && !setup.hold && self.delivered.contains_key(name);
                assert!(!has, "the removal of {name} was not sent, and counts as acknowledged");
            }
            DeliveryStatus::Sent => {
                // SotW: the response to a list that was empty meanwhile may still be answered.
                assert!(V::LISTS || self.out.is_some(), "the removal of {name} is not in flight");
            }
            _ => {}
        }
    }
}
