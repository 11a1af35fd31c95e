//! Clients with one defect each, named by what is wrong with them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use xds_conformance::client::memory::{ClientDefect, Return};
use xds_conformance::client::peer::{Event, Tell};
use xds_conformance::message::{Request, Response};
use xds_conformance::resource;

/// A defect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wrong {
    NoNode,
    KeepsNonce,
    NewStreamKeepsError,
    AsksForNothing,
    LegacyForEver,
    LeavesAll,
    AckWithOldVersion,
    AcksNothing,
    AnswersFirstOnly,
    AnswersTwice,
    NackHasNewVersion,
    NackWithoutError,
    NackHasVersionAtFirst,
    ErrorStays,
    RepeatsError,
    EmptyError,
    AcksDuplicates,
    TakesUnrequested,
    JudgesUnrequested,
    AcksUnknownTypes,
    IgnoresAnyType,
    CannotUnwrap,
    NewNamesOnly,
    NeverUnsubscribes,
    SilentOnceLeft,
    NeverComesBackToName,
    ForgetsNonce,
    OneNonce,
    SubscribesTwice,
    NonceInSpontaneous,
    NeverDeletes,
    RejectsEmpty,
    DeletesPartial,
    RemovedForEver,
    NacksUnknownRemovals,
    NoTimer,
    TimerForHeld,
    ForgetsVersion,
    ClaimsNothing,
    ClaimsRejected,
    ClaimsRemoved,
    ClaimsAlways,
    ForgetsLateNames,
    AnswersOldStream,
    NoBackoff,
    NeverReturns,
    DiesOfEmptyNames,
    LastOnDemandOnly,
    NoTtl,
    DropsOnReturn,
    ReadsEight,
    OneRequestAtATime,
}

/// A defect and its memory.
pub(crate) struct Seeded {
    wrong: Wrong,
    /// By type, of this stream: responses, and the nonces that were answered.
    heard: BTreeMap<String, Vec<Response>>,
    answered: BTreeSet<String>,
    /// By type: the names that were asked for, on this stream.
    asked: BTreeMap<String, BTreeSet<String>>,
    /// By type, over all streams: the last request, the names that are wanted, and the names and versions that were
    /// received.
    last: BTreeMap<String, Request>,
    wants: BTreeMap<String, BTreeSet<String>>,
    claims: BTreeMap<String, BTreeMap<String, String>>,
    error: Option<(i32, String)>,
    last_nonce: String,
    /// The version of the last response that is not of the barrier.
    heard_version: String,
    /// By type: the names of the first request of all.
    early: BTreeMap<String, BTreeSet<String>>,
    old: Option<Request>,
    old_stream: u32,
    /// The names that were unsubscribed from, or removed.
    left: BTreeSet<String>,
    opened: Option<Duration>,
    /// The names that were subscribed to again, and since when the client waits for them.
    waits: Vec<(String, String, Option<Duration>)>,
    streams: u32,
    requests: u32,
    dead: bool,
}

impl Seeded {
    pub(crate) fn new(wrong: Wrong) -> Self {
        Self {
            wrong,
            heard: BTreeMap::new(),
            answered: BTreeSet::new(),
            asked: BTreeMap::new(),
            last: BTreeMap::new(),
            wants: BTreeMap::new(),
            claims: BTreeMap::new(),
            error: None,
            last_nonce: String::new(),
            heard_version: String::new(),
            early: BTreeMap::new(),
            old: None,
            old_stream: 0,
            left: BTreeSet::new(),
            opened: None,
            waits: Vec::new(),
            streams: 0,
            requests: 0,
            dead: false,
        }
    }

    fn of(&self, request: &Request) -> Option<&Response> {
        self.heard.get(&request.type_url)?.iter().find(|response| response.nonce == request.nonce)
    }
}

fn is_barrier(type_url: &str) -> bool {
    type_url == resource::type_url("rds")
}

impl ClientDefect for Seeded {
    fn opens(&mut self) {
        self.heard.clear();
        self.answered.clear();
        self.asked.clear();
        self.streams += 1;
        self.requests = 0;
        self.opened = None;
    }

