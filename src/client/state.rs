//! The state of each resource, as a dump shows it.

use alloc::vec::Vec;
use core::fmt;

use super::Client;
use super::failure::{Cause, Failure};
use super::holdings::{Absence, Held};
use super::merge::Merge;
use super::subscription::Subscription;
use super::variant::{Of, Protocol, Variant};
use crate::name::{ResourceName, TypeUrl, Version};
use crate::time::Instant;

/// The status of a resource: the states of gRFC A88, and the `ClientResourceStatus` of CSDS.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ResourceStatus {
    /// The resource was requested, or is to be, and there is no answer.
    Requested,
    /// The resource is held as the server sent it last.
    Acked,
    /// The last content from the server was rejected. Earlier content may still be held.
    Nacked,
    /// The server reported that the resource does not exist, or the existence time-out passed. The resource may still
    /// be held ([`DataErrors::Keep`](super::DataErrors::Keep)).
    DoesNotExist,
    /// The server reported an error of the resource. Earlier content may still be held.
    ReceivedError,
    /// The existence time-out passed, and does not mean that the resource does not exist
    /// ([`Config::with_transient_timeout`](super::Config::with_transient_timeout)).
    TimedOut,
}

impl fmt::Display for ResourceStatus {
    /// Writes the name of the status in `ClientResourceStatus` of CSDS.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requested => "REQUESTED",
            Self::Acked => "ACKED",
            Self::Nacked => "NACKED",
            Self::DoesNotExist => "DOES_NOT_EXIST",
            Self::ReceivedError => "RECEIVED_ERROR",
            Self::TimedOut => "TIMEOUT",
        })
    }
}

/// The state of one resource, as [`csds`](crate::csds) shows it. Fields may be added.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct ResourceState<'a> {
    /// The state of the resource between the server and the application.
    pub status: ResourceStatus,
    /// The version of the held content; `None` if no content is held, empty if the content came from
    /// [elsewhere](super::LayerMut::adopt).
    pub version: Option<&'a Version>,
    /// The time at which the held content was accepted, or accepted again unchanged; `None` if no content is held, or
    /// if it came from elsewhere.
    pub updated: Option<Instant>,
    /// The last error, unless it was resolved since.
    pub error: Option<&'a Failure>,
    /// The server's report that the resource does not exist, if the resource is not held; `None` if the existence
    /// time-out passed, or if the report came as an `error` or from [elsewhere](super::LayerMut::mark_does_not_exist).
    pub absence: Option<&'a Absence>,
    /// The held resource that the name stands for, if it is an alias.
    pub stands_for: Option<&'a ResourceName>,
}

impl<V: Variant> Client<V> {
    /// Returns the state of every resource, in the order of types and names: held resources, subscribed names, and
    /// other resources for which the server reported errors.
    pub fn states(&self) -> impl Iterator<Item = (&TypeUrl, &ResourceName, ResourceState<'_>)> {
        let mut types: Vec<&Of<V>> = self.types.iter().collect();
        types.sort_unstable_by_key(|of| of.type_url());
        types.into_iter().flat_map(|of| of.states::<V>().map(|(name, state)| (of.type_url(), name, state)))
    }
}

impl<T> Subscription<T> {
    pub(super) fn state<V: Protocol<StreamState = T>>(&self, name: &str) -> Option<ResourceState<'_>> {
        self.state_of::<V>(name, self.holdings.held().get(name))
    }

    fn state_of<'a, V: Protocol<StreamState = T>>(
        &'a self,
        name: &str,
        held: Option<&'a Held>,
    ) -> Option<ResourceState<'a>> {
        let error = self.failures.get(name);
        let stands_for_many = || {
            self.holdings.find_name(name).is_some_and(|name| match name.is_wildcard() {
                true => !self.holdings.held().is_empty(),
                false => self.holdings.has_member(name),
            })
        };
        let status = match error.map(|failure| failure.cause) {
            Some(Cause::Deleted) => ResourceStatus::DoesNotExist,
            Some(Cause::Rejected) => ResourceStatus::Nacked,
            Some(Cause::Server) => ResourceStatus::ReceivedError,
            Some(Cause::TimedOut) => ResourceStatus::TimedOut,
            None if held.is_some() || stands_for_many() => ResourceStatus::Acked,
            None if self.holdings.does_not_exist(name) => ResourceStatus::DoesNotExist,
            None if self.wants(name) || self.is_name_added(name) => ResourceStatus::Requested,
            None => return None,
        };
        let implied =
            |held: &Held| held.version().is_empty() && held.is_claimed() && V::implies_version(&self.resource_type);
        let version = held.map(|held| if implied(held) { self.holdings.version() } else { held.version() });
        let updated = held.and_then(|held| if implied(held) { self.holdings.version_at() } else { held.accepted_at() });
        let absence = held.map_or_else(|| self.holdings.absence(name), |_| None);
        let bindings = self.holdings.bindings();
        let is_bound = |name: &&ResourceName| !bindings.is_unbound(name);
        let stands_for = match bindings.is_empty() {
            true => None,
            false => self.holdings.find_name(name).filter(is_bound).and_then(|name| bindings.target(name.as_str())),
        };
        Some(ResourceState { status, version, updated, error, absence, stands_for })
    }

    /// Returns the states in the order of the names: of held resources, of subscribed names and of failures.
    pub(super) fn states<V: Protocol<StreamState = T>>(
        &self,
    ) -> impl Iterator<Item = (&ResourceName, ResourceState<'_>)> {
        let mut added: Vec<&ResourceName> = self.names_added().collect();
        added.sort_unstable();
        added.dedup();
        let held = self.holdings.held().iter().map(|(name, held)| (name, Some(held)));
        let names = self.holdings.names().map(|name| (name, None));
        let failures = self.failures.keys().map(|name| (name, None));
        let added = added.into_iter().map(|name| (name, None));
        let known = Merge::new(held, Merge::new(names, Merge::new(failures, added)));
        known.filter_map(|(name, held)| Some((name, self.state_of::<V>(name.as_str(), held)?)))
    }
}
