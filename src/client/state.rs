//! What a client knows of its resources, as a dump shows it.

use alloc::collections::BTreeSet;
use core::fmt;

use super::Client;
use super::failure::{Cause, Failure};
use super::holdings::Held;
use super::subscription::Subscription;
use super::variant::{Protocol, Variant};
use crate::name::{ResourceName, TypeUrl, Version};

/// Where a resource stands: the states of gRFC A88, and the `ClientResourceStatus` of CSDS.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ResourceStatus {
    /// It was asked for, or is to be, and there is no answer.
    Requested,
    /// It is held as the server sent it last.
    Acked,
    /// What the server sent last was rejected. What was held before may be held still.
    Nacked,
    /// The server said that it does not exist, or the time for it to come has passed. It may be held still
    /// ([`DataErrors::Keep`](super::DataErrors::Keep)).
    DoesNotExist,
    /// The server reported an error of it. What was held before may be held still.
    ReceivedError,
    /// The time for it to come has passed, and that says nothing of whether it exists
    /// ([`Config::with_transient_timeout`](super::Config::with_transient_timeout)).
    TimedOut,
}

impl fmt::Display for ResourceStatus {
    /// The name that `ClientResourceStatus` of CSDS has for it.
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

/// What a client knows of one resource. CSDS wants to know besides when that was so: what a driver notes with the verdict,
/// and of errors [`Failure::at`]. Fields may be added.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct ResourceState<'a> {
    /// The state of the resource between the server and the application.
    pub status: ResourceStatus,
    /// The version of what is held; `None` if nothing is. Empty if that came from [elsewhere](super::LayerMut::adopt).
    pub version: Option<&'a Version>,
    /// The last error, if there was no good news since.
    pub error: Option<&'a Failure>,
}

impl<V: Variant> Client<V> {
    /// What is known of every resource: of each type those that are held, in the order of their names, then those that are
    /// wanted and not held, then others of which the server reported errors.
    pub fn states(&self) -> impl Iterator<Item = (&TypeUrl, &ResourceName, ResourceState<'_>)> {
        self.types.iter().flat_map(|of| of.states::<V>().map(|(name, state)| (of.type_url(), name, state)))
    }
}

impl<T> Subscription<T> {
    pub(super) fn state<V: Protocol<StreamState = T>>(&self, name: &str) -> Option<ResourceState<'_>> {
        let (wanted, held) = (self.wants(name), self.holdings.held().get(name));
        let error = self.failures.get(name);
        let all = self.holdings.find_name(name).is_some_and(|name| match name.is_wildcard() {
            true => !self.holdings.held().is_empty(),
            false => self.holdings.has_member(name),
        });
        let status = match error.map(|failure| failure.cause) {
            Some(Cause::Deleted) => ResourceStatus::DoesNotExist,
            Some(Cause::Rejected) => ResourceStatus::Nacked,
            Some(Cause::Server) => ResourceStatus::ReceivedError,
            Some(Cause::TimedOut) => ResourceStatus::TimedOut,
            None if held.is_some() || all => ResourceStatus::Acked,
            None if self.holdings.does_not_exist(name) => ResourceStatus::DoesNotExist,
            None if wanted || self.is_name_added(name) => ResourceStatus::Requested,
            None => return None,
        };
        let implied =
            |held: &Held| held.version().is_empty() && held.is_claimed() && V::implies_version(&self.resource_type);
        let version = held.map(|held| if implied(held) { self.holdings.version() } else { held.version() });
        Some(ResourceState { status, version, error })
    }

    pub(super) fn states<V: Protocol<StreamState = T>>(
        &self,
    ) -> impl Iterator<Item = (&ResourceName, ResourceState<'_>)> {
        self.known_names().filter_map(|name| Some((name, self.state::<V>(name.as_str())?)))
    }

    fn known_names(&self) -> impl Iterator<Item = &ResourceName> {
        let held = |name: &ResourceName| self.holdings.has(name.as_str());
        let is_subscribed = |name: &ResourceName| self.wants(name.as_str());
        let awaited = self.holdings.names().filter(move |&name| !held(name));
        let names_added: BTreeSet<&ResourceName> =
            self.names_added().filter(|&name| !held(name) && !is_subscribed(name)).collect();
        let others = self.failures.keys().filter(move |&name| !held(name) && !is_subscribed(name));
        self.holdings.held().keys().chain(awaited).chain(names_added).chain(others)
    }
}
