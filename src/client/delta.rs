//! The incremental variant. A request has the changes of the subscribed names, and every subscription in it is answered
//! by name; the announced names are the sum of the requests.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::config::Settings;
use super::holdings::{Held, Holdings};
use super::in_flight::PendingAck;
use super::incoming::{Heartbeat, Incoming};
use super::names::no_name;
use super::resources::{Extra, Resources};
use super::subscription::Subscription;
use super::timers::Asked;
use super::transmit::{Intent, ack_intent};
use super::variant::{Composed, Of, Protocol, Variant, check_answerable};
use crate::error::PeerMisbehaved;
use crate::message::Resource;
use crate::message::delta::{Request, Response, Versions};
use crate::name::{Nonce, ResourceName, TypeUrl, Version, WILDCARD};
use crate::resource_type::ResourceType;
use crate::variant::Delta;
use crate::xdstp;

/// The state of one type on a stream, apart from the states of single names.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct StreamState {
    /// Whether the first request announced the wildcard, which is subscribed to since: every response then answers it.
    all_first: bool,
}

impl Variant for Delta {}

impl Protocol for Delta {
    type StreamState = StreamState;

    const CLAIMS_HELD_VERSIONS: bool = true;
    const ALIASES: bool = true;
    const ANSWERS_EACH: bool = true;

    fn type_url(response: &Response) -> &TypeUrl {
        &response.type_url
    }

    fn nonce(response: &Response) -> &crate::name::Nonce {
        &response.nonce
    }

    fn unanswerable(response: &Response, settings: &Settings) -> Result<(), PeerMisbehaved> {
        check_answerable(&response.type_url, &response.nonce, settings)
    }

    /// Absence removes nothing: removals are named (C-DELTA-27).
    fn read(response: Response, serial: u64, settings: &Settings, _: &ResourceType, _: &Holdings) -> Incoming {
        let limit = settings.limits.resources_per_response;
        let mut incoming = Incoming::new(response.nonce, serial, response.system_version);
        let count = response.resources.len() + response.removed.len() + response.errors.len();
        if count > limit {
            incoming.refuse(format!("{count} resources in the response, limit {limit}"));
            return incoming;
        }
        let version = incoming.resources.version().clone();
        let mut versions = Vec::with_capacity(response.resources.len());
        let resources = Resources::collect(version, response.resources, |_, resource, extras| {
            if let Some((name, reason)) = fault(&resource, &response.type_url, settings) {
                incoming.fault(name, reason);
                return None;
            }
            let Resource { name, version, aliases, body, ttl } = resource;
            let Some(body) = body else {
                let serial = incoming.serial;
                incoming.heartbeats.push(Heartbeat { name, version, ttl, aliases, serial, renewed: false });
                return None;
            };
            if ttl.is_some() || !aliases.is_empty() {
                extras.push(Extra { version: None, ttl, aliases });
            }
            versions.push(version);
            Some((name, body.value, false))
        });
        incoming.resources = resources.with_versions(versions);
        incoming.removed = response.removed;
        incoming.removed.retain(|name| !name.is_wildcard()); // no resource has this name, so none is removed
        incoming.errors = response.errors;
        incoming.finish(settings);
        incoming
    }

    fn subscribed(to: &mut Of<Self>, name: &ResourceName) {
        to.announced.want(name);
    }

    fn unsubscribed(from: &mut Of<Self>, name: &ResourceName, settings: &Settings) {
        from.announced.unsubscribe(name, settings.limits.departed_names);
        from.stream_state.all_first &= !name.is_wildcard();
    }

    /// Accepts only announced names that are still subscribed to ([design rule 5](crate::manual::rules#rule-5), the
    /// client's half). A name that is subscribed to again and not yet announced will be answered; older content that
    /// crosses that request on the wire is ignored.
    fn takes(from: &Of<Self>, name: &str) -> bool {
        let of_collection = || from.holdings.globs().of(name).is_some_and(|glob| from.is_announced(glob.as_str()));
        let by_alias = || from.holdings.bindings().aliases(name).any(|alias| from.is_announced(alias.as_str()));
        from.is_announced(name) || from.is_announced(WILDCARD) || of_collection() || by_alias()
    }