    fn told(&mut self, tell: &mut Tell) -> bool {
        let wants = self.wants.entry(tell.type_url.clone()).or_default();
        for name in &tell.names {
            if tell.leave {
                wants.remove(name)
            } else {
                wants.insert(name.clone())
            };
        }
        let returns = tell.names.iter().any(|name| self.left.contains(name));
        if self.wrong == Wrong::DropsOnReturn {
            if tell.leave && tell.names.len() == 1 {
                self.left.extend(tell.names.iter().cloned());
            } else if returns && !is_barrier(&tell.type_url) {
                self.waits.extend(tell.names.iter().map(|name| (tell.type_url.clone(), name.clone(), None)));
                self.left.clear();
            }
        }
        if tell.leave && self.wrong == Wrong::NeverComesBackToName {
            self.left.extend(tell.names.iter().cloned());
        }
        match self.wrong {
            Wrong::NeverComesBackToName => tell.leave || !returns,
            Wrong::NeverUnsubscribes => !tell.leave,
            _ => true,
        }
    }

    fn hears(&mut self, response: &mut Response) -> bool {
        let own = response.clone();
        let wants = self.wants.get(&response.type_url).cloned().unwrap_or_default();
        let wanted = |name: &String| wants.contains(name) || wants.contains("*");
        let before = self.heard.get(&response.type_url).is_some_and(|heard| !heard.is_empty());
        let hears = match self.wrong {
            Wrong::AcksNothing => is_barrier(&response.type_url),
            Wrong::AnswersFirstOnly => !before || is_barrier(&response.type_url),
            Wrong::ReadsEight => {
                let others = self.heard.iter().filter(|(of, _)| !is_barrier(of));
                is_barrier(&response.type_url) || others.map(|(_, heard)| heard.len()).all(|count| count < 8)
            }
            Wrong::IgnoresAnyType => {
                response.resources.iter_mut().for_each(|item| item.any_type.clone_from(&response.type_url));
                true
            }
            Wrong::CannotUnwrap => {
                let unwrapped = |item: &mut xds_conformance::message::Item| {
                    item.any_type = if item.wrapped { "Resource".into() } else { item.any_type.clone() };
                };
                response.resources.iter_mut().for_each(unwrapped);
                true
            }
            Wrong::AcksDuplicates => {
                let mut seen = BTreeSet::new();
                response.resources.retain(|item| seen.insert(item.name.clone()));
                true
            }
            Wrong::NeverDeletes => {
                response.removed.clear();
                true
            }
            Wrong::DiesOfEmptyNames => {
                self.dead |= response.resources.iter().any(|item| item.name.is_empty());
                !self.dead
            }
            Wrong::NoTtl => {
                response.resources.iter_mut().for_each(|item| item.ttl = None);
                true
            }
            Wrong::SilentOnceLeft => !wants.is_empty(),
            Wrong::RemovedForEver => {
                let left = &self.left;
                response.resources.retain(|item| !left.contains(&item.name));
                true
            }
            Wrong::AcksUnknownTypes if response.type_url.contains("Unknown") => {
                let (type_url, nonce, version) = (own.type_url.clone(), own.nonce.clone(), own.version.clone());
                self.old = Some(Request { type_url, nonce, version, ..Request::default() });
                true
            }
            Wrong::AnswersOldStream if !is_barrier(&response.type_url) => {
                let (type_url, nonce, version) = (own.type_url.clone(), own.nonce.clone(), own.version.clone());
                self.old = Some(Request { type_url, nonce, version, ..Request::default() });
                self.old_stream = self.streams;
                true
            }
            _ => true,
        };
        if !is_barrier(&own.type_url) {
            self.heard_version.clone_from(&own.version);
        }
        if self.wrong == Wrong::TakesUnrequested {
            let more: Vec<String> =
                own.resources.iter().map(|item| item.name.clone()).filter(|name| !wanted(name)).collect();
            self.wants.entry(own.type_url.clone()).or_default().extend(more);
        }
        let claims = self.claims.entry(own.type_url.clone()).or_default();
        claims.extend(own.resources.iter().map(|item| (item.name.clone(), item.version.clone())));
        self.heard.entry(own.type_url.clone()).or_default().push(own);
        hears
    }

