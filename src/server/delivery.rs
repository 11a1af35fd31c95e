//! How far the delivery of one resource is, derived from what the stream keeps anyway: nothing is kept by name for it.

use super::Server;
use super::extent::Extent;
use super::sent::Sent;
use super::source::{Source, State};
use super::subscription::Subscription;
use super::variant::Variant;
use crate::name::{ResourceName, TypeUrl};
use crate::revision::Revision;

/// What a client was sent of one resource, as the source has it now, and what the client said of that: the `config_status` of
/// CSDS, and what a push waits for. See [`Server::delivery`](super::Server::delivery). Fields may be added.
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
    /// How far the delivery is.
    pub status: DeliveryStatus,
    /// Since when the resource is as it is, or is absent: what the status is about.
    pub revision: Revision,
}

/// How far the delivery of a resource is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DeliveryStatus {
    /// The client was not sent the resource as it is now, or the source does not know it (CSDS: NOT_SENT).
    NotSent,
    /// The client was sent the resource, and has not answered (CSDS: STALE).
    Sent,
    /// The client has accepted the resource, or claimed as the stream began that it has it (CSDS: SYNCED).
    Acknowledged,
    /// The client has rejected the response that had the resource, and was not sent it again since (CSDS: ERROR).
    Rejected,
}

impl<V: Variant> Server<V> {
    /// How far the delivery of a resource is: of what the source has of it now, whether the client was sent that, and what it
    /// said. The name may be an alias. `None` if the client does not want it.
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
    /// How far the delivery of what a name stands for is. `None`: the name is not wanted.
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
        let had = |extent: &Extent| extent.has(of, &self.wanted, name, &entry);
        let status = match is_sent {
            false => DeliveryStatus::NotSent,
            true if self.exchange.is_in_flight(had) => DeliveryStatus::Sent,
            true if self.exchange.is_rejected(had, |again| self.wanted.is_asked(again, name, &entry)) => {
                DeliveryStatus::Rejected
            }
            true => DeliveryStatus::Acknowledged,
        };
        Some(Delivery { status, revision: entry.since })
    }
}
