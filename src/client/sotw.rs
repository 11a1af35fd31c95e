//! The state-of-the-world variant. A request lists all that is wanted and answers a response; one that crosses a
//! newer response on the wire may never be heard.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::config::Settings;
use super::incoming::{Heartbeat, Incoming, Walk};
use super::names::no_name;
use super::resources::{Extra, Resources};
use super::subscription::{Answer, Held, Subscription};
use super::timers::Asked;
use super::transmit::Intent;
use super::variant::{Composed, Protocol, Variant};
use super::{answer_intent, check_answerable};
use crate::ensure::ensure;
use crate::error::PeerMisbehaved;
use crate::message::sotw::{Item, Request, Response};
use crate::name::{ResourceName, TypeUrl, Version, WILDCARD};
use crate::resource::Any;
use crate::variant::Sotw;
use crate::xdstp;

/// How often a newer response makes a name be announced anew before only time does (DESIGN rule 4: on every
/// response, a server that answers each added name though it does not exist would be asked for ever).
const REOPENINGS: u8 = 2;

/// How long an owed wildcard, or any owed name where existence timers are off, waits before it is announced anew.
const REPAIR: Duration = Duration::from_secs(15);

/// What a stream was told, as far as the wishes that are marked do not say it.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Told {
    /// Under which response the last request was sent.
    said: Option<u64>,
    start: Start,
    /// The last request listed the wildcard only because an empty list would have meant the same.
    stand_in: bool,
    /// How often that was done since responses have this version.
    stand_ins: u8,
    version: Version,
    /// Names that were announced on this stream and left since.
    gone: BTreeSet<ResourceName>,
    /// There were more of them than the limit: any name may be one.
    forgot: bool,
    /// Wanted names that were announced before they left and came back (DESIGN rule 4).
    owed: BTreeMap<ResourceName, Owed>,
    /// So was the wildcard as the last response came, which may be to a list that left it out.
    lacks_all: bool,
    /// Names whose existence time starts anew with the next request.
    retime: BTreeSet<ResourceName>,
    /// Say it again, though nothing changed.
    refetch: bool,
}

/// How the type's requests on this stream began (DESIGN rule 12).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
enum Start {
    /// There was none.
    #[default]
    Silent,
    /// With an empty list, the legacy wildcard. An empty list goes on meaning it until the server has heard a
    /// name; `named` is the response under which it was last told one. If that was not the last response, it may have heard
    /// it or not: then an empty list means nothing that is sure.
    Legacy { named: Option<u64> },
    /// With names: an empty list means nothing.
    Names { wildcard: bool },
}

impl Start {
    /// Whether the wildcard was said.
    fn is_of_all(self) -> bool {
        matches!(self, Self::Legacy { .. } | Self::Names { wildcard: true })
    }
}

/// A name that came back. The server may never have heard that it left, and would then see nothing new: it has to
/// be left out of a request under the newest nonce, then included.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Owed {
    stage: Stage,
    reopened: u8,
    /// The time-out passed, and it was announced anew: the next one is final.
    last: bool,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Stage {
    /// To be left out.
    Leave,
    /// Left out under this response.
    Left(u64),
    /// Included again under this response.
    Said(u64),
}

impl Owed {
    /// Whether a newer response is a reason to announce the name anew.
    fn reopens(&self, under: u64, serial: u64) -> bool {
        under < serial && self.reopened < REOPENINGS
    }
}

impl Variant for Sotw {}

impl Protocol for Sotw {
    type Request = Request;
    type Response = Response;
    type Told = Told;