    fn says(&mut self, mut request: Request) -> Vec<Request> {
        let type_url = request.type_url.clone();
        if is_barrier(&type_url) && !matches!(self.wrong, Wrong::NoNode | Wrong::AsksForNothing) {
            let late = {
                let late = self.wrong == Wrong::AcksUnknownTypes;
                self.old.take_if(|_| late)
            };
            return vec![request].into_iter().chain(late).collect();
        }
        let delta = request.version.is_empty() && (!request.unsubscribe.is_empty() || !request.initial.is_empty());
        let response = self.of(&request).cloned();
        let first = !self.asked.contains_key(&type_url);
        let again = response.is_some() && !self.answered.insert(request.nonce.clone());
        let nothing_heard = self.heard.get(&type_url).is_none_or(Vec::is_empty);
        if self.wrong == Wrong::OneRequestAtATime && !first && nothing_heard {
            return Vec::new();
        }
        let asked = self.asked.entry(type_url.clone()).or_default();
        let earlier = asked.clone(); // before this request
        asked.extend(request.names.iter().cloned());
        let wants = self.wants.get(&type_url).cloned().unwrap_or_default();
        let last = self.last.get(&type_url).cloned().unwrap_or_default();
        let nack = request.error.is_some();
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>();
        let mut extra = Vec::new();
        let names = request.names.iter().cloned().collect();
        let early = self.early.entry(type_url.clone()).or_insert(names).clone();
        match self.wrong {
            Wrong::NoNode => request.node = request.node.filter(|_| self.streams < 2),
            Wrong::KeepsNonce if first => request.nonce.clone_from(&last.nonce),
            Wrong::NewStreamKeepsError if first => request.error = self.error.clone(),
            Wrong::AsksForNothing if self.requests == 0 && self.streams > 1 => {
                let types = self.last.keys().filter(|of| !is_barrier(of));
                extra.extend(types.map(|of| Request { type_url: of.clone(), ..Request::default() }));
            }
            Wrong::LegacyForEver => request.names.retain(|name| name != "*"),
            Wrong::LeavesAll if !request.unsubscribe.is_empty() => request.unsubscribe.push("*".into()),
            Wrong::AckWithOldVersion if !again && !nack => request.version.clone_from(&last.version),
            Wrong::NackHasNewVersion if nack => {
                request.version = response.iter().map(|response| response.version.clone()).collect();
            }
            Wrong::NackHasVersionAtFirst if nack && request.version.is_empty() => {
                request.version = response.iter().map(|response| response.version.clone()).collect();
            }
            Wrong::AnswersTwice if response.is_some() && !again => extra.push(request.clone()),
            Wrong::NackWithoutError => request.error = None,
            Wrong::ErrorStays if response.is_some() => request.error = request.error.or(self.error.clone()),
            Wrong::RepeatsError if again || (response.is_none() && !first) => request.error = self.error.clone(),
            Wrong::EmptyError if nack => request.error = Some((0, String::new())),
            Wrong::NewNamesOnly if !first => request.names.retain(|name| !earlier.contains(name)),
            Wrong::ForgetsNonce if again => request.nonce.clear(),
            Wrong::OneNonce if response.is_some() && !self.last_nonce.is_empty() => {
                request.nonce.clone_from(&self.last_nonce);
            }
            Wrong::SubscribesTwice if !first && !request.names.is_empty() => request.names = list(&wants),
            Wrong::NonceInSpontaneous if response.is_none() && !first => request.nonce.clone_from(&last.nonce),
            Wrong::RejectsEmpty
                if response.as_ref().is_some_and(|of| of.resources.is_empty() && of.removed.is_empty()) =>
            {
                request.error = Some((3, "empty".into()));
            }
            Wrong::NacksUnknownRemovals
                if response.as_ref().is_some_and(|of| of.removed.iter().any(|name| !wants.contains(name))) =>
            {
                request.error = Some((3, "unknown".into()));
            }
            Wrong::JudgesUnrequested
                if response.as_ref().is_some_and(|of| {
                    of.resources.iter().any(|item| item.body.as_ref().is_some_and(|body| !resource::decodes(body)))
                }) =>
            {
                request.error = Some((3, "bad".into()));
            }
            Wrong::ForgetsVersion if first => request.version.clear(),
            Wrong::ClaimsNothing => request.initial.clear(),
            Wrong::ClaimsRejected if first && !request.version.is_empty() => {
                request.version.clone_from(&self.heard_version);
            }
            Wrong::ClaimsRejected | Wrong::ClaimsRemoved if first => {
                let claims = self.claims.get(&type_url).cloned().unwrap_or_default();
                request.initial =
                    claims.into_iter().filter(|(name, _)| wants.contains(name) || wants.contains("*")).collect();
            }
            Wrong::ClaimsAlways if !first => request.initial.extend([("a".to_owned(), "r1".to_owned())]),
            Wrong::TakesUnrequested if !request.names.is_empty() || delta => {
                request.names = list(&wants);
            }
            Wrong::ForgetsLateNames if first && self.streams > 1 => {
                request.names.retain(|name| early.contains(name));
            }
            Wrong::LastOnDemandOnly if !first && !request.names.is_empty() && response.is_none() => {
                request
                    .unsubscribe
                    .extend(earlier.iter().filter(|name| *name != "*" && !request.names.contains(name)).cloned());
            }
            _ => {}
        }
        if nack {
            self.error = request.error.clone();
        } else if response.is_some() && !again {
            self.error = self
                .error
                .take()
                .filter(|_| matches!(self.wrong, Wrong::ErrorStays | Wrong::RepeatsError | Wrong::NewStreamKeepsError));
        }
        if !request.nonce.is_empty() {
            self.last_nonce.clone_from(&request.nonce);
        }
        self.requests += 1;
        self.last.insert(type_url, request.clone());
        let old = self.old.take_if(|old| self.old_stream < self.streams && old.type_url == request.type_url);
        extra.push(request);
        extra.extend(old.filter(|_| self.wrong == Wrong::AnswersOldStream));
        extra
    }

