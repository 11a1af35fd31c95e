//! The state-of-the-world variant. A request lists all subscribed names and answers a response; the server may ignore a
//! request that crosses a newer response on the wire.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::announced::{List, REOPENINGS};
use super::config::Settings;
use super::holdings::{Held, Holdings, SubscribedName};
use super::in_flight::PendingAck;
use super::incoming::{Heartbeat, Incoming, Walk};
use super::names::no_name;
use super::resources::{Extra, Resource, Resources};
use super::subscription::Subscription;
use super::timers::Asked;
use super::transmit::{Intent, ack_intent};
use super::variant::{Composed, Of, Protocol, Variant, check_answerable};
use crate::ensure::ensure;
use crate::error::PeerMisbehaved;
use crate::message::Any;
use crate::message::sotw::{Item, Request, Response};
use crate::name::{ResourceName, TypeUrl, Version, WILDCARD};
use crate::resource_type::ResourceType;
use crate::variant::Sotw;
use crate::xdstp;

/// The time-out after which the wildcard, or any name if existence timers are off, is relisted once more.
const REPAIR: Duration = Duration::from_secs(15);

/// The state of one type on a stream, apart from the states of single names.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct StreamState {
    /// The number of the response under which the last request was sent.
    last_under: Option<u64>,
    start: Start,
    /// Whether the last request listed the wildcard only because an empty list would have meant the same.
    stand_in: bool,
    /// The number of such requests since responses have this version.
    stand_ins: u8,
    version: Version,
    /// Whether the last response may lack resources of the wildcard: it may answer a list without the wildcard, or, for
    /// a partial type, only names that were added.
    lacks_all: bool,
    /// Names whose existence timers restart with the next request.
    restart_timers: BTreeSet<ResourceName>,
    /// Whether to repeat the request although nothing changed.
    refetch: bool,
}

/// How the type's requests on this stream began ([design rule 12](crate::manual::rules#rule-12)).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
enum Start {
    /// No request was sent.
    #[default]
    Silent,
    /// With an empty list, the legacy wildcard. An empty list keeps this meaning until the server has received a name;
    /// `named` is the response under which a name was last sent. If that is not the last response, the server may have
    /// ignored the name, and the meaning of an empty list is uncertain.
    Legacy { named: Option<u64> },
    /// With names: an empty list subscribes to nothing.
    Names { wildcard: bool },
}

impl Start {
    /// Returns whether the first request had the wildcard.
    fn has_wildcard(self) -> bool {
        matches!(self, Self::Legacy { .. } | Self::Names { wildcard: true })
    }
}

impl Variant for Sotw {}

impl Protocol for Sotw {
    type StreamState = StreamState;

    const CLAIMS_HELD_VERSIONS: bool = false;
    const ALIASES: bool = false;
    const ANSWERS_EACH: bool = false;

    fn type_url(response: &Response) -> &TypeUrl {
        &response.type_url
    }

    fn nonce(response: &Response) -> &crate::name::Nonce {
        &response.nonce
    }

    fn unanswerable(response: &Response, settings: &Settings) -> Result<(), PeerMisbehaved> {
        check_answerable(&response.type_url, &response.nonce, settings)
    }

    fn read(
        response: Response,
        serial: u64,
        settings: &Settings,
        resource_type: &ResourceType,
        holdings: &Holdings,
    ) -> Incoming {
        let limits = &settings.limits;
        let mut incoming = Incoming::new(response.nonce, serial, response.version);
        let count = response.resources.len() + response.errors.len();
        if count > limits.resources_per_response {
            incoming.refuse(format!("{count} resources in the response, limit {}", limits.resources_per_response));
            return incoming;
        }
        let len = incoming.resources.version().as_str().len();
        if len > limits.version_bytes {
            incoming.refuse(format!("version of {len} bytes, limit {}", limits.version_bytes));
            return incoming;
        }
        incoming.compared = true;
        let version = incoming.resources.version().clone();
        let (mut names, mut taken) = (holdings.walks(), 0);
        incoming.resources = Resources::collect(version, response.resources, |at, item, extras| {
            let read = match item {
                Item::Bare(any) => match bare(any, &response.type_url, resource_type, &mut names, &mut incoming, taken)
                {
                    Ok(read) => Some(read),
                    Err(reason) => {
                        // C-RES-05: the name of this resource is unknown.
                        incoming.fault(None, format!("resource {at} {reason}"));
                        None
                    }
                },
                Item::Wrapped(resource) => wrapped(*resource, &response.type_url, &mut incoming, extras),
                Item::Malformed => {
                    incoming.fault(None, format!("resource {at} is no resource wrapper"));
                    None
                }
            };
            taken += usize::from(read.is_some());
            read
        });
        incoming.errors = response.errors;
        incoming.finish(settings);
        incoming.has_all = !incoming.refused && absence_removes(resource_type, &incoming);
        incoming
    }

