//! The state of one type of one client: subscribed names, held resources, announced names, and responses in flight.
//!
//! Each part is a value with its own methods; this file combines them when names and streams are added and removed.
//! Responses are processed in `classify.rs` and `apply.rs`.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::announced::Announced;
use super::config::Settings;
use super::failure::Failure;
use super::holdings::{Holdings, Unsubscribed};
use super::in_flight::InFlight;
use super::timers::Timers;
use crate::ensure::ensure;
use crate::error::Code;
use crate::model::{Label, Relabel};
use crate::name::{ResourceName, TypeUrl};
use crate::resource_type::ResourceType;
use crate::time::Instant;

/// `T` is the state that the variant keeps of this stream in addition.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Subscription<T> {
    pub(super) resource_type: ResourceType,
    /// Whether the type is requested even without subscribed names (delta).
    pub(super) on_demand: bool,
    /// Subscribed names that are not merged yet, so that ten thousand names that are added one by one are sorted once.
    names_added: Vec<ResourceName>,
    pub(super) holdings: Holdings,
    /// Errors of wanted resources; a resource without an error has no entry.
    pub(super) failures: BTreeMap<ResourceName, Failure>,
    pub(super) in_flight: InFlight,

    // The fields below are of this stream only.
    pub(super) announced: Announced,
    pub(super) timers: Timers,
    /// Whether the application has a resource that the first request should have claimed and did not.
    pub(super) unannounced: bool,
    pub(super) stream_state: T,
}

impl<T: Default> Subscription<T> {
    pub(super) fn new(resource_type: ResourceType) -> Self {
        Self {
            resource_type,
            on_demand: false,
            names_added: Vec::new(),
            holdings: Holdings::default(),
            failures: BTreeMap::new(),
            in_flight: InFlight::default(),
            announced: Announced::default(),
            timers: Timers::default(),
            unannounced: false,
            stream_state: T::default(),
        }
    }

    pub(super) fn on_demand(resource_type: ResourceType) -> Self {
        Self { on_demand: true, ..Self::new(resource_type) }
    }

    /// Drops the state of the stream: nonces, pending ACKs and NACKs, and waiting responses.
    pub(super) fn leave_stream(&mut self) {
        self.announced.leave_stream();
        self.in_flight.leave_stream();
        self.holdings.leave_stream();
        self.holdings.end_extensions(|name| self.in_flight.has_content(name.as_str()));
        self.timers.stop_all();
        self.failures.values_mut().for_each(|failure| failure.standing = false);
        self.unannounced = false;
        self.stream_state = T::default();
    }
}

impl<T> Subscription<T> {
    pub(super) fn type_url(&self) -> &TypeUrl {
        self.resource_type.type_url()
    }

    // Subscribed names.

    /// Adds a name, which must be merged before any decision that depends on the subscribed names.
    pub(super) fn subscribe(&mut self, name: ResourceName) {
        self.names_added.push(name);
    }

    /// Takes the names that are not merged yet.
    pub(super) fn take_names_added(&mut self) -> Vec<ResourceName> {
        core::mem::take(&mut self.names_added)
    }

    /// Returns the names that are not merged yet.
    pub(super) fn names_added(&self) -> impl Iterator<Item = &ResourceName> {
        self.names_added.iter()
    }

    /// Returns whether any name that is not merged yet is new.
    pub(super) fn has_names_added(&self) -> bool {
        self.names_added.iter().any(|name| !self.wants(name.as_str()))
    }

    /// Returns whether a name is among those that are not merged yet.
    pub(super) fn is_name_added(&self, name: &str) -> bool {
        self.names_added.iter().any(|names_added| names_added == name)
    }

    pub(super) fn wants_anything(&self) -> bool {
        self.holdings.names().len() > 0 || !self.names_added.is_empty() || self.on_demand
    }

    /// Returns whether there is no state to keep when a stream begins.
    pub(super) fn is_idle(&self) -> bool {
        self.holdings.names().len() == 0 && self.in_flight.is_idle() && !self.on_demand
    }

    #[inline]
    pub(super) fn wants(&self, name: &str) -> bool {
        self.holdings.wants(name)
    }