    fn takes(&mut self, body: &[u8]) -> bool {
        self.wrong == Wrong::NackWithoutError || resource::decodes(body)
    }

    fn reports(&mut self, event: &mut Event) -> bool {
        match (self.wrong, event) {
            (Wrong::NoTimer | Wrong::NeverDeletes, Event::Missing { .. }) => false,
            (Wrong::RemovedForEver, Event::Apply { removed, .. }) => {
                self.left.extend(removed.iter().cloned());
                true
            }
            (Wrong::DeletesPartial, Event::Apply { type_url, names, removed })
                if type_url == resource::type_url("eds") =>
            {
                let wants = self.wants.get(type_url).cloned().unwrap_or_default();
                removed.extend(wants.into_iter().filter(|name| !names.contains(name)));
                true
            }
            (Wrong::NeverDeletes | Wrong::NoTtl, Event::Apply { removed, .. }) => {
                removed.clear();
                true
            }
            _ => true,
        }
    }

    fn adds(&mut self, now: Duration) -> Vec<Event> {
        self.waits.iter_mut().for_each(|(_, _, since)| _ = since.get_or_insert(now));
        let over = |since: &Option<Duration>| since.is_some_and(|since| now >= since + Duration::from_secs(15));
        let (missing, waits) = std::mem::take(&mut self.waits).into_iter().partition(|(_, _, since)| over(since));
        self.waits = waits;
        let missing: Vec<_> = missing;
        if !missing.is_empty() {
            let event = |(type_url, name, _)| Event::Missing { type_url, name };
            return missing.into_iter().map(event).collect();
        }
        if self.wrong != Wrong::TimerForHeld || self.streams < 2 {
            return Vec::new();
        }
        let opened = *self.opened.get_or_insert(now);
        if now < opened + Duration::from_secs(15) {
            return Vec::new();
        }
        let held = self.wants.iter().filter(|(of, _)| !is_barrier(of) && !self.heard.contains_key(*of));
        let missing = |(of, names): (&String, &BTreeSet<String>)| {
            names.iter().map(|name| Event::Missing { type_url: of.clone(), name: name.clone() }).collect::<Vec<_>>()
        };
        let events = held.flat_map(missing).collect();
        self.opened = Some(now + Duration::from_secs(1_000));
        events
    }

    fn comes_back(&mut self) -> Return {
        match self.wrong {
            Wrong::NoBackoff => Return::AtOnce,
            Wrong::NeverReturns => Return::Never,
            _ => Return::Later,
        }
    }

    fn dies(&mut self) -> bool {
        self.dead && matches!(self.wrong, Wrong::DiesOfEmptyNames)
    }
}
