//! The incremental variant. A request says what changed in what is wanted, and every subscription in it is
//! answered by name; what the server was told is what the messages add up to.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::config::Settings;
use super::incoming::{Heartbeat, Incoming};
use super::names::no_name;
use super::resources::Extra;
use super::subscription::{Answer, Held, Subscription};
use super::timers::Asked;
use super::transmit::Intent;
use super::variant::{Composed, Protocol, Variant};
use super::{answer_intent, check_answerable};
use crate::error::PeerMisbehaved;
use crate::message::delta::{Request, Response};
use crate::name::{Nonce, ResourceName, TypeUrl, Version, WILDCARD};
use crate::variant::Delta;
use crate::xdstp;

/// What a stream was told besides the wishes that are marked so.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Told {
    /// Names to be asked for again, though the server was told.
    refetch: BTreeSet<ResourceName>,
    /// The first request told the wildcard, which is wanted since: every response is an answer to it.
    all_first: bool,
}

impl Variant for Delta {}

impl Protocol for Delta {
    type Request = Request;
    type Response = Response;
    type Told = Told;

    const SAYS_WHAT_IS_HELD: bool = true;
    const ALIASES: bool = true;

    fn type_url(response: &Response) -> &TypeUrl {
        &response.type_url
    }

    fn nonce(response: &Response) -> &crate::name::Nonce {
        &response.nonce
    }

    fn unanswerable(response: &Response, settings: &Settings) -> Result<(), PeerMisbehaved> {
        check_answerable(&response.type_url, &response.nonce, settings)
    }

    fn read(response: Response, settings: &Settings, to: &mut Subscription<Self>) -> Incoming {
        let limit = settings.limits.resources_per_response;
        let mut incoming = Incoming::new(response.nonce, to.serial, response.system_version);
        let count = response.resources.len() + response.removed.len() + response.errors.len();
        if count > limit {
            incoming.refuse(format!("{count} resources in the response, limit {limit}"));
            return incoming;
        }
        for resource in response.resources {
            let fault = if let Some(reason) = no_name(resource.name.as_str(), &response.type_url) {
                match xdstp::is_structured(resource.name.as_str()) {
                    true => Some((Some(resource.name.clone()), reason.into())),
                    false => Some((None, format!("a resource {reason}"))), // C-DELTA-25
                }
            } else if resource.version.as_str().len() > settings.limits.version_bytes {
                let (len, limit) = (resource.version.as_str().len(), settings.limits.version_bytes);
                Some((Some(resource.name.clone()), format!("version of {len} bytes, limit {limit}")))
            } else {
                match &resource.body {
                    Some(body) if body.type_url != response.type_url => {
                        Some((Some(resource.name.clone()), format!("has the type {}", body.type_url))) // C-DELTA-21
                    }
                    Some(_) if resource.ttl.is_some_and(|ttl| ttl.is_zero()) => {
                        Some((Some(resource.name.clone()), "a TTL must be positive".into())) // C-TTL-14
                    }
                    _ => None,
                }
            };
            if let Some((name, reason)) = fault {
                incoming.fault(name, reason);
                continue;
            }
            match resource.body {
                Some(body) => {
                    let extra = Extra { version: None, ttl: resource.ttl, aliases: resource.aliases };
                    incoming.resources.push(resource.name, resource.version, body.value, extra);
                }
                None => incoming.heartbeats.push(Heartbeat {
                    name: resource.name,
                    version: resource.version,
                    ttl: resource.ttl,
                    aliases: resource.aliases,
                }),
            }
        }
        incoming.removed = response.removed;
        incoming.removed.retain(|name| !name.is_wildcard()); // nothing has this name, so nothing of it is gone
        incoming.errors = response.errors;
        incoming.finish(settings);
        incoming
    }

    fn never_spoke(of: &Subscription<Self>) -> bool {
        of.departed.is_empty()
    }

    fn subscribed(_: &mut Subscription<Self>, _: &ResourceName) {}

    fn unsubscribed(from: &mut Subscription<Self>, name: &ResourceName, _: bool) {
        from.told.refetch.remove(name);
        from.told.all_first &= !name.is_wildcard();
    }

