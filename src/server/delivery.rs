//! The delivery status of one resource, derived from the state of the stream: nothing is kept by name for it.

use alloc::vec::Vec;

use super::Server;
use super::extent::{Extent, PageNames, Pages};
use super::of_type::OfType;
use super::resource::Resource;
use super::sent::Sent;
use super::source::{Entry, Source, State};
use super::subscription::Subscription;
use super::variant::Variant;
use crate::name::{ResourceName, TypeUrl, Version};
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
    /// Whether the client was sent an earlier form of the resource on this stream, and not the current one. Known only
    /// if the source implements [`present_since`](Source::present_since) and [`previous`](Source::previous). A resource
    /// counts as not sent if it was removed and added again, or if an alias left it and stands for it again. A resource
    /// may count as sent if it was unknown before, if only an alias selects it and stood for it before, or if it
    /// appeared and changed between two [portions](super::ResponseLimit) of the changes or while its type waited for
    /// another.
    pub earlier: bool,
}

/// A resource that a client subscribes to, and its delivery: see [`Server::deliveries`]. Fields may be added.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Delivered<'a> {
    /// The name of the resource; of a resource that is not present, the name by which it is subscribed to.
    pub name: &'a ResourceName,
    /// The resource, if it is present.
    pub resource: Option<&'a Resource>,
    /// The version that is served: in delta that of the resource, in SotW that of the type. Empty without a resource.
    pub version: Version,
    /// Whether a response names it: in SotW a response says of no resource that it does not exist.
    pub is_named: bool,
    /// The delivery of its current form.
    pub delivery: Delivery,
    /// The client's error message, if it rejected that form.
    pub rejection: Option<&'a str>,
}

/// The status of the delivery of a resource. A change that is reverted before it is sent is a change: the resource is
/// sent once more.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DeliveryStatus {
    /// The client was not sent the current form of the resource, or the source does not know the resource (CSDS:
    /// NOT_SENT).
    NotSent,
    /// The client was sent the resource and has not sent an ACK or NACK yet (CSDS: STALE).
    Sent,
    /// The client has accepted the resource, or claimed its version at the start of the stream (CSDS: SYNCED). Beyond
    /// [`names_per_type`](super::Limits::names_per_type) names that were sent ahead of older changes, or sent again
    /// after a rejection, also what the client has not accepted.
    Acknowledged,
    /// The client has rejected the response with the resource, which was not sent again since (CSDS: ERROR). Of more
    /// than eight rejected responses of a type, or more than two that were unanswered at once, also what the client
    /// accepted between the oldest of them.
    Rejected,
}

impl<V: Variant> Server<V> {
    /// Returns the delivery of a resource: whether the client was sent its current form in the source, and the client's
    /// verdict. The name may be an alias. `None` if the client does not subscribe to it.
    pub fn delivery<S: Source>(
        &self,
        type_url: &TypeUrl,
        name: impl Into<ResourceName>,
        source: &S,
    ) -> Option<Delivery> {
        self.subscription(type_url)?.delivery(source, &name.into())
    }

    /// Returns the delivery of every resource of a type that the client subscribes to, in the order of their names: the
    /// resources that are present, and the names that are subscribed to by themselves. The cost is linear in these.
    pub fn deliveries<'a, S: Source>(&'a self, type_url: &TypeUrl, source: &'a S) -> Vec<Delivered<'a>> {
        let of_type = (!V::NAMES_REMOVALS).then(|| source.version(type_url)); // SotW
        self.subscription(type_url).map_or_else(Vec::new, |of| of.deliveries(source, of_type.as_ref()))
    }

    /// Returns the number of responses with content that wait for their ACK or NACK: at most two for each type.
    pub fn in_flight(&self) -> usize {
        self.types.iter().map(|of| of.exchange.count_out()).sum()
    }

    /// Returns whether no response with content is in flight, and nothing waits for another type. If a settled stream has
    /// nothing to transmit, its client has judged all that the source holds for it.
    pub fn is_settled(&self) -> bool {
        self.types.iter().all(|of| !of.exchange.is_out() && of.hold.is_none() && of.defer_until.is_none())
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
        let paged = |pages: &Pages| pages.resources(of).any(|paged| paged == *name);
        Some(self.look(of, name, &entry, &sent, paged).delivery)
    }

