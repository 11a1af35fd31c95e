//! A client that is not this project's, written from the specification alone, with a bug if wanted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use xds_conformance::client::ClientPeer;
use xds_conformance::client::peer::{End, Event, Tell};
use xds_conformance::message::{Item, Node, Request, Response, Variant};
use xds_conformance::resource;
use xds_conformance::run::{StreamId, Trouble};

use crate::client_bug::ClientBug;
use crate::client_style::ClientStyle;

/// How long a resource may take to come.
const TIMER: Duration = Duration::from_secs(15);
/// The first delay between two streams.
const DELAY: Duration = Duration::from_millis(300);
const FEATURES: [&str; 2] = ["xds.config.supports-resource-ttl", "xds.config.supports-resource-in-sotw"];

#[derive(Default)]
struct OfType {
    wanted: BTreeSet<String>,
    /// The names and versions that are held, and when each expires.
    held: BTreeMap<String, String>,
    expires: BTreeMap<String, Duration>,
    /// SotW: the version in use.
    version: String,
    first_version: String,
    /// The time until which the client waits for each name.
    timers: BTreeMap<String, Duration>,
    /// Whether a name was ever wanted: then the wildcard is requested as `*`.
    named: bool,
    /// Of this stream: the names that were requested, the last nonce, the last nonce that was accepted, the number of
    /// responses.
    said: Option<BTreeSet<String>>,
    nonce: String,
    accepted_nonce: String,
    responses: u32,
    /// Whether the last response was rejected.
    rejected: bool,
    /// The memory of bugs: resources that were unsubscribed from or removed, with their versions; names that came
    /// unrequested; the last name that was unsubscribed from, and whether it was held; whether the last stream asked.
    left: BTreeMap<String, String>,
    removed: BTreeMap<String, String>,
    unasked: BTreeSet<String>,
    has_left: String,
    held_before: Option<String>,
    was_asked: bool,
    /// Whether nothing was claimed, so that the first response shows which resources still exist.
    unclaimed: bool,
}

/// A client that sends its requests at once.
pub(crate) struct PlainClient {
    variant: Variant,
    style: ClientStyle,
    bugs: Vec<ClientBug>,
    types: BTreeMap<String, OfType>,
    now: Duration,
    stream: Option<StreamId>,
    opened: StreamId,
    opens_at: Option<Duration>,
    delay: Duration,
    node_sent: bool,
    /// Whether nothing is read any more.
    deaf: bool,
    /// Responses with clusters that wait for endpoints.
    warming: Vec<Response>,
    error: Option<(i32, String)>,
    late: Vec<Request>,
    /// The type of a name that was unsubscribed from, for which no request was sent yet.
    unsaid: Option<String>,
    events: VecDeque<Event>,
}

impl PlainClient {
    pub(crate) fn new(variant: Variant, style: ClientStyle, bugs: &[ClientBug]) -> Self {
        Self {
            variant,
            style,
            bugs: bugs.to_vec(),
            types: BTreeMap::new(),
            now: Duration::ZERO,
            stream: None,
            opened: 0,
            opens_at: Some(Duration::ZERO),
            delay: DELAY,
            node_sent: false,
            deaf: false,
            warming: Vec::new(),
            error: None,
            late: Vec::new(),
            unsaid: None,
            events: VecDeque::new(),
        }
    }

    fn has(&self, bug: ClientBug) -> bool {
        self.bugs.contains(&bug)
    }

    fn of(&mut self, type_url: &str) -> &mut OfType {
        self.types.entry(type_url.to_owned()).or_default()
    }

    /// Sends a request; the first of a stream has the node.
    fn say(&mut self, mut request: Request) {
        let Some(stream) = self.stream else { return };
        if !self.node_sent || self.style.node_always {
            let features = FEATURES.map(String::from).to_vec();
            request.node = Some(Node { id: "plain".into(), features });
            self.node_sent = true;
        }
        self.events.push_back(Event::Request(stream, request));
    }