    /// Unsubscribes from a name, and from the resources of the pending update that only this name covered. `aliases`:
    /// whether resources have aliases.
    pub(super) fn remove_name(&mut self, name: &str, aliases: bool, settings: &Settings) -> Option<ResourceName> {
        let offer = self.in_flight.out().map(|out| out.offer.clone());
        let coming = offer.iter().flat_map(|offer| offer.resources.with_alias(name));
        let coming: Vec<ResourceName> = coming.filter(|_| aliases).map(|resource| resource.name().clone()).collect();
        let Unsubscribed { name, stood_for, gone } = self.holdings.unsubscribe(name, &coming)?;
        self.timers.stop(&name);
        self.remove_failures(&name, stood_for.iter().chain(&gone), settings);
        let Some(offer) = offer else { return Some(name) };
        let holdings = &self.holdings;
        let unwanted = |name: &&ResourceName| !holdings.covers(name.as_str());
        let mut unsubscribed: Vec<ResourceName> = Vec::new();
        if name.is_wildcard() || name.is_glob() {
            let resources = offer.resources.iter().filter(|&resource| !holdings.wants_resource(resource, aliases));
            unsubscribed.extend(resources.map(|resource| resource.name().clone()));
            unsubscribed.extend(offer.removed.iter().filter(unwanted).cloned());
        } else {
            let by_alias = offer.resources.with_alias(name.as_str());
            let by_name = offer.resources.find(name.as_str()).map(|at| offer.resources.at(at));
            let by_link = stood_for.iter().filter_map(|name| offer.resources.find(name.as_str()));
            let resources = by_alias.chain(by_name).chain(by_link.map(|at| offer.resources.at(at)));
            let resources = resources.filter(|&resource| !holdings.wants_resource(resource, aliases));
            unsubscribed.extend(resources.map(|resource| resource.name().clone()));
            let is_removed = |name: &&ResourceName| offer.removed.binary_search(name).is_ok();
            unsubscribed.extend(gone.iter().chain([&name]).filter(is_removed).filter(unwanted).cloned());
        }
        self.in_flight.note_unsubscribed(unsubscribed);
        Some(name)
    }

    /// Removes the errors of an unsubscribed name and of the resources that it stood for.
    fn remove_failures<'a>(
        &mut self,
        name: &'a ResourceName,
        stood_for: impl Iterator<Item = &'a ResourceName>,
        settings: &Settings,
    ) {
        if self.failures.is_empty() {
            return;
        }
        let Self { failures, holdings, .. } = self;
        if name.is_wildcard() || name.is_glob() {
            failures.retain(|name, _| holdings.covers(name.as_str()));
        } else {
            let strangers = failures.len() > settings.limits.resources_per_response;
            for name in [name].into_iter().chain(stood_for) {
                if !holdings.covers(name.as_str()) || (strangers && !holdings.has(name.as_str())) {
                    failures.remove(name);
                }
            }
        }
    }

    /// Returns whether the subscription to this name was sent to the server.
    pub(super) fn is_announced(&self, name: &str) -> bool {
        self.wants(name) && self.announced.is_listed(name)
    }

    // Queries.

    /// Returns whether a subscribed name has no content, and none in flight (C-TIMER-03, C-TIMER-07).
    pub(super) fn is_awaited(&self, name: &ResourceName) -> bool {
        self.is_unknown(name) && (!self.holdings.is_answered(name.as_str()) || name.is_wildcard())
    }

    /// Returns whether nothing is known of a subscribed name now, even if it was known once.
    pub(super) fn is_unknown(&self, name: &ResourceName) -> bool {
        let failed = |failure: &Failure| failure.standing && !failure.status.is(Code::NotFound);
        let heard = self.holdings.knows(name) || self.failures.get(name).is_some_and(failed);
        self.wants(name.as_str()) && !heard && !self.in_flight.mentions(name.as_str())
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.timers.next().into_iter().chain(self.holdings.next_expiry()).min()
    }

    /// Checks the invariants that hold with a stream and without.
    pub(super) fn check(&self, settings: &Settings) -> Result<(), String> {
        self.holdings.check()?;
        self.in_flight.check(&settings.limits)?;
        self.announced.check(|name| self.wants(name.as_str()))?;
        let unwanted = self.failures.keys().find(|name| !self.holdings.covers(name.as_str()));
        ensure!(unwanted.is_none(), "{unwanted:?} has an error and is not wanted");
        let known = |name: &&ResourceName| self.wants(name.as_str()) || self.holdings.has(name.as_str());
        let others = self.failures.keys().filter(|name| !known(name)).count();
        let limit = settings.limits.resources_per_response;
        ensure!(others <= limit, "{others} errors of what nobody asked for, limit {limit}");
        self.timers.check(|name| self.wants(name.as_str()) && !self.holdings.has(name.as_str()))
    }

    pub(super) fn check_stream(&self, sent: u64) -> Result<(), String> {
        let asked = self.announced.asked();
        ensure!(!asked || sent > 0, "asked on a stream on which nothing was sent");
        ensure!(asked || self.in_flight.serial() == 0, "{} responses to no request", self.in_flight.serial());
        Ok(())
    }

    pub(super) fn check_no_stream(&self) -> Result<(), String> {
        ensure!(!self.announced.asked(), "something is told to nobody");
        ensure!(!self.unannounced, "something is to be said to a server that is not there");
        ensure!(self.timers.running() == 0, "silence of a closed stream counts");
        self.in_flight.check_no_stream()
    }
}

impl<T> Subscription<T> {
    /// Visits all labels except those in the variant's state.
    pub(super) fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        let type_url = self.resource_type.type_url();
        self.holdings.relabel(type_url, by);
        self.in_flight.relabel(type_url, by);
        self.announced.each_serial(&mut |serial| by(Label::Response(type_url, serial)));
        self.failures.values_mut().for_each(|failure| failure.at.relabel(by));
        self.timers.relabel(by);
    }
}