    fn processed(_: &mut Of<Self>, _: &Incoming) {}

    fn implies_version(_: &ResourceType) -> bool {
        false
    }

    fn heartbeat_matches(of: &Of<Self>, held: &Held, heartbeat: &Heartbeat, _: &Version) -> bool {
        of.resource_type.has_heartbeats() && *held.version() == heartbeat.version
    }

    fn heartbeat_matches_unjudged(
        (_, content): (&Version, Option<super::resources::Resource<'_>>),
        heartbeat: &Heartbeat,
        _: &Version,
    ) -> bool {
        content.is_some_and(|content| *content.version() == heartbeat.version)
    }

    fn completes(_: &Of<Self>) -> bool {
        false // unused in delta, which has a version for each resource
    }

    /// A response that has only subscribed names may answer these and not the wildcard, unless the first request
    /// announced the wildcard. An empty response answers no name, because a nonexistent name is reported as removed.
    fn answers_all(of: &Of<Self>, incoming: &Incoming) -> bool {
        let by_name = |name: &ResourceName| of.wants(name.as_str()) || of.holdings.globs().of(name.as_str()).is_some();
        let mut names = incoming.resources.names().chain(incoming.others()).chain(&incoming.removed);
        let said_of_names =
            [incoming.removed.len(), incoming.not_found.len(), incoming.errors.len(), incoming.faults.len()];
        let nothing = incoming.resources.is_empty() && said_of_names == [0; 4];
        let answers = of.stream_state.all_first || nothing || names.any(|name| !by_name(name));
        of.is_announced(WILDCARD) && answers && !incoming.has_nameless_fault()
    }

    /// Removals report which names do not exist; the time-out guards against a server that does not send them
    /// (xds_protocol.rst, "Knowing When a Requested Resource Does Not Exist").
    fn timeout(_: &Of<Self>, name: &ResourceName, settings: &Settings) -> Option<Duration> {
        settings.existence_timeout.filter(|_| !name.is_wildcard())
    }

    fn refetch(of: &mut Of<Self>, names: Vec<ResourceName>, settings: &Settings) {
        for name in names {
            of.announced.ask_again(&name, settings.quirks.refetch_by_leaving && !name.is_wildcard());
        }
    }

    /// A subscription is announced after the unsubscription before it.
    fn may_know(of: &Of<Self>, name: &str) -> bool {
        of.is_announced(name)
    }

    fn ask_anew(of: &mut Of<Self>, names: Vec<ResourceName>) {
        names.iter().for_each(|name| of.announced.ask_again(name, false));
    }

    fn may_speak(_: &Of<Self>) -> bool {
        true
    }

    fn has_news(of: &Of<Self>) -> bool {
        if of.announced.asked() {
            of.announced.has_news(of.in_flight.serial())
        } else {
            of.holdings.names().len() > 0 || of.on_demand
        }
    }

    /// Sends ACKs and NACKs apart from changes, because shipped servers lose changes in an ACK or a NACK. All changes
    /// in a request count as received, because a server must honour a request whatever its nonce (C-DELTA-07).
    fn compose(of: &mut Of<Self>, ack: Option<PendingAck>, _: &Settings) -> Composed<Self> {
        let intent = match &ack {
            Some(ack) => ack_intent(ack),
            None if !of.announced.asked() => Intent::Initial,
            None => Intent::Subscribe,
        };
        let mut request = Request {
            node: None,
            type_url: of.resource_type.type_url().clone(),
            subscribe: Vec::new(),
            unsubscribe: Vec::new(),
            initial_versions: Versions::default(),
            nonce: Nonce::default(),
            error: None,
        };
        let mut asked_for = Asked::These(Vec::new());
        if let Some(ack) = ack {
            request.nonce = ack.nonce;
            request.error = ack.error;
        } else if !of.announced.asked() {
            let names: Vec<ResourceName> = of.holdings.names().cloned().collect();
            // C-SUB-10, C-SUB-12: only the wildcard is subscribed to, and an empty request of this type means the
            // wildcard.
            let legacy = of.resource_type.has_legacy_wildcard() && names.len() == 1 && of.wants(WILDCARD);
            if names.is_empty() {
                request.subscribe = Vec::from([WILDCARD.into()]); // C-SUB-17: an empty request would mean everything
                request.unsubscribe = request.subscribe.clone();
            } else if !legacy {
                request.subscribe = names;
            }
            asked_for = Asked::All;
            of.stream_state.all_first = of.wants(WILDCARD);
            request.initial_versions = of.initial_versions();
            of.note_unannounced();
        } else {
            (request.subscribe, request.unsubscribe) = of.announced.take_changes();
            asked_for = Asked::These(request.subscribe.clone());
        }
        Composed { request, asked_for, intent }
    }

    fn each_serial(_: &mut StreamState, _: &mut dyn FnMut(&mut u64)) {}

    fn check_stream_state(_: &Of<Self>) -> Result<(), String> {
        Ok(()) // `all_first` has no invariant
    }

    fn set_node(request: &mut Request, settings: &Settings) {
        request.node = Some(settings.node.clone());
    }
}

/// Returns the name and the reason if a resource is not as the specification demands.
fn fault(resource: &Resource, type_url: &TypeUrl, settings: &Settings) -> Option<(Option<ResourceName>, String)> {
    let Resource { name, version, body, ttl, .. } = resource;
    if let Some(reason) = no_name(name.as_str(), type_url) {
        return Some(match xdstp::is_structured(name.as_str()) {
            true => (Some(name.clone()), reason.into()),
            false => (None, format!("a resource {reason}")), // C-DELTA-25
        });
    }
    let (len, limit) = (version.as_bytes().len(), settings.limits.version_bytes);
    if len > limit {
        return Some((Some(name.clone()), format!("version of {len} bytes, limit {limit}")));
    }
    match body {
        Some(body) if body.type_url != *type_url => {
            Some((Some(name.clone()), format!("has the type {}", body.type_url))) // C-DELTA-21
        }
        Some(_) if ttl.is_some_and(|ttl| ttl.is_zero()) => {
            Some((Some(name.clone()), "a TTL must be positive".into())) // C-TTL-14
        }
        _ => None,
    }
}

impl Subscription<StreamState> {
    /// Returns the versions that the first request of a stream claims (C-RECON-02): those of held resources. Resources
    /// that a pending update adds or removes are claimed with an empty version, or their removal during the outage
    /// would never be reported ([design rule 2](crate::manual::rules#rule-2)).
    fn initial_versions(&self) -> Versions {
        let held = self.holdings.held();
        let mut versions: BTreeMap<_, _> = held.iter().map(|(name, held)| (name.clone(), held.claim())).collect();
        versions.extend(self.holdings.not_found().map(|(name, version)| (name.clone(), version.clone())));
        for out in self.in_flight.out().iter().map(|out| &out.offer) {
            let unclear = out.resources.iter().filter(|&resource| self.holdings.wants_resource(resource, true));
            let removing = out.removed.iter().filter(|name| held.contains_key(*name));
            versions.extend(
                unclear.map(|resource| resource.name()).chain(removing).map(|name| (name.clone(), Version::default())),
            );
        }
        versions.into()
    }

    /// Notes resources of the pending update that are not wanted now. They are not claimed, because shipped servers
    /// take a claim for a subscription. If the wildcard or a collection covers them at the verdict, only a new stream
    /// can claim them.
    fn note_unannounced(&mut self) {
        let resources = self.in_flight.out().into_iter().flat_map(|out| out.offer.resources.iter());
        let unwanted = resources.filter(|&resource| !self.holdings.wants_resource(resource, true));
        let unannounced = unwanted.map(|resource| resource.name().clone()).collect();
        self.in_flight.note_unannounced(unannounced);
    }
}