    fn opens(&mut self) {
        self.opened += 1;
        self.stream = Some(self.opened);
        self.node_sent &= self.has(ClientBug::NodeOnce);
        self.deaf = false;
        self.warming.clear();
        let (stream, variant, type_url) = (self.opened, self.variant, None);
        self.events.push_back(Event::Opened { stream, variant, type_url });
        let types: Vec<String> = self.types.keys().cloned().collect();
        for type_url in &types {
            let (skips, asks) = (self.has(ClientBug::RejectedNotAskedAgain), self.has(ClientBug::EmptyListOnNewStream));
            let of = self.of(type_url);
            if (!of.wanted.is_empty() || (asks && of.was_asked)) && !(of.rejected && skips) {
                self.ask(type_url);
            }
        }
        std::mem::take(&mut self.late).into_iter().for_each(|request| self.say(request));
    }

    /// Sends the first request of a type on the stream.
    fn ask(&mut self, type_url: &str) {
        let (variant, style, bugs) = (self.variant, self.style, self.bugs.clone());
        let has = |bug| bugs.contains(&bug);
        let (now, later) = (self.now, self.opened > 1);
        let of = self.of(type_url);
        let mut names = of.wanted.clone();
        if later && has(ClientBug::LateNamesForgotten) && names.contains("*") {
            names.retain(|name| name == "*");
        }
        let left = std::mem::take(&mut of.left);
        if later && has(ClientBug::LeftAskedForAgain) {
            names.extend(left.keys().cloned());
        }
        names.extend(std::mem::take(&mut of.unasked));
        if has(ClientBug::WildcardListsNames) && names.contains("*") {
            names.extend(of.held.keys().cloned());
        }
        of.said = Some(of.wanted.clone());
        let legacy = style.legacy && !of.named && resource::is_full_state(type_url);
        if legacy || has(ClientBug::NamesReplaceWildcard) {
            names.remove("*");
        }
        let mut request = Request { type_url: type_url.to_owned(), ..Request::default() };
        request.names = names.into_iter().collect();
        if has(ClientBug::OldNonceOnNewStream) {
            request.nonce.clone_from(&of.nonce);
        }
        of.nonce.clear();
        of.accepted_nonce.clear();
        of.responses = 0;
        if variant == Variant::Sotw {
            if !has(ClientBug::VersionForgotten) && !style.claims_nothing {
                request.version.clone_from(&of.version);
            }
        } else if !has(ClientBug::ClaimsNothing) && !style.claims_nothing {
            request.initial.clone_from(&of.held);
            request.initial.extend(left.into_iter().filter(|_| has(ClientBug::LeftClaimed)));
            request.initial.extend(std::mem::take(&mut of.removed));
        }
        of.unclaimed = style.claims_nothing && variant == Variant::Delta;
        let waits = |name: &&String| *name != "*" && (has(ClientBug::TimerForHeld) || !of.held.contains_key(*name));
        let time = if has(ClientBug::TimerTooLong) { TIMER * 2 } else { TIMER };
        of.timers = of.wanted.iter().filter(waits).map(|name| (name.clone(), now + time)).collect();
        self.say(request);
    }