    fn subscribed(to: &mut Of<Self>, name: &ResourceName) {
        to.announced.subscribe_listed(name, to.stream_state.last_under, to.in_flight.serial());
    }

    fn unsubscribed(from: &mut Of<Self>, name: &ResourceName, settings: &Settings) {
        let Subscription { resource_type, holdings, announced, stream_state, .. } = from;
        if (name.is_wildcard() || name.is_glob()) && !resource_type.is_full_state() {
            // Resources that came by this name stay by names that the server may not have received when it made the
            // last response: the version of that response does not cover them.
            let unheard = |name: &&ResourceName| holdings.has(name.as_str()) && !announced.is_confirmed(name.as_str());
            let unheard: Vec<ResourceName> = holdings.names().filter(unheard).cloned().collect();
            unheard.iter().for_each(|name| holdings.unclaim(name));
        }
        let was_known = !announced.is_new(name.as_str());
        announced.unsubscribe(name, settings.limits.departed_names.max(holdings.names().len()));
        stream_state.restart_timers.remove(name);
        if name.is_wildcard() && was_known {
            // The wildcard announced the subscribed names as well. If a resource is not held (because it was rejected,
            // for example), the server may believe that it was delivered (S-SOTW-56).
            let lacking: Vec<ResourceName> =
                holdings.names().filter(|name| !holdings.has(name.as_str())).cloned().collect();
            for name in lacking {
                announced.relist(&name, false);
                holdings.set_incomplete(name.as_str()); // until the name is announced again
            }
        }
    }

    fn takes(from: &Of<Self>, name: &str) -> bool {
        from.holdings.covers(name)
    }

    /// [design rule 4](crate::manual::rules#rule-4): for a full-state type, any response settles the names that are
    /// being relisted, because it has all resources that the server believes to be subscribed to, and its ACK lists the
    /// actual names. For a partial type, only a response that mentions the name settles it; a member does not settle
    /// its collection, because the server may have sent it on its own. A heartbeat settles only held resources, because
    /// it has no content.
    fn processed(of: &mut Of<Self>, incoming: &Incoming) {
        let full_state = of.resource_type.is_full_state() && !incoming.refused && !incoming.has_only_heartbeats();
        let Subscription { holdings, announced, stream_state, .. } = of;
        stream_state.lacks_all =
            !announced.is_confirmed(WILDCARD) || (!of.resource_type.is_full_state() && announced.has_unconfirmed());
        if matches!(stream_state.start, Start::Legacy { .. }) && stream_state.version != *incoming.resources.version() {
            stream_state.version = incoming.resources.version().clone();
            stream_state.stand_ins = 0;
        }
        // For a partial type, resources of the wildcard do not prove that the server received a name.
        let by_name = of.resource_type.is_full_state() || !holdings.wants(WILDCARD);
        if by_name && announced.awaits_mention() {
            for name in incoming.resources.names().chain(incoming.others()) {
                announced.confirm(name);
                // A member that has, or had, a subscription of its own does not confirm its collection.
                if !holdings.wants(name.as_str()) && !announced.may_be_left(name.as_str()) {
                    holdings.globs().of(name.as_str()).into_iter().for_each(|glob| announced.confirm(glob));
                }
            }
        }
        // A settled name restarts its timer, if the timer ran out before this response.
        stream_state.restart_timers.extend(announced.settle(|name| {
            if name.is_glob() && !full_state {
                return incoming.errors.iter().any(|error| error.name == *name);
            }
            (full_state || incoming.mentions(name.as_str()))
                && (holdings.has(name.as_str()) || !incoming.has_heartbeat(name))
        }));
        // If a listed name gets a heartbeat and its content was never received, the server believes that the client has
        // the resource, and would never send it. The time-outs of the relisting limit how often this happens.
        let lacking = |name: &&ResourceName| holdings.lacks(name) && announced.is_settled_and_listed(name.as_str());
        let heartbeats = incoming.heartbeats.iter().map(|heartbeat| &heartbeat.name);
        for name in heartbeats.filter(lacking).cloned().collect::<Vec<_>>() {
            holdings.set_incomplete(name.as_str()); // until the name is announced again
            announced.relist(&name, false);
            stream_state.restart_timers.insert(name);
        }
    }