    /// Only what was told and is still wanted (DESIGN rule 5, the client's half). What is wanted again and not yet
    /// told will be answered; an older content of it that crosses that on the wire is not for us.
    fn takes(from: &Subscription<Self>, name: &str) -> bool {
        let told = |name| from.wishes.get(name).is_some_and(|wish| wish.told);
        let for_others = || {
            from.globs.of(name).is_some_and(|glob| told(glob.as_str()))
                || from.links.aliases(name).any(|alias| told(alias.as_str()))
        };
        told(name) || told(WILDCARD) || for_others()
    }

    fn processed(_: &mut Subscription<Self>, _: &Incoming) {}

    /// Absence means nothing: removals are named (C-DELTA-27).
    fn absence_removes(_: &Subscription<Self>, _: &Incoming) -> bool {
        false
    }

    fn implies_version(_: &Subscription<Self>) -> bool {
        false
    }

    fn heartbeat_matches(of: &Subscription<Self>, held: &Held, heartbeat: &Heartbeat, _: &Version) -> bool {
        of.kind.has_heartbeats() && held.version == heartbeat.version
    }

    fn completes(_: &Subscription<Self>) -> bool {
        false // nothing in delta asks: it has a version for each resource
    }

    /// Who wants names beside the wildcard can't tell whose answer it is that has some of them, unless the wildcard was
    /// told with the first request. What has no content answers no name: that a name does not exist is said by removing it.
    fn answers_all(of: &Subscription<Self>, incoming: &Incoming) -> bool {
        let by_name = |name: &ResourceName| of.wants(name.as_str()) || of.globs.of(name.as_str()).is_some();
        let mut names = incoming.resources.names().chain(incoming.others()).chain(&incoming.removed);
        let said_of_names =
            [incoming.removed.len(), incoming.nowhere.len(), incoming.errors.len(), incoming.faults.len()];
        let nothing = incoming.resources.is_empty() && said_of_names == [0; 4];
        let answers = of.told.all_first || nothing || names.any(|name| !by_name(name));
        of.is_told(WILDCARD) && answers && !incoming.has_nameless_fault()
    }

    /// Removals say what does not exist; the time-out guards against a server that fails to
    /// (xds_protocol.rst, "Knowing When a Requested Resource Does Not Exist").
    fn timeout(_: &Subscription<Self>, name: &ResourceName, settings: &Settings) -> Option<Duration> {
        settings.existence_timeout.filter(|_| !name.is_wildcard())
    }

    fn asks_again(_: &mut Subscription<Self>, _: &ResourceName) -> bool {
        false
    }

    fn refetch(of: &mut Subscription<Self>, names: Vec<ResourceName>, settings: &Settings) {
        for name in names {
            if !settings.habits.refetch_by_leaving || name.is_wildcard() {
                of.told.refetch.insert(name);
            } else if let Some(wish) = of.wishes.get_mut(&name).filter(|wish| wish.told) {
                wish.told = false;
                of.untold += 1;
                of.departed.insert(name);
            }
        }
    }

    /// A wish is announced after the one before is gone.
    fn may_know(of: &Subscription<Self>, name: &str) -> bool {
        of.is_told(name)
    }

    fn ask_anew(of: &mut Subscription<Self>, names: Vec<ResourceName>) {
        if names.is_empty() && of.is_told(WILDCARD) {
            of.told.refetch.insert(WILDCARD.into());
        }
        of.told.refetch.extend(names);
    }

    fn may_speak(_: &Subscription<Self>) -> bool {
        true
    }

    fn has_news(of: &Subscription<Self>) -> bool {
        if of.asked {
            of.untold > 0 || !of.departed.is_empty() || !of.told.refetch.is_empty()
        } else {
            !of.wishes.is_empty() || of.on_demand
        }
    }