    /// Sends the changes since the last request of the type.
    fn sync(&mut self, type_url: &str) {
        let (variant, style, bugs, now) = (self.variant, self.style, self.bugs.clone(), self.now);
        let has = |bug| bugs.contains(&bug);
        if self.stream.is_none() {
            return;
        }
        let error = self.error.clone().filter(|_| has(ClientBug::ErrorRepeated));
        let of = self.of(type_url);
        let Some(said) = of.said.clone() else {
            if !of.wanted.is_empty() {
                self.ask(type_url);
            }
            return;
        };
        let unsaid = has(ClientBug::LastNameUnsaid) || has(ClientBug::TypeForgottenWithNames);
        if said == of.wanted || (of.wanted.is_empty() && unsaid) {
            return;
        }
        if style.legacy && variant == Variant::Sotw && !of.named && of.wanted.is_empty() {
            // An empty list would be the wildcard, as long as no name was requested.
            of.named = true;
            let (nonce, version) = (of.nonce.clone(), of.version.clone());
            let names = vec!["*".into()];
            self.say(Request { type_url: type_url.to_owned(), names, nonce, version, ..Request::default() });
        }
        let of = self.of(type_url);
        let mut added: Vec<String> = of.wanted.difference(&said).cloned().collect();
        let mut gone: Vec<String> = said.difference(&of.wanted).cloned().collect();
        of.said = Some(of.wanted.clone());
        if !has(ClientBug::TimerOfFirstRequestOnly) {
            let time = if has(ClientBug::TimerTooLong) { TIMER * 2 } else { TIMER };
            let new = added.iter().filter(|name| *name != "*" && !of.held.contains_key(*name));
            of.timers.extend(new.map(|name| (name.clone(), now + time)));
        }
        if has(ClientBug::LastOnDemandOnly) && of.wanted.contains("*") && !added.is_empty() {
            gone.extend(said.iter().filter(|name| *name != "*").cloned());
        }
        let mut request = Request { type_url: type_url.to_owned(), error, ..Request::default() };
        if variant == Variant::Sotw {
            let mut names = of.wanted.clone();
            if has(ClientBug::NewNamesOnly) && !added.is_empty() {
                names.retain(|name| added.contains(name));
            }
            if has(ClientBug::NamesReplaceWildcard) && names.len() > 1 {
                names.remove("*");
            }
            if has(ClientBug::LastOnDemandOnly) {
                names.retain(|name| !gone.contains(name));
            }
            request.names = names.into_iter().collect();
            request.version.clone_from(&of.version);
            let nonce = if has(ClientBug::NonceAcceptedLast) { &of.accepted_nonce } else { &of.nonce };
            request.nonce.clone_from(nonce);
            if of.wanted.is_empty() && has(ClientBug::NonceForgottenWithNames) {
                of.nonce.clear();
            }
        } else {
            if has(ClientBug::NamesReplaceWildcard) && said.contains("*") && !added.is_empty() {
                gone.push("*".into());
            }
            if has(ClientBug::ClaimsLater) {
                request.initial.clone_from(&of.held);
            }
            added.retain(|name| !gone.contains(name));
            if style.repeats && !added.is_empty() {
                added = of.wanted.iter().filter(|name| *name != "*" || added.contains(*name)).cloned().collect();
            }
            (request.names, request.unsubscribe) = (added, gone);
        }
        self.say(request);
    }

    fn leave(&mut self, type_url: &str, name: &str) {
        let after = self.has(ClientBug::TimerAfterLeaving);
        let left_claimed = self.has(ClientBug::WildcardLeftClaimed) && name == "*";
        let of = self.of(type_url);
        let stays = of.wanted.len() > 1;
        name.clone_into(&mut of.has_left);
        of.held_before = of.held.contains_key(name).then(|| name.to_owned());
        of.wanted.remove(name);
        if !after {
            of.timers.remove(name);
        }
        let wanted = of.wanted.clone();
        let gone = |held: &str| !wanted.contains(held) && !wanted.contains("*") && !left_claimed;
        let dropped: Vec<String> = of.held.keys().filter(|held| gone(held)).cloned().collect();
        for name in dropped {
            of.expires.remove(&name);
            let version = of.held.remove(&name).unwrap_or_default();
            if stays {
                of.left.insert(name, version);
            }
        }
    }