    /// Each response of a full-state type has everything.
    fn implies_version(resource_type: &ResourceType) -> bool {
        resource_type.is_full_state()
    }

    /// In SotW the version of a heartbeat is the response's (C-TTL-03).
    fn heartbeat_matches(of: &Of<Self>, _: &Held, _: &Heartbeat, version: &Version) -> bool {
        of.holdings.version() == version
    }

    fn heartbeat_matches_unjudged(
        (unjudged, _): (&Version, Option<Resource<'_>>),
        _: &Heartbeat,
        version: &Version,
    ) -> bool {
        unjudged == version
    }

    /// A response that may answer a list without the wildcard does not count: its version covers all changes, even
    /// those that it does not have.
    fn completes(of: &Of<Self>) -> bool {
        of.stream_state.start.has_wildcard() && !of.stream_state.lacks_all && of.announced.is_confirmed(WILDCARD)
    }

    fn answers_all(of: &Of<Self>, incoming: &Incoming) -> bool {
        of.stream_state.start.has_wildcard() && !incoming.has_nameless_fault()
    }

    fn timeout(of: &Of<Self>, name: &ResourceName, settings: &Settings) -> Option<Duration> {
        let repair = of.announced.is_relisting(name.as_str()).then_some(REPAIR);
        settings.existence_timeout.filter(|_| !name.is_wildcard()).or(repair)
    }

    /// Repeats the request, which lists all names (as Envoy does to warm a cluster).
    fn refetch(of: &mut Of<Self>, names: Vec<ResourceName>, _: &Settings) {
        of.stream_state.refetch = true;
        of.stream_state.restart_timers.extend(names); // held names have no timer all the same
    }

    fn may_know(of: &Of<Self>, name: &str) -> bool {
        of.wants(name) && of.announced.may_be_known(name)
    }

    /// Relists the names: leaves them out of one request and lists them in the next ([design rule
    /// 4](crate::manual::rules#rule-4)). The wildcard is relisted too, because it would still cover the names.
    fn ask_anew(of: &mut Of<Self>, mut names: Vec<ResourceName>) {
        names.extend(Self::may_know(of, WILDCARD).then(|| WILDCARD.into()));
        for name in names {
            of.holdings.set_incomplete(name.as_str()); // until the name is announced again
            of.announced.relist(&name, true);
            of.stream_state.restart_timers.insert(name); // a response may settle the name before it is left out
        }
    }

    /// Returns false while a response is unanswered: changes are sent with its ACK or NACK ([design rule
    /// 2](crate::manual::rules#rule-2)).
    fn may_speak(of: &Of<Self>) -> bool {
        !of.announced.asked() || of.in_flight.unanswered() == 0
    }

    fn has_news(of: &Of<Self>) -> bool {
        if !of.announced.asked() {
            return of.holdings.names().len() > 0; // C-SUB-07: never an unintended empty list
        }
        let news = of.stream_state.refetch || of.stream_state.stand_in || of.announced.has_news(of.in_flight.serial());
        news && Self::may_speak(of)
    }

    fn compose(of: &mut Of<Self>, ack: Option<PendingAck>, settings: &Settings) -> Composed<Self> {
        let intent = match &ack {
            Some(ack) => ack_intent(ack),
            None if !of.announced.asked() => Intent::Initial,
            None => Intent::Subscribe,
        };
        let (nonce, serial, version, error) = match ack {
            Some(ack) => (ack.nonce, ack.serial, ack.version, ack.error),
            None => (of.in_flight.nonce().clone(), of.in_flight.serial(), of.version_to_claim(), None),
        };
        let (names, asked_for) = if error.is_some() && settings.quirks.bare_nacks {
            (of.last_listed(), Asked::These(of.restarts_of_last_list()))
        } else {
            of.list(serial, settings.limits.departed_names)
        };
        let request =
            Request { node: None, type_url: of.resource_type.type_url().clone(), names, version, nonce, error };
        Composed { request, asked_for, intent }
    }

    fn each_serial(stream_state: &mut StreamState, each: &mut dyn FnMut(&mut u64)) {
        stream_state.last_under.iter_mut().for_each(&mut *each);
        if let Start::Legacy { named: Some(serial) } = &mut stream_state.start {
            each(serial);
        }
    }

    fn check_stream_state(of: &Of<Self>) -> Result<(), String> {
        let StreamState { last_under, restart_timers, .. } = &of.stream_state;
        ensure!(
            last_under.is_none_or(|under| under <= of.in_flight.serial()),
            "a request was sent under a response of the future"
        );
        ensure!(of.announced.asked() || last_under.is_none(), "something was said to a server that was asked nothing");
        let astray = restart_timers.iter().find(|name| !of.wants(name.as_str()));
        ensure!(astray.is_none(), "{astray:?} is to come in time and is not wanted");
        let is_due = || {
            let (of_stream, serial) = (&of.stream_state, of.in_flight.serial());
            of_stream.refetch || of.announced.has_news(serial) || of.in_flight.unanswered() > 0
        };
        ensure!(restart_timers.is_empty() || is_due(), "{restart_timers:?} is to come in time, and no request is due");
        Ok(())
    }

    fn set_node(request: &mut Request, settings: &Settings) {
        request.node = Some(settings.node.clone());
    }
}

/// Walks along the held resources and the subscribed names.
type Names<'a> = (Walk<'a, Held>, Walk<'a, SubscribedName>);

/// A name, a body, and whether the name is known to come after the last.
type Read = (ResourceName, Bytes, bool);

/// For a full-state type, held resources that are absent from the response are removed (xds_protocol.rst, "Deleting
/// Resources"), unless a part of the response has an unknown name, which may be that of a held resource (C-RES-10),
/// or the response has only heartbeats, which concern only their own resources (C-TTL-07).
fn absence_removes(resource_type: &ResourceType, incoming: &Incoming) -> bool {
    resource_type.is_full_state() && !incoming.has_nameless_fault() && !incoming.has_only_heartbeats()
}

#[inline]
fn bare(
    any: Any,
    type_url: &TypeUrl,
    resource_type: &ResourceType,
    names: &mut Names<'_>,
    incoming: &mut Incoming,
    number: usize,
) -> Result<Read, String> {
    if any.type_url != *type_url {
        return Err(fault(&any, resource_type, format_args!("has the type {}", any.type_url)));
    }
    let bytes = resource_type.name_of(&any.value);
    let bytes = bytes.map_err(|_| fault(&any, resource_type, format_args!("can't be read")))?;
    if let Some((name, follows)) = names.0.find(bytes) {
        incoming.held += 1;
        return Ok((name.clone(), any.value, follows));
    }
    let name = core::str::from_utf8(bytes).map_err(|_| "has a name that is no text")?;
    if let Some(reason) = no_name(name, type_url) {
        return Err(reason.into());
    }
    incoming.new.push(number);
    let name = names.1.find(bytes).map_or_else(|| name.into(), |(name, _)| name.clone());
    Ok((name, any.value, false))
}

/// Returns the message of a fault. The guessed name only makes the message clearer, and has no other effect.
#[cold]
fn fault(any: &Any, resource_type: &ResourceType, what: core::fmt::Arguments<'_>) -> String {
    let guess = resource_type.guess_name_of(&any.value).map_or(String::new(), |name| format!("({name}, it seems) "));
    format!("{guess}{what}")
}

/// Reads a wrapped resource, which has the wrapper's name (C-RES-02), as does its fault.
fn wrapped(
    resource: crate::message::Resource,
    type_url: &TypeUrl,
    incoming: &mut Incoming,
    extras: &mut Vec<Extra>,
) -> Option<Read> {
    let (name, ttl) = (resource.name, resource.ttl);
    if let Some(reason) = no_name(name.as_str(), type_url) {
        match xdstp::is_structured(name.as_str()) {
            true => incoming.fault(Some(name), reason),
            false => incoming.fault(None, format!("a resource wrapper {reason}")),
        }
        return None;
    }
    match resource.body {
        // C-RES-01
        Some(body) if body.type_url != *type_url => {
            incoming.fault(Some(name), format!("has the type {}", body.type_url))
        }
        Some(_) if ttl.is_some_and(|ttl| ttl.is_zero()) => incoming.fault(Some(name), "a TTL must be positive"),
        Some(body) => {
            let version = Some(resource.version).filter(|version| !version.is_empty());
            let extra = Extra { version, ttl, aliases: resource.aliases };
            if extra != Extra::default() {
                extras.push(extra);
            }
            incoming.compared = false;
            return Some((name, body.value, false));
        }
        None => {
            let version = incoming.resources.version().clone();
            let (aliases, serial) = (Vec::new(), incoming.serial);
            incoming.heartbeats.push(Heartbeat { name, version, ttl, aliases, serial, renewed: false });
        }
    }
    None
}

impl Subscription<StreamState> {
    /// Returns the version for a request that answers no response. On a new stream, a version claims that no resource
    /// is missing ([design rule 13](crate::manual::rules#rule-13)): a server that skips what the client has would never
    /// send a missing resource.
    fn version_to_claim(&self) -> Version {
        // Nor would a server that has gone back to this version replace a pending update, which may still be accepted.
        let claim = self.announced.asked() || (self.in_flight.out().is_none() && self.holdings.is_complete());
        if claim { self.holdings.version().clone() } else { Version::default() }
    }

