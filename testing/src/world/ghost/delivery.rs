//! The delivery that a server reports of each resource, against the messages on the wire.

use xds_machine::ResourceName;
use xds_machine::server::{Delivery, DeliveryStatus, Server, State};

use super::super::{Both, Made, Store, is_alias, is_resource, stands_for};
use super::outs::APART;
use super::{Ghost, Memory};

impl Ghost {
    /// Checks the status of every resource that the server knows to be subscribed.
    pub fn check_deliveries<V: Both>(&self, setup: &Made, store: &Store, server: &Server<V>) {
        for (t, memory) in self.types.iter().enumerate() {
            for name in setup.names.iter().filter(|name| is_resource(name)) {
                let there = store.content(setup, t, name);
                let delivery = server.delivery(&setup.types[t], name.clone(), &store.cache);
                let Some(Delivery { status, earlier, .. }) = delivery else {
                    let wanted = there.is_some() && store.is_known(t) && memory.server_wants(name, there);
                    assert!(!wanted, "{name} is subscribed, and has no delivery");
                    continue;
                };
                memory.check_earlier(setup, name, status, earlier);
                match there {
                    Some(content) if store.is_known(t) => memory.check_delivery(setup, name, content, status),
                    Some(_) => {}
                    None if store.state(setup, t, name) == State::Unknown => {
                        assert_eq!(status, DeliveryStatus::NotSent, "{name} is unknown");
                    }
                    // SotW announces no removals of a partial type.
                    None if V::LISTS && !setup.full_state => {}
                    None => memory.check_removal::<V>(setup, name, status),
                }
            }
        }
    }
}

impl Memory {
    fn check_delivery(&self, setup: &Made, name: &ResourceName, content: u8, status: DeliveryStatus) {
        assert!(self.server_wants(name, Some(content)), "{name} is {status:?}, and not subscribed");
        let sent = self.delivered.get(name) == Some(&content);
        // A change that is reverted before it is sent costs no response: the verdict on the earlier one counts.
        let reverted = self.reasons.contains(name);
        let in_flight = self.content_out().any(|out| out.resources.get(name) == Some(&content));
        let (refused, at_limit) = (self.refused.get(name) == Some(&content), setup.limit.is_some() || self.several);
        match status {
            DeliveryStatus::NotSent => {
                // Claims are compared with the first response.
                let due = reverted || !sent || self.sent.is_none();
                assert!(due || at_limit, "{name} was sent, did not change, and counts as not sent");
            }
            DeliveryStatus::Sent => {
                let may_be = in_flight || self.several || (reverted && self.is_out());
                assert!(may_be, "{name} is not in flight, and counts as sent");
            }
            DeliveryStatus::Acknowledged => {
                assert!(sent, "{name} was not sent, and counts as acknowledged");
                assert!(!in_flight || at_limit, "{name} is in flight, and counts as acknowledged");
                assert!(!refused || at_limit, "{name} was rejected, and counts as acknowledged");
            }
            DeliveryStatus::Rejected => {
                assert!((sent && !in_flight) || self.several, "{name} is due or in flight, and counts as rejected");
                let joined = self.rejections > APART || at_limit || self.several;
                assert!(refused || joined, "{name} was not rejected, and counts as rejected");
            }
            other => panic!("{other:?}"),
        }
    }

    /// Checks whether an earlier form counts as sent.
    fn check_earlier(&self, setup: &Made, name: &ResourceName, status: DeliveryStatus, earlier: bool) {
        if earlier {
            assert_eq!(status, DeliveryStatus::NotSent, "an earlier form of {name} was sent");
            // The limits that `Delivery::earlier` documents.
            let mut names = self.listed.iter().filter(|listed| !is_alias(listed));
            let by_alias = !names.any(|listed| stands_for(listed, name, None));
            let waited = setup.response_limit.is_some() || setup.types.len() > 1;
            let exempt = self.doubted.contains(name) || by_alias || waited || self.several;
            // A resource may be claimed in a form that an alias does not stand for.
            let had = self.had.contains(name) || self.claimed;
            assert!(had || exempt, "{name} was not sent, and an earlier form counts as sent");
        } else if status == DeliveryStatus::NotSent && self.delivered.contains_key(name) {
            let was_gone = self.gone.contains(name) || self.doubted.contains(name);
            let at_limit = setup.limit.is_some() || setup.response_limit.is_some() || self.several;
            // What is requested, or has to be sent again after a cluster, waits for its answer.
            let again = self.reasons.contains(name);
            let waits = self.sent.is_none() || self.asked_since || again || setup.types.len() > 1;
            // An alias may have left the resource.
            let by_alias = setup.names.iter().any(is_alias);
            assert!(was_gone || at_limit || waits || by_alias, "{name} was sent, and no earlier form counts as sent");
        }
    }

    fn check_removal<V: Both>(&self, setup: &Made, name: &ResourceName, status: DeliveryStatus) {
        match status {
            DeliveryStatus::Acknowledged => {
                let in_flight = self.outs.iter().any(|out| out.removed.contains(name));
                let at_limit = setup.limit.is_some() || setup.is_forgetful() || self.several;
                assert!(!in_flight || at_limit, "the removal of {name} is in flight, and counts as acknowledged");
                // The removal of an alias stands for that of its target.
                let by_alias = setup.names.iter().any(is_alias);
                let has = !by_alias && !setup.hold && self.delivered.contains_key(name);
                assert!(!has, "the removal of {name} was not sent, and counts as acknowledged");
            }
            DeliveryStatus::Sent => {
                // SotW: the response to a list that was empty meanwhile may still be answered.
                assert!(V::LISTS || self.is_out() || self.several, "the removal of {name} is not in flight");
            }
            _ => {}
        }
    }
}