    const SAYS_WHAT_IS_HELD: bool = false;
    const ALIASES: bool = false;

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
        let limits = &settings.limits;
        let mut incoming = Incoming::new(response.nonce, to.serial, response.version);
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
        let (mut names, mut taken) = ((Walk::new(&to.held), Walk::new(&to.wishes)), 0);
        incoming.resources = Resources::collect(version, response.resources, |at, item, extras| {
            let read = match item {
                Item::Bare(any) => match bare(any, &response.type_url, to, &mut names, &mut incoming, taken) {
                    Ok(read) => Some(read),
                    Err(reason) => {
                        // C-RES-05: it can't be told which resource this would have been.
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
        incoming
    }

    fn never_spoke(of: &Subscription<Self>) -> bool {
        of.departed.is_empty() && of.told.gone.is_empty() && !of.told.forgot
    }

    fn subscribed(to: &mut Subscription<Self>, name: &ResourceName) {
        if to.came_back(name.as_str()) {
            let told = &mut to.told;
            // A name that is gone was left out of every request since.
            let left = !is_among(&to.departed, name.as_str()) && told.said == Some(to.serial);
            let stage = if left { Stage::Left(to.serial) } else { Stage::Leave };
            told.owed.insert(name.clone(), Owed { stage, reopened: 0, last: false });
        }
    }

    fn unsubscribed(from: &mut Subscription<Self>, name: &ResourceName, told: bool) {
        from.told.owed.remove(name);
        from.told.retime.remove(name);
        if name.is_wildcard() && told {
            // What is wanted by name was announced by the wildcard. If it is not held (it was rejected, say), the
            // server may think that it was delivered (S-SOTW-56).
            let Subscription { wishes, held, told, .. } = from;
            for name in wishes.keys().filter(|name| !held.contains_key(*name)) {
                let leave = || Owed { stage: Stage::Leave, reopened: 0, last: false };
                told.owed.entry(name.clone()).or_insert_with(leave);
            }
        }
    }

    fn takes(from: &Subscription<Self>, name: &str) -> bool {
        from.covers(name)
    }

    /// DESIGN rule 4: of a full-state type any response settles what is owed, for it has all that the server
    /// believes is wanted, and its answer says what really is. Of a partial type only one that has it: of a collection
    /// a member may have come by itself. A heartbeat settles nothing but what is held, for it brings nothing.
    fn processed(of: &mut Subscription<Self>, incoming: &Incoming) {
        let full_state = of.kind.is_full_state() && !incoming.refused && !incoming.has_only_heartbeats();
        let held = &of.held;
        let Told { owed, lacks_all, retime, start, version, stand_ins, .. } = &mut of.told;
        *lacks_all = owed.contains_key(WILDCARD);
        if matches!(start, Start::Legacy { .. }) && version != incoming.resources.version() {
            *version = incoming.resources.version().clone();
            *stand_ins = 0;
        }
        owed.retain(|name, owed| {
            let settled = if name.is_glob() && !full_state {
                incoming.errors.iter().any(|error| error.name == *name)
            } else {
                (full_state || incoming.mentions(name.as_str()))
                    && (held.contains_key(name) || !incoming.has_heartbeat(name))
            };
            if settled && owed.last {
                retime.insert(name.clone()); // its time ran out before this came: it gets its time anew
            }
            !settled
        });
    }

    /// Of a full-state type, what is held and not in the response is gone (xds_protocol.rst, "Deleting
    /// Resources"). Not if something in it can't be told by name, which may be what is held (C-RES-10); and not if
    /// it has only heartbeats, which speak for themselves (C-TTL-07).
    fn absence_removes(of: &Subscription<Self>, incoming: &Incoming) -> bool {
        of.kind.is_full_state() && !incoming.has_nameless_fault() && !incoming.has_only_heartbeats()
    }

    /// Each response of a full-state type has everything.
    fn implies_version(of: &Subscription<Self>) -> bool {
        of.kind.is_full_state()
    }

    /// In SotW the version of a heartbeat is the response's (C-TTL-03).
    fn heartbeat_matches(of: &Subscription<Self>, _: &Held, _: &Heartbeat, version: &Version) -> bool {
        of.version == *version
    }

    /// Not what may have answered a list without the wildcard: its version is of all that changed.
    fn completes(of: &Subscription<Self>) -> bool {
        of.told.start.is_of_all() && !of.told.lacks_all && !of.told.owed.contains_key(WILDCARD)
    }

    fn answers_all(of: &Subscription<Self>, incoming: &Incoming) -> bool {
        of.told.start.is_of_all() && !incoming.has_nameless_fault()
    }

    fn timeout(of: &Subscription<Self>, name: &ResourceName, settings: &Settings) -> Option<Duration> {
        let repair = of.told.owed.contains_key(name).then_some(REPAIR);
        settings.existence_timeout.filter(|_| !name.is_wildcard()).or(repair)
    }

    fn asks_again(of: &mut Subscription<Self>, name: &ResourceName) -> bool {
        match of.told.owed.get_mut(name) {
            Some(owed) if !owed.last => {
                *owed = Owed { stage: Stage::Leave, reopened: 0, last: true };
                true
            }
            _ => {
                let owed = of.told.owed.remove(name);
                // Its time ran out while it was left out: the server has to be told all the same.
                of.told.refetch |= owed.is_some_and(|owed| !matches!(owed.stage, Stage::Said(_)));
                false
            }
        }
    }

    /// Any request lists all names: a repeat asks for all of them (real-clients.md, 3.1: Envoy's re-warm).
    fn refetch(of: &mut Subscription<Self>, names: Vec<ResourceName>, _: &Settings) {
        of.told.refetch = true;
        of.told.retime.extend(names); // what is held is not awaited all the same
    }

    fn may_know(of: &Subscription<Self>, name: &str) -> bool {
        of.is_told(name) || (of.wants(name) && of.came_back(name))
    }

    /// It is announced in the careful way: gone, then wanted (DESIGN rule 4). So is the wildcard, without which it
    /// would not be gone.
    fn ask_anew(of: &mut Subscription<Self>, mut names: Vec<ResourceName>) {
        names.extend(Self::may_know(of, WILDCARD).then(|| WILDCARD.into()));
        for name in names {
            if let Some(wish) = of.wishes.get_mut(&name) {
                wish.complete = false; // until it is announced again
            }
            of.told.retime.insert(name.clone()); // a response may settle it before it was left out
            of.told.owed.insert(name, Owed { stage: Stage::Leave, reopened: 0, last: false });
        }
    }

    /// Not while a response is unanswered: changes ride on the answer (DESIGN rule 2).
    fn may_speak(of: &Subscription<Self>) -> bool {
        !of.asked || of.unanswered() == 0
    }

    fn has_news(of: &Subscription<Self>) -> bool {
        if !of.asked {
            return !of.wishes.is_empty(); // C-SUB-07: never an empty list that nobody meant
        }
        let told = &of.told;
        Self::may_speak(of)
            && (of.untold > 0
                || !of.departed.is_empty()
                || told.refetch
                || told.stand_in
                || told
                    .owed
                    .values()
                    .any(|owed| !matches!(owed.stage, Stage::Said(under) if !owed.reopens(under, of.serial))))
    }

    fn compose(of: &mut Subscription<Self>, answer: Option<Answer>, settings: &Settings) -> Composed<Self> {
        let intent = match &answer {
            Some(answer) => answer_intent(answer),
            None if !of.asked => Intent::Initial,
            None => Intent::Subscribe,
        };
        let (nonce, serial, version, error) = match answer {
            Some(answer) => (answer.nonce, answer.serial, answer.version, answer.error),
            None => (of.nonce.clone(), of.serial, of.version_to_claim(), None),
        };
        let (names, asked_for) = if error.is_some() && settings.habits.bare_nacks {
            (of.said(), Asked::These(Vec::new()))
        } else {
            of.list(serial, settings.limits.departed_names)
        };
        let request = Request { node: None, type_url: of.kind.type_url().clone(), names, version, nonce, error };
        Composed { request, asked_for, intent }
    }

    fn each_serial(told: &mut Told, each: &mut dyn FnMut(&mut u64)) {
        told.said.iter_mut().for_each(&mut *each);
        if let Start::Legacy { named: Some(serial) } = &mut told.start {
            each(serial);
        }
        for owed in told.owed.values_mut() {
            if let Stage::Left(serial) | Stage::Said(serial) = &mut owed.stage {
                each(serial);
            }
        }
    }

    fn check_told(of: &Subscription<Self>) -> Result<(), String> {
        let Told { said, gone, owed, retime, .. } = &of.told;
        ensure!(said.is_none_or(|said| said <= of.serial), "a request was sent under a response of the future");
        let spoke = said.is_some() || !gone.is_empty() || !owed.is_empty();
        ensure!(of.asked || !spoke, "something was said to a server that was asked nothing");
        let astray = owed.keys().chain(retime).find(|name| !of.wishes.contains_key(*name));
        ensure!(astray.is_none(), "{astray:?} is owed and not wanted");
        let told = gone.iter().find(|name| of.wishes.get(*name).is_some_and(|wish| wish.told));
        ensure!(told.is_none(), "{told:?} is gone and told");
        Ok(())
    }

    fn set_node(request: &mut Request, settings: &Settings) {
        request.node = Some(settings.node.clone());
    }
}

/// What is held, and what is wanted.
type Names<'a, V> = (Walk<'a, Held>, Walk<'a, V>);

/// A name, a body, and whether the name is known to come after the last.
type Read = (ResourceName, Bytes, bool);

#[inline]
fn bare<V>(
    any: Any,
    type_url: &TypeUrl,
    to: &Subscription<Sotw>,
    names: &mut Names<'_, V>,
    incoming: &mut Incoming,
    number: usize,
) -> Result<Read, String> {
    // For people: what it may be called goes into the message, and counts for nothing.
    let guess = || to.kind.guess_name_of(&any.value).map_or(String::new(), |name| format!("({name}, it seems) "));
    if any.type_url != *type_url {
        return Err(format!("{}has the type {}", guess(), any.type_url));
    }
    let bytes = to.kind.name_of(&any.value).map_err(|_| format!("{}can't be read", guess()))?;
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

/// A wrapped resource goes by the wrapper's name (C-RES-02), and so does its fault.
fn wrapped(
    resource: crate::resource::Resource,
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
            incoming.heartbeats.push(Heartbeat { name, version, ttl, aliases: Vec::new() });
        }
    }
    None
}

/// Whether a name is there, or left with the wildcard, by which it may have been known (DESIGN rule 4).
fn is_among(names: &BTreeSet<ResourceName>, name: &str) -> bool {
    names.contains(name) || names.contains(WILDCARD)
}

impl Subscription<Sotw> {
    /// Whether a name that is not told may have been before.
    fn came_back(&self, name: &str) -> bool {
        is_among(&self.departed, name) || self.told.forgot || is_among(&self.told.gone, name)
    }

    /// The version for a request that answers nothing. On a new stream it claims that nothing of it is lacking
    /// (DESIGN rule 13): a server that skips what the client has would leave it without.
    fn version_to_claim(&self) -> Version {
        let complete = |(name, wish): (&ResourceName, &super::subscription::Wish)| {
            wish.rejected || wish.complete || self.held.get(name).is_some_and(|held| held.claimed)
        };
        // Nor may the application be removing something at this moment.
        let removing = self.out.as_ref().is_some_and(|out| !out.offer.removed.is_empty());
        let claim = self.asked || (!removing && self.wishes.iter().all(complete));
        if claim { self.version.clone() } else { Version::default() }
    }

    /// What the next request lists, under this response. Marks it as told.
    fn list(&mut self, serial: u64, departed_limit: usize) -> (Vec<ResourceName>, Asked) {
        let current = serial == self.serial;
        let legacy = self.kind.has_legacy_wildcard();
        let only_wildcard = self.wishes.len() == 1 && self.wishes.contains_key(WILDCARD);
        let left_out: BTreeSet<ResourceName> = self.left_out(current).cloned().collect();
        let empty = self.wishes.len() == left_out.len();

        if empty && !self.may_be_silent(serial) {
            // DESIGN rule 12: an empty list would still mean everything; a name first ends that.
            self.told.stand_in = true;
            self.told.stand_ins += 1;
            self.told.start = Start::Legacy { named: Some(serial) };
            return (Vec::from([WILDCARD.into()]), Asked::These(Vec::new()));
        }
        let all_new = self.untold == self.wishes.len() && left_out.is_empty();
        let (mut names, mut asked_for) = (Vec::with_capacity(self.wishes.len()), Vec::new());
        for (name, wish) in &mut self.wishes {
            if !left_out.is_empty() && left_out.contains(name) {
                continue;
            }
            if !wish.told {
                wish.told = true;
                self.untold -= 1;
                if !all_new {
                    asked_for.push(name.clone());
                }
            }
            names.push(name.clone());
        }
        self.departed_are_gone(if all_new { &names } else { &asked_for }, departed_limit);
        asked_for.extend(core::mem::take(&mut self.told.retime));
        if current {
            self.turn_stages(&left_out, &mut asked_for);
        }
        let start = &mut self.told.start;
        if only_wildcard
            && left_out.is_empty()
            && legacy
            && matches!(start, Start::Silent | Start::Legacy { named: None })
        {
            *start = Start::Legacy { named: None };
            names.clear(); // C-SUB-01: the legacy wildcard, which every server knows
        }
        match start {
            Start::Silent => *start = Start::Names { wildcard: self.wishes.contains_key(WILDCARD) },
            Start::Legacy { named } if !names.is_empty() => *named = Some(serial),
            Start::Legacy { .. } | Start::Names { .. } => {}
        }
        self.told.stand_in = false;
        self.told.refetch = false;
        self.told.said = Some(serial);
        (names, if all_new { Asked::All } else { Asked::These(asked_for) })
    }

    /// What the last request listed.
    fn said(&self) -> Vec<ResourceName> {
        if self.told.stand_in {
            return Vec::from([WILDCARD.into()]);
        }
        let left =
            |name: &ResourceName| self.told.owed.get(name).is_some_and(|owed| matches!(owed.stage, Stage::Left(_)));
        let told = self.wishes.iter().filter(|(name, wish)| wish.told && !left(name)).map(|(name, _)| name);
        let mut names: Vec<ResourceName> = told.chain(&self.departed).cloned().collect();
        names.sort_unstable();
        if names == [WILDCARD] && self.told.start == (Start::Legacy { named: None }) {
            names.clear();
        }
        names
    }

    /// The owed names that are not in the next request.
    fn left_out(&self, current: bool) -> impl Iterator<Item = &ResourceName> {
        let serial = self.serial;
        self.told.owed.iter().filter_map(move |(name, owed)| {
            let out = match owed.stage {
                Stage::Leave => true,
                Stage::Left(under) => !current || owed.reopens(under, serial),
                Stage::Said(under) => current && owed.reopens(under, serial),
            };
            out.then_some(name)
        })
    }

    /// What a request under the newest response does to the owed names.
    fn turn_stages(&mut self, left_out: &BTreeSet<ResourceName>, asked_for: &mut Vec<ResourceName>) {
        let serial = self.serial;
        for (name, owed) in &mut self.told.owed {
            if left_out.contains(name) {
                if owed.stage != Stage::Leave {
                    owed.reopened += 1;
                }
                owed.stage = Stage::Left(serial);
            } else {
                if matches!(owed.stage, Stage::Left(_)) {
                    asked_for.push(name.clone());
                }
                owed.stage = Stage::Said(serial);
            }
        }
    }

    /// Whether an empty list means that nothing is wanted. What was named under an older response may not have been
    /// heard; but a server that did hear answers a wildcard that comes back, and if that alone made it come back again
    /// there would be no end. So a response of no new version counts as such an answer, after some.
    fn may_be_silent(&self, serial: u64) -> bool {
        match self.told.start {
            Start::Silent | Start::Names { .. } => true,
            Start::Legacy { named } => named == Some(serial) || self.told.stand_ins > REOPENINGS,
        }
    }

    /// The server is told, or would be if it heard. Remembers the names within the limit.
    fn departed_are_gone(&mut self, told: &[ResourceName], limit: usize) {
        let (gone, wishes) = (&mut self.told.gone, &self.wishes);
        if !gone.is_empty() {
            told.iter().for_each(|name| _ = gone.remove(name));
        }
        let departed = core::mem::take(&mut self.departed).into_iter();
        gone.extend(departed.filter(|name| wishes.get(name).is_none_or(|wish| !wish.told)));
        if gone.len() > limit.max(wishes.len()) {
            gone.clear();
            self.told.forgot = true;
        }
    }
}