    /// Returns what is wrong with a response.
    fn fault(&self, response: &Response) -> Option<&'static str> {
        let (mut names, of) = (BTreeSet::new(), &self.types[&response.type_url]);
        let wanted = |name: &String| of.wanted.contains(name) || of.wanted.contains("*");
        for item in &response.resources {
            if item.name.is_empty() && item.body.as_ref().is_none_or(|body| resource::decodes(body)) {
                return Some("a resource without a name");
            }
            if !names.insert(&item.name) && !self.has(ClientBug::DuplicatesAccepted) {
                return Some("a name twice");
            }
            let Some(body) = &item.body else {
                if self.has(ClientBug::BeatRejected) {
                    return Some("nothing in it");
                }
                continue;
            };
            // SotW: the name of a resource that cannot be decoded is not known.
            if !resource::decodes(body) && (item.name.is_empty() || wanted(&item.name)) {
                return Some("bytes that are no resource");
            }
            if item.any_type != response.type_url && !self.has(ClientBug::AnyTypeNotCompared) {
                return Some("another type");
            }
            if item.wrapped && item.body.is_some() && self.has(ClientBug::WrapperRejected) {
                return Some("a wrapper");
            }
        }
        let empty = response.resources.is_empty() && response.removed.is_empty();
        (empty && self.has(ClientBug::EmptyRejected)).then_some("nothing in it")
    }

    /// Reads a response, at once or when endpoints come.
    fn take(&mut self, response: Response) {
        if self.has(ClientBug::FullStopsReading) && self.warming.len() == 8 {
            return;
        }
        if self.style.warms && response.type_url == resource::type_url("cds") {
            return self.warming.push(response);
        }
        let endpoints = response.type_url == resource::type_url("eds");
        self.read(&response);
        if endpoints {
            std::mem::take(&mut self.warming).iter().for_each(|response| self.read(response));
        }
    }

    fn read(&mut self, response: &Response) {
        let type_url = response.type_url.clone();
        let known = self.types.get(&type_url).is_some_and(|of| of.said.is_some());
        if !known {
            return self.read_unknown(response);
        }
        let (variant, bugs) = (self.variant, self.bugs.clone());
        let has = |bug| bugs.contains(&bug);
        if has(ClientBug::EmptyNameEnds)
            && response
                .resources
                .iter()
                .any(|item| item.name.is_empty() && item.body.as_ref().is_some_and(|body| resource::decodes(body)))
        {
            return self.events.push_back(Event::Gone("a panic".into()));
        }
        let of = self.of(&type_url);
        of.responses += 1;
        if has(ClientBug::StopsReading) && of.responses > 2 && type_url != resource::type_url("rds") {
            return;
        }
        if of.wanted.is_empty() && has(ClientBug::TypeForgottenWithNames) {
            of.said = None;
            return;
        }
        let age = |version: &str| (version.len(), version.to_owned());
        let is_old = age(&response.version) < age(&of.version);
        if has(ClientBug::OlderVersionNotRead) && variant == Variant::Sotw && is_old {
            return;
        }
        of.nonce.clone_from(&response.nonce);
        let fault = self.fault(response);
        let again = fault.is_some() && self.types[&type_url].rejected;
        if again && self.has(ClientBug::SecondNackSilent) {
            return;
        }
        if fault.is_some() && self.style.partial {
            let good = |item: &&Item| item.body.as_ref().is_none_or(|body| resource::decodes(body));
            let twice = response.resources.iter().map(|item| &item.name).collect::<BTreeSet<_>>().len();
            if twice == response.resources.len() && response.resources.iter().all(|item| item.any_type == type_url) {
                let resources = response.resources.iter().filter(good).cloned().collect();
                // A resource that is not good is not absent either.
                self.apply_part(&Response { resources, ..response.clone() });
            }
        }
        if fault.is_none() || has(ClientBug::RejectedCounts) {
            self.apply(response);
        } else if has(ClientBug::RejectionDropsOld) {
            let of = self.of(&type_url);
            let names: Vec<String> = response.resources.iter().map(|item| item.name.clone()).collect();
            let names = if names.iter().all(String::is_empty) { of.held.keys().cloned().collect() } else { names };
            let removed: Vec<String> = names.into_iter().filter(|name| of.held.remove(name).is_some()).collect();
            self.events.push_back(Event::Apply { type_url: type_url.clone(), names: Vec::new(), removed });
        }
        self.answer(response, fault);
    }

    /// Handles a response of a type that was not asked for on the stream, which a client without a bug ignores.
    fn read_unknown(&mut self, response: &Response) {
        let (type_url, nonce, version) = (response.type_url.clone(), response.nonce.clone(), response.version.clone());
        if type_url.is_empty() || self.types.contains_key(&type_url) {
            return;
        }
        self.deaf |= self.has(ClientBug::DeafAfterUnknownType);
        if self.has(ClientBug::UnknownTypeAcked) {
            let version = if self.variant == Variant::Sotw { version } else { String::new() };
            self.say(Request { type_url, nonce, version, ..Request::default() });
        }
        if let (true, Some(stream)) = (self.has(ClientBug::UnknownTypeEnds), self.stream) {
            self.events.push_back(Event::Closed(stream, "an unknown type".into()));
            self.close();
        }
    }

    fn apply(&mut self, response: &Response) {
        self.apply_all(response, true);
    }

    /// Applies the good resources of a bad response: nothing is concluded from the resources that it lacks.
    fn apply_part(&mut self, response: &Response) {
        self.apply_all(response, false);
    }

    fn apply_all(&mut self, response: &Response, whole: bool) {
        let bugs = self.bugs.clone();
        let has = |bug| bugs.contains(&bug);
        let (now, variant, type_url) = (self.now, self.variant, response.type_url.clone());
        let keeps = has(ClientBug::GoneStays);
        let mut events = Vec::new();
        let of = self.of(&type_url);
        let (mut names, mut removed) = (Vec::new(), Vec::new());
        for item in &response.resources {
            let wanted = of.wanted.contains(&item.name) || of.wanted.contains("*");
            if !wanted && has(ClientBug::UnaskedAskedFor) && item.body.is_some() {
                of.unasked.insert(item.name.clone());
            }
            let beside = of.wanted.contains("*") && of.wanted.contains(&item.name);
            if !wanted || (beside && has(ClientBug::OnDemandNotTaken)) {
                continue;
            }
            if !has(ClientBug::TtlStays) || item.ttl.is_some() {
                of.expires.remove(&item.name);
            }
            of.expires.extend(item.ttl.map(|ttl| (item.name.clone(), now + ttl)));
            if !has(ClientBug::TimerForWhatCame) {
                of.timers.remove(&item.name);
            }
            if item.body.is_some() {
                let kept = of.held.get(&item.name).cloned().filter(|_| has(ClientBug::WildcardVersionKept));
                let version = kept.filter(|_| of.wanted.contains("*")).unwrap_or_else(|| item.version.clone());
                of.held.insert(item.name.clone(), version);
                names.push(item.name.clone());
            }
        }
        if has(ClientBug::AnyResponseStopsTimers) {
            of.timers.clear();
        }
        let stays = |name: &String| {
            has(ClientBug::GoneStaysUnderWildcard) && of.wanted.contains("*") && !of.wanted.contains(name)
        };
        let absent = |held: &&String| !response.mentions(held) && !stays(held);
        if !whole {
        } else if variant == Variant::Sotw && resource::is_full_state(&type_url) {
            removed.extend(of.held.keys().filter(absent).cloned());
        } else if std::mem::take(&mut of.unclaimed) {
            // The server does not know what the client holds, and does not announce the removal.
            removed.extend(of.held.keys().filter(absent).filter(|name| !of.wanted.contains(*name)).cloned());
        } else if has(ClientBug::AbsentIsMissing) && variant == Variant::Sotw {
            removed.extend(of.wanted.iter().filter(|name| *name != "*" && !response.mentions(name)).cloned());
        }
        for name in &response.removed {
            of.timers.remove(name);
            match of.held.contains_key(name) {
                true if stays(name) => {}
                true => removed.push(name.clone()),
                false if of.wanted.contains(name) => {
                    events.push(Event::Missing { type_url: type_url.clone(), name: name.clone() });
                }
                false => {}
            }
        }
        if keeps {
            removed.clear();
        }
        for name in &removed {
            of.expires.remove(name);
            let version = of.held.remove(name);
            let claimed = version.filter(|_| has(ClientBug::RemovedClaimed));
            of.removed.extend(claimed.map(|version| (name.clone(), version)));
        }
        let unsubscribes = has(ClientBug::RemovedUnsubscribed) && variant == Variant::Delta;
        of.wanted.retain(|name| !(unsubscribes && removed.contains(name)));
        if !names.is_empty() || !removed.is_empty() {
            events.push(Event::Apply { type_url: type_url.clone(), names, removed });
        }
        self.events.extend(events);
    }

    fn answer(&mut self, response: &Response, fault: Option<&str>) {
        let bugs = self.bugs.clone();
        let has = |bug| bugs.contains(&bug);
        let variant = self.variant;
        let code = if has(ClientBug::CodeZero) { 0 } else { 3 };
        let mut error = fault.map(|what| (code, what.to_owned()));
        if has(ClientBug::ErrorWithAck) && error.is_none() {
            error = self.error.take();
        } else if error.is_some() || !has(ClientBug::ErrorWithAck) {
            self.error.clone_from(&error);
        }
        let of = self.of(&response.type_url);
        of.rejected = fault.is_some();
        if fault.is_none() && of.first_version.is_empty() {
            of.first_version.clone_from(&response.version);
        }
        if fault.is_none() {
            of.version.clone_from(&response.version);
            of.accepted_nonce.clone_from(&response.nonce);
        }
        let type_url = response.type_url.clone();
        let mut request = Request { type_url, nonce: response.nonce.clone(), error, ..Request::default() };
        if variant == Variant::Sotw {
            let mut names = of.wanted.clone();
            if has(ClientBug::NamesReplaceWildcard) && names.len() > 1 {
                names.remove("*");
            }
            request.names = names.into_iter().collect();
            request.version.clone_from(if has(ClientBug::NackHasNewVersion) { &response.version } else { &of.version });
            if fault.is_some() && has(ClientBug::NackHasFirstVersion) {
                request.version.clone_from(&self.types[&response.type_url].first_version);
            }
            if self.style.legacy && !self.types[&response.type_url].named && resource::is_full_state(&response.type_url)
            {
                request.names.retain(|name| name != "*");
            }
        }
        self.say(request);
        if has(ClientBug::RejectionUnsubscribes) && fault.is_some() {
            let of = self.of(&response.type_url);
            of.wanted.retain(|name| name == "*" || !response.mentions(name));
        }
        self.sync(&response.type_url);
    }

    fn close(&mut self) {
        if self.stream.take().is_none() {
            return;
        }
        for of in self.types.values_mut() {
            of.was_asked = of.said.take().is_some();
            of.timers.clear();
        }
        let delay = if self.has(ClientBug::NoBackoff) { Duration::ZERO } else { self.delay };
        self.opens_at = (!self.has(ClientBug::NeverComesBack)).then_some(self.now + delay);
        self.delay = (self.delay * 2).min(Duration::from_secs(5));
    }

    fn due(&mut self) {
        let wants = self.types.values().any(|of| !of.wanted.is_empty());
        if self.stream.is_none() && wants && self.opens_at.is_some_and(|at| at <= self.now) {
            self.opens();
        }
        let (now, keeps) = (self.now, self.has(ClientBug::ExpiredStays));
        for (type_url, of) in &mut self.types {
            let over: Vec<String> =
                of.timers.iter().filter(|(_, at)| **at <= now).map(|(name, _)| name.clone()).collect();
            for name in over {
                of.timers.remove(&name);
                self.events.push_back(Event::Missing { type_url: type_url.clone(), name });
            }
            let over: Vec<String> =
                of.expires.iter().filter(|(_, at)| **at <= now).map(|(name, _)| name.clone()).collect();
            over.iter().for_each(|name| _ = of.expires.remove(name));
            if !over.is_empty() && !keeps {
                over.iter().for_each(|name| _ = of.held.remove(name));
                self.events.push_back(Event::Apply { type_url: type_url.clone(), names: Vec::new(), removed: over });
            }
        }
    }

    fn next_due(&self) -> Option<Duration> {
        let wants = self.types.values().any(|of| !of.wanted.is_empty());
        let opens = self.opens_at.filter(|_| self.stream.is_none() && wants);
        let times = self.types.values().flat_map(|of| of.timers.values().chain(of.expires.values()).copied());
        times.chain(opens).min()
    }
}

