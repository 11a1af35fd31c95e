//! What the client of a stream has said of each type: the last responses by verdict, and the rejections that stand.

use xds_machine::server::{Delivered, DeliveryStatus, Response, Revision, Server, Source, Variant};
use xds_machine::{ResourceName, Status, TypeUrl, Version};

/// The most names that are kept of one response, and of the rejections that stand. Beyond it they are only counted.
const LISTED: usize = 256;

/// A response that a client rejected.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Rejected {
    /// The version of the response.
    pub version: Version,
    /// The revision of the source up to which the response served the client.
    pub revision: Revision,
    /// The client's reason.
    pub error: Status,
    /// The names of the resources that the response had, at most 256 of them, and not those of removals. The client
    /// may mean one of them or all: its [`error`](Self::error) is a text.
    pub resources: Vec<ResourceName>,
    /// The number of resources that the response had.
    pub resource_count: usize,
    /// The resources that the client has rejected in their current form, by this response or an earlier one, in the
    /// order of their names, at most 256 of them. A rejection stands until the client accepts the resource, or the
    /// resource changes, is removed, or is unsubscribed from; the list is renewed with each ACK and NACK of the type.
    pub standing: Vec<RejectedResource>,
    /// The number of resources whose rejections stand.
    pub standing_count: usize,
    /// Whether the client has accepted no response of the type since.
    pub is_last: bool,
}

/// A resource that a client has rejected in its current form.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RejectedResource {
    /// The name of the resource.
    pub name: ResourceName,
    /// The revision of the source since which the resource has this form.
    pub since: Revision,
    /// The client's reason, for the response that had the resource.
    pub reason: String,
}

/// A resource that a client subscribes to, and what the client was sent of it and has said of it: see
/// [`Group::deliveries`](super::Group::deliveries).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ResourceDelivery {
    /// The name of the resource; of a resource that is not present, the name by which it is subscribed to.
    pub name: ResourceName,
    /// Whether the client was sent the current form of the resource, and its verdict.
    pub status: DeliveryStatus,
    /// The revision of the source since which the resource has its current form, or is absent.
    pub since: Revision,
    /// The client's reason, if it rejected that form.
    pub reason: Option<String>,
}

/// The last responses of one type, by verdict.
pub(super) struct Verdicts {
    pub(super) type_url: TypeUrl,
    pub(super) sent: Version,
    pub(super) accepted: Option<Version>,
    pub(super) rejected: Option<Box<Rejected>>,
    /// The resources of the response in flight, until its verdict: an idle stream keeps none.
    in_flight: Option<Box<Listed>>,
    /// Whether more resources may be rejected than those that are listed.
    is_cut: bool,
}

/// The names of a response's resources, as far as they are listed, and their number.
#[derive(Default)]
struct Listed {
    names: Vec<ResourceName>,
    count: usize,
}

impl Verdicts {
    pub(super) fn new<V: Variant>(response: &Response<V>) -> Self {
        let (type_url, sent) = (response.type_url().clone(), response.version().clone());
        let mut new = Self { type_url, sent, accepted: None, rejected: None, in_flight: None, is_cut: false };
        new.note_sent(response);
        new
    }

    pub(super) fn note_sent<V: Variant>(&mut self, response: &Response<V>) {
        self.sent = response.version().clone();
        let count = response.resource_count();
        let names = response.resources().take(LISTED).map(|resource| resource.name().clone()).collect();
        self.in_flight = (count > 0).then(|| Box::new(Listed { names, count }));
    }

    /// Notes an ACK. Returns whether rejections may stand, so that they have to be [renewed](Self::renew).
    pub(super) fn note_ack(&mut self, version: &Version) -> bool {
        let accepted = self.in_flight.take().map_or_else(Vec::new, |listed| listed.names);
        self.accepted = Some(version.clone());
        let Some(rejected) = &mut self.rejected else { return false };
        rejected.is_last = false;
        rejected.standing.retain(|resource| !accepted.contains(&resource.name));
        true
    }

    /// Notes a NACK. The rejections have to be [renewed](Self::renew).
    pub(super) fn note_nack(&mut self, version: &Version, revision: Revision, error: &Status) {
        let listed = self.in_flight.take().map_or_else(Listed::default, |listed| *listed);
        let mut standing = self.rejected.take().map_or_else(Vec::new, |earlier| earlier.standing);
        standing.retain(|resource| !listed.names.contains(&resource.name));
        let (reason, since) = (&error.message, revision);
        let rejected = |name: &ResourceName| RejectedResource { name: name.clone(), since, reason: reason.clone() };
        standing.extend(listed.names.iter().map(rejected));
        standing.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        self.is_cut |= listed.count > listed.names.len() || standing.len() > LISTED;
        self.rejected = Some(Box::new(Rejected {
            version: version.clone(),
            revision,
            error: error.clone(),
            resources: listed.names,
            resource_count: listed.count,
            standing_count: standing.len(),
            standing,
            is_last: true,
        }));
    }

    /// Drops the rejections that do not stand any more. The cost is that of the listed names; if the list was cut, that
    /// of all resources that the client subscribes to.
    pub(super) fn renew<V: Variant, S: Source>(&mut self, server: &Server<V>, source: &S) {
        let Some(rejected) = &mut self.rejected else { return };
        if self.is_cut {
            let mut all = server.deliveries(&self.type_url, source);
            all.retain(|resource| resource.delivery.status == DeliveryStatus::Rejected);
            rejected.standing_count = all.len();
            self.is_cut = all.len() > LISTED;
            all.truncate(LISTED);
            rejected.standing = all.iter().map(RejectedResource::new).collect();
        } else {
            rejected.standing.retain_mut(|resource| {
                let delivery = server.delivery(&self.type_url, resource.name.clone(), source);
                let of = delivery.filter(|delivery| delivery.status == DeliveryStatus::Rejected);
                resource.since = of.map_or(resource.since, |delivery| delivery.revision);
                of.is_some()
            });
            rejected.standing_count = rejected.standing.len();
        }
        if rejected.standing.is_empty() && !rejected.is_last {
            self.rejected = None;
        }
    }

    /// Returns the rejection of what the client was sent up to a revision of the source, if there is one.
    pub(super) fn rejection(&self, upto: Revision) -> Option<&Rejected> {
        let rejected = self.rejected.as_deref()?;
        let is_known = !self.is_cut && !rejected.standing.is_empty();
        let is_rejected = match is_known {
            true => rejected.standing.iter().any(|resource| resource.since <= upto),
            // The response had removals alone, or its resources have changed since.
            false => rejected.is_last && rejected.revision >= upto || !rejected.standing.is_empty(),
        };
        is_rejected.then_some(rejected)
    }
}

impl RejectedResource {
    fn new(delivered: &Delivered<'_>) -> Self {
        let reason = delivered.rejection.unwrap_or_default().into();
        Self { name: delivered.name.clone(), since: delivered.delivery.revision, reason }
    }
}

impl ResourceDelivery {
    pub(super) fn new(delivered: &Delivered<'_>) -> Self {
        let (name, delivery) = (delivered.name.clone(), delivered.delivery);
        let reason = delivered.rejection.map(Into::into);
        Self { name, status: delivery.status, since: delivery.revision, reason }
    }
}
