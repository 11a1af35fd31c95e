//! The delivery status of one resource, derived from the state of the stream: nothing is kept by name for it.

use super::Server;
use super::extent::Extent;
use super::sent::Sent;
use super::source::{Source, State};
use super::subscription::Subscription;
use super::variant::Variant;
use super::wanted::was_asked;
use crate::name::{ResourceName, TypeUrl};
use crate::revision::Revision;

/// The delivery of the current form of one resource to a client, and the client's verdict: the `config_status` of
/// CSDS, and the condition that a push waits for. See [`Server::delivery`](super::Server::delivery). Fields may be
/// added.
///
/// ```
/// use xds_machine::message::delta;
/// use xds_machine::server::{Cache, Config, DeliveryStatus, Resource, Server, StreamId};
/// use xds_machine::{Delta, Instant, TypeUrl, type_url};
///
/// let (now, clusters) = (Instant::EPOCH, TypeUrl::from(type_url::CLUSTER));
/// let mut cache = Cache::new(1);
/// cache.insert(&clusters, Resource::new("c", &b""[..]));
/// let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
/// let request = delta::Request { subscribe: vec!["c".into()], ..delta::Request::new(clusters.clone()) };
/// server.handle_request(now, request)?;
/// let status = |server: &Server<Delta>| Some(server.delivery(&clusters, "c", &cache)?.status);
/// assert_eq!(status(&server), Some(DeliveryStatus::NotSent));
///
/// let response = server.poll_transmit(now, &cache).expect("the answer");
/// assert_eq!(status(&server), Some(DeliveryStatus::Sent));
///
/// let ack = delta::Request { nonce: response.nonce().clone(), ..delta::Request::new(clusters.clone()) };
/// server.handle_request(now, ack)?;
/// assert_eq!(status(&server), Some(DeliveryStatus::Acknowledged));
/// assert_eq!(server.delivery(&clusters, "other", &cache), None);
/// # Ok::<(), xds_machine::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Delivery {
    /// The status of the delivery.
    pub status: DeliveryStatus,
    /// The revision since which the resource has its current form, or is absent: the status refers to this form.
    pub revision: Revision,
}

/// The status of the delivery of a resource.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DeliveryStatus {
    /// The client was not sent the current form of the resource, or the source does not know the resource (CSDS:
    /// NOT_SENT).
    NotSent,
    /// The client was sent the resource and has not sent an ACK or NACK yet (CSDS: STALE).
    Sent,
    /// The client has accepted the resource, or claimed its version at the start of the stream (CSDS: SYNCED).
    Acknowledged,
    /// The client has rejected the response with the resource, which was not sent again since (CSDS: ERROR).
    Rejected,
}

impl<V: Variant> Server<V> {
    /// Returns the delivery of a resource: whether the client was sent its current form in the source, and with what
    /// verdict. The name may be an alias. `None` if the client does not subscribe to it.
    pub fn delivery<S: Source>(
        &self,
        type_url: &TypeUrl,
        name: impl Into<ResourceName>,
        source: &S,
    ) -> Option<Delivery> {
        self.subscription(type_url)?.delivery(source, &name.into())
    }
}

impl Subscription {
    /// Returns the delivery of the resource that a name stands for; `None` if the name is not subscribed.
    pub(super) fn delivery<S: Source>(&self, source: &S, name: &ResourceName) -> Option<Delivery> {
        let of = self.of(source);
        let entry = self.wanted.get(of, name);
        let wanted = |resource| self.wanted.wants(of, resource);
        if !self.wanted.covers(name.as_str()) && !entry.resource().is_some_and(wanted) {
            return None;
        }
        let name = entry.resource().map_or(name, |resource| resource.name());
        let sent = Sent::new(of, &self.wanted, &self.view, &self.pending, |resource| resource.name() == name);
        let is_sent = match entry.state {
            State::Present(resource) => sent.has(&entry, resource),
            State::Absent => sent.has_removal(&entry, name),
            State::Unknown => false,
        };
        let had = |extent: &Extent| extent.has(of, name, &entry);
        let status = match is_sent {
            false => DeliveryStatus::NotSent,
            true if self.exchange.is_in_flight(had) => DeliveryStatus::Sent,
            true if self.exchange.is_rejected(had, |again| was_asked(again, name, &entry)) => DeliveryStatus::Rejected,
            true => DeliveryStatus::Acknowledged,
        };
        Some(Delivery { status, revision: entry.since })
    }
}