    /// Returns the names of the next request, under this response, and marks them as sent.
    fn list(&mut self, under: u64, departed_limit: usize) -> (Vec<ResourceName>, Asked) {
        let Self { holdings, announced, in_flight, stream_state, .. } = self;
        let serial = in_flight.serial();
        let left_out = announced.left_out(under, serial);
        if holdings.names().len() == left_out && !may_be_empty(stream_state, under) {
            // design rule 12: an empty list would still mean everything; sending a name first ends that.
            stream_state.stand_in = true;
            stream_state.stand_ins += u8::from(under == serial); // a server may ignore the others
            stream_state.start = Start::Legacy { named: Some(under) };
            return (Vec::from([WILDCARD.into()]), Asked::These(Vec::new()));
        }
        let List { mut names, news } = announced.list(holdings.names(), under, serial, departed_limit);
        let restart_timers = core::mem::take(&mut stream_state.restart_timers);
        let asked_for = news.map_or(Asked::All, |mut news| {
            news.extend(restart_timers);
            Asked::These(news)
        });
        let only_wildcard = left_out == 0 && names == [WILDCARD];
        let legacy = self.resource_type.has_legacy_wildcard();
        if only_wildcard && legacy && matches!(stream_state.start, Start::Silent | Start::Legacy { named: None }) {
            stream_state.start = Start::Legacy { named: None };
            names.clear(); // C-SUB-01: the legacy wildcard, which every server knows
        }
        match &mut stream_state.start {
            Start::Silent => stream_state.start = Start::Names { wildcard: holdings.wants(WILDCARD) },
            Start::Legacy { named } if !names.is_empty() => *named = Some(under),
            Start::Legacy { .. } | Start::Names { .. } => {}
        }
        stream_state.stand_in = false;
        stream_state.refetch = false;
        stream_state.last_under = Some(under);
        (names, asked_for)
    }