    /// Returns all deliveries. `of_type`: the version of the type as a whole, if that is the version of its resources.
    fn deliveries<'a, S: Source>(&'a self, source: &'a S, of_type: Option<&Version>) -> Vec<Delivered<'a>> {
        let of = self.of(source);
        let mut wanted: Vec<(&ResourceName, Entry<'a>)> = Vec::new();
        if self.wanted.wildcard() {
            wanted.extend(source.changes(self.type_url(), Revision::default()).filter_map(of_resource));
        }
        for glob in self.wanted.globs().iter() {
            wanted.extend(source.members(self.type_url(), glob).filter_map(of_resource));
        }
        for name in self.wanted.names().iter().filter(|name| !name.is_glob()) {
            let entry = self.wanted.get(of, name);
            wanted.push((entry.resource().map_or(name, Resource::name), entry));
        }
        wanted.sort_by_key(|(name, _)| *name);
        wanted.dedup_by_key(|(name, _)| *name);
        let sent = Sent::new(of, &self.wanted, &self.view, &self.pending, |_| true);
        let paged = PageNames::new(of, self.exchange.extents());
        let delivered = |(name, entry): (&'a ResourceName, Entry<'a>)| {
            let delivered = self.look(of, name, &entry, &sent, |range| paged.have(range, name));
            let own = delivered.resource.map(|resource| of_type.unwrap_or_else(|| resource.version()).clone());
            let is_named = own.is_some() || of_type.is_none();
            Delivered { version: own.unwrap_or_default(), is_named, ..delivered }
        };
        wanted.into_iter().map(delivered).collect()
    }

    /// Returns the delivery of a subscribed resource. `paged` says whether a range of pages has it.
    fn look<'a, S: Source>(
        &'a self,
        of: OfType<'_, S>,
        name: &'a ResourceName,
        entry: &Entry<'a>,
        sent: &Sent<'_>,
        paged: impl Fn(&Pages) -> bool,
    ) -> Delivered<'a> {
        let is_sent = match entry.state {
            State::Present(resource) => sent.has(entry, resource),
            State::Absent => sent.has_removal(entry, name),
            State::Unknown => false,
        };
        let had = |extent: &Extent| extent.has(name, entry, &paged);
        let (mut earlier, mut rejection) = (false, None);
        let status = if !is_sent {
            earlier = self.was_sent_before(of, name, entry, sent);
            DeliveryStatus::NotSent
        } else if self.exchange.is_in_flight(had) {
            DeliveryStatus::Sent
        } else {
            rejection = self.exchange.rejection(name, had);
            if rejection.is_some() { DeliveryStatus::Rejected } else { DeliveryStatus::Acknowledged }
        };
        let delivery = Delivery { status, revision: entry.since, earlier };
        Delivered { name, resource: entry.resource(), version: Version::default(), is_named: true, delivery, rejection }
    }

    /// Returns whether the client was sent an earlier form of a resource whose current form it was not sent.
    fn was_sent_before<S: Source>(
        &self,
        of: OfType<'_, S>,
        name: &ResourceName,
        entry: &Entry<'_>,
        sent: &Sent<'_>,
    ) -> bool {
        match entry.state {
            State::Present(resource) => {
                // An alias may stand for a resource that no name selected before.
                let by_name = self.wanted.covers(name.as_str()) || self.view.aliases().of(name).next().is_some();
                let since = of.present_since(name).filter(|_| by_name);
                since.is_some_and(|since| sent.has(&Entry::present(resource, since), resource))
            }
            State::Absent => {
                let last = self.view.sent_to().and_then(|sent_to| of.previous(name, sent_to));
                last.is_some_and(|last| sent.had(last))
            }
            State::Unknown => false,
        }
    }
}

fn of_resource<'a>(entry: Entry<'a>) -> Option<(&'a ResourceName, Entry<'a>)> {
    Some((entry.resource()?.name(), entry))
}