impl ClientPeer for PlainClient {
    fn tell(&mut self, tell: &Tell) -> Result<(), Trouble> {
        let unsaid = self.has(ClientBug::ComesBackUnsaid);
        let silent = self.has(ClientBug::ComesBackSilent);
        for name in &tell.names {
            if tell.leave {
                self.leave(&tell.type_url, name);
                continue;
            }
            let of = self.of(&tell.type_url);
            if unsaid && of.has_left == *name {
                continue;
            }
            of.named |= name != "*";
            of.wanted.insert(name.clone());
        }
        self.due();
        let (now, of) = (self.now, self.of(&tell.type_url));
        let single = tell.names.len() == 1;
        if silent && single && tell.leave && of.held_before.is_some() {
            self.unsaid = Some(tell.type_url.clone()); // the client may be told to subscribe to the name again
            return Ok(());
        }
        if let (true, false, Some(name)) = (silent, tell.leave, of.held_before.take()) {
            if tell.names == [name.clone()] {
                of.timers.insert(name, now + TIMER);
            }
        }
        self.sync(&tell.type_url);
        let wants_none = self.types.values().all(|of| of.wanted.is_empty());
        if let (true, true, Some(stream)) = (self.style.ends, wants_none, self.stream) {
            self.events.push_back(Event::Closed(stream, "nothing is wanted".into()));
            self.close();
            self.opens_at = Some(self.now);
        }
        Ok(())
    }