    /// Answers and changes go apart: shipped servers lose changes that ride on an ACK or a NACK. All that a
    /// message says is said to be heard, for a server must honour it whatever its nonce (C-DELTA-07).
    fn compose(of: &mut Subscription<Self>, answer: Option<Answer>, _: &Settings) -> Composed<Self> {
        let intent = match &answer {
            Some(answer) => answer_intent(answer),
            None if !of.asked => Intent::Initial,
            None => Intent::Subscribe,
        };
        let mut request = Request {
            node: None,
            type_url: of.kind.type_url().clone(),
            subscribe: Vec::new(),
            unsubscribe: Vec::new(),
            initial_versions: BTreeMap::new(),
            nonce: Nonce::default(),
            error: None,
        };
        let mut asked_for = Asked::These(Vec::new());
        if let Some(answer) = answer {
            request.nonce = answer.nonce;
            request.error = answer.error;
        } else if !of.asked {
            // C-SUB-10, C-SUB-12: only the wildcard is wanted, and the type lets it be said by saying nothing.
            let legacy = of.kind.has_legacy_wildcard() && of.wishes.keys().all(ResourceName::is_wildcard);
            let told = of.tell(|_, _| true);
            if told.is_empty() {
                request.subscribe = Vec::from([WILDCARD.into()]); // C-SUB-17: to say nothing would mean everything
                request.unsubscribe = request.subscribe.clone();
            } else if !legacy {
                request.subscribe = told;
            }
            asked_for = Asked::All;
            of.told.all_first = of.wants(WILDCARD);
            request.initial_versions = of.initial_versions();
            of.note_unsaid();
            of.told.refetch.clear();
        } else {
            let star_first = !of.departed.is_empty()
                && !of.departed.contains(WILDCARD)
                && of.wishes.get(WILDCARD).is_some_and(|wish| !wish.told);
            if star_first {
                // DESIGN rule 12: the wildcard before the names that it takes over.
                request.subscribe = of.tell(|name, _| name.is_wildcard());
            } else {
                // DESIGN rule 3: what left and came back is announced as gone now, and as wanted next.
                request.subscribe = of.tell(|name, departed| !departed.contains(name));
                request.unsubscribe = core::mem::take(&mut of.departed).into_iter().collect();
                let again = core::mem::take(&mut of.told.refetch).into_iter();
                let again = again.filter(|name| of.wishes.get(name).is_some_and(|wish| wish.told));
                let told = request.subscribe.len();
                for name in again {
                    if request.subscribe[..told].binary_search(&name).is_err() {
                        request.subscribe.push(name);
                    }
                }
            }
            asked_for = Asked::These(request.subscribe.clone());
        }
        Composed { request, asked_for, intent }
    }

    fn each_serial(_: &mut Told, _: &mut dyn FnMut(&mut u64)) {}

    fn check_told(_: &Subscription<Self>) -> Result<(), String> {
        Ok(()) // what is to be asked for again is looked at when it is
    }

    fn set_node(request: &mut Request, settings: &Settings) {
        request.node = Some(settings.node.clone());
    }
}

impl Subscription<Delta> {
    /// Marks the untold wishes that `now` picks as told, and returns them.
    fn tell(&mut self, now: impl Fn(&ResourceName, &BTreeSet<ResourceName>) -> bool) -> Vec<ResourceName> {
        let mut told = Vec::new();
        if self.untold > 0 {
            for (name, wish) in self.wishes.iter_mut().filter(|(_, wish)| !wish.told) {
                if now(name, &self.departed) {
                    wish.told = true;
                    told.push(name.clone());
                }
            }
            self.untold -= told.len();
        }
        told
    }

    /// What the first request of a stream says of what is there (C-RECON-02): the versions of what is held. What the
    /// application may be applying or removing at this moment has none, but is named, or its removal during the
    /// outage would never be heard (DESIGN rule 2).
    fn initial_versions(&self) -> BTreeMap<ResourceName, Version> {
        let claim = |held: &Held| if held.claimed { held.version.clone() } else { Version::default() };
        let mut versions: BTreeMap<_, _> = self.held.iter().map(|(name, held)| (name.clone(), claim(held))).collect();
        versions.extend(self.links.nowhere().map(|(name, version)| (name.clone(), version.clone())));
        for out in self.out.iter().map(|out| &out.offer) {
            let unclear = out.resources.iter().filter(|&resource| self.covers_resource(resource));
            let removing = out.removed.iter().filter(|name| self.held.contains_key(*name));
            versions.extend(
                unclear.map(|resource| resource.name()).chain(removing).map(|name| (name.clone(), Version::default())),
            );
        }
        versions
    }

    /// What the application may be applying, though it does not want it now, is not claimed: shipped servers take a claim for
    /// a subscription. Should it be wanted with others by then, only a new stream can tell of it.
    fn note_unsaid(&mut self) {
        let resources = self.out.iter().flat_map(|out| out.offer.resources.iter());
        let unwanted = resources.filter(|&resource| !self.covers_resource(resource));
        let unsaid = unwanted.map(|resource| resource.name().clone()).collect();
        if let Some(out) = &mut self.out {
            out.unsaid = unsaid;
        }
    }
}