    /// Takes the names whose timers restart with a request that repeats the last list. The others wait for a new list.
    fn restarts_of_last_list(&mut self) -> Vec<ResourceName> {
        let Self { announced, stream_state, .. } = self;
        let (now, later): (BTreeSet<_>, BTreeSet<_>) = core::mem::take(&mut stream_state.restart_timers)
            .into_iter()
            .partition(|name| announced.is_settled_and_listed(name.as_str()));
        stream_state.restart_timers = later;
        now.into_iter().collect()
    }

    /// Returns the names that the last request listed.
    fn last_listed(&self) -> Vec<ResourceName> {
        if self.stream_state.stand_in {
            return Vec::from([WILDCARD.into()]);
        }
        let mut names = self.announced.last_listed(self.holdings.names());
        if names == [WILDCARD] && self.stream_state.start == (Start::Legacy { named: None }) {
            names.clear();
        }
        names
    }
}

/// Returns whether an empty list subscribes to nothing. A server may have ignored names sent under an older response;
/// but a server that did receive them answers a wildcard that returns, and if that response alone caused another
/// wildcard, the exchange would never end. So the wildcard is sent only a few times per version.
fn may_be_empty(stream_state: &StreamState, under: u64) -> bool {
    match stream_state.start {
        Start::Silent | Start::Names { .. } => true,
        Start::Legacy { named } => named == Some(under) || stream_state.stand_ins > REOPENINGS,
    }
}