    fn send(&mut self, stream: StreamId, message: &[u8]) {
        self.due();
        if self.stream != Some(stream) || self.deaf {
            return;
        }
        self.delay = DELAY;
        match Response::decode(self.variant, message.to_vec().into(), resource::revision) {
            Ok(response) => self.take(response),
            Err(error) => {
                self.events.push_back(Event::Closed(stream, error.to_string()));
                self.close();
            }
        }
    }

    fn end(&mut self, stream: StreamId, _: End) {
        if self.stream == Some(stream) {
            // Requests that were sent and not read are lost.
            let (lost, kept) = self.events.drain(..).partition(|event| matches!(event, Event::Request(..)));
            self.events = kept;
            let lost: VecDeque<Event> = lost;
            if self.has(ClientBug::AnswersOnNewStream) {
                let is_answer = |event| match event {
                    Event::Request(_, request) if !request.nonce.is_empty() => Some(request),
                    _ => None,
                };
                self.late = lost.into_iter().filter_map(is_answer).collect();
            }
            self.close();
        }
    }

    fn poll(&mut self, wait: Duration) -> Option<Event> {
        let end = self.now + wait;
        if let Some(type_url) = self.unsaid.take() {
            self.sync(&type_url);
        }
        loop {
            self.due();
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            match self.next_due().filter(|due| *due <= end) {
                Some(due) if due > self.now => self.now = due,
                _ => {
                    self.now = end;
                    self.due();
                    return self.events.pop_front();
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.now
    }
}
