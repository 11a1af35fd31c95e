//! The kit's end of all streams of one client: the events, the responses, and the referees. Stories are played in a
//! session, one after the other, while the client stays the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::peer::{ClientPeer, End, Event, Tell};
use super::reference::Reference;
use crate::message::{Node, Request, Response, Variant};
use crate::referee::{ClientReferee, Complaint, Merit, Rule, Wanted};
use crate::resource;
use crate::run::{StreamId, Trouble};

/// The number of events after which one wait is given up, because the client never stops.
const MOST_EVENTS: usize = 2_000;

/// How long to wait for events.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timing {
    /// The wait for an event that must come.
    pub answer: Duration,
    /// The wait for an event that must not come.
    pub quiet: Duration,
    /// The wait for the next stream.
    pub again: Duration,
}

/// Something that the client did, in order.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// A request, and whether it was the first of its type on its stream.
    Request { first: bool, request: Request },
    /// Names that are applied, and names that are removed.
    Apply { type_url: String, names: Vec<String>, removed: Vec<String> },
    /// A name that does not exist, and when the client reported it.
    Missing { type_url: String, name: String, at: Duration },
    /// A stream opened.
    Opened { at: Duration },
    /// The client ended a stream.
    Closed,
}

/// A stream that is open.
pub(super) struct Stream {
    single: Option<&'static str>,
    pub(super) referee: ClientReferee,
}

/// A resource by which the client shows that it has read everything before.
pub(super) struct Barrier {
    pub(super) type_url: String,
    pub(super) name: String,
    pub(super) revision: u64,
}

/// The kit as the server of one client.
pub struct Session<'p> {
    pub(super) peer: &'p mut dyn ClientPeer,
    pub(super) variant: Variant,
    pub(super) timing: Timing,
    pub(super) streams: BTreeMap<StreamId, Stream>,
    /// The referees of the last streams that ended, by the type of the stream.
    before: BTreeMap<Option<&'static str>, ClientReferee>,
    pub(super) log: Vec<Entry>,
    pub(super) wanted: Wanted,
    /// The node that was sent last.
    pub(super) node: Option<Node>,
    /// The types of which the client accepted a response.
    pub(super) accepted: BTreeSet<String>,
    /// The types of which the client rejects good responses, each with its error.
    pub(super) unusable: BTreeMap<String, String>,
    /// The types of which the client asks for each resource on a stream of its own.
    pub(super) spread: BTreeSet<String>,
    /// Whether the client reports what it applies.
    pub(super) says_apply: bool,
    pub(super) barrier: Option<Barrier>,
    /// The resources that make the client ask, if it cannot be told.
    pub(super) reference: Option<Reference>,
    nonces: u64,
    /// The longest time that an answer took.
    pub(super) slowest: Duration,
    pub(super) complaints: Vec<Complaint>,
    pub(super) ladder: Vec<String>,
    pub(super) prefix: String,
    /// Whether the client opened a stream of this variant, and of the other.
    pub(super) opened: (bool, bool),
    /// Why nothing more can be asked of this client.
    pub(super) gone: Option<String>,
}

impl<'p> Session<'p> {
    /// Begins a session.
    pub fn new(peer: &'p mut dyn ClientPeer, variant: Variant, timing: Timing) -> Self {
        Self {
            peer,
            variant,
            timing,
            streams: BTreeMap::new(),
            before: BTreeMap::new(),
            log: Vec::new(),
            wanted: Wanted::new(),
            node: None,
            accepted: BTreeSet::new(),
            unusable: BTreeMap::new(),
            spread: BTreeSet::new(),
            says_apply: false,
            barrier: None,
            reference: None,
            nonces: 0,
            slowest: Duration::ZERO,
            complaints: Vec::new(),
            ladder: Vec::new(),
            prefix: String::new(),
            opened: (false, false),
            gone: None,
        }
    }

    /// Returns whether the client uses only the other variant.
    pub fn is_of_other_variant(&self) -> bool {
        self.opened == (false, true)
    }

    /// Returns the longest time that an answer took.
    pub fn slowest(&self) -> Duration {
        self.slowest
    }

    /// Changes the patience.
    pub fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    /// Returns whether a type is that of the barrier.
    pub(super) fn is_barrier(&self, type_url: &str) -> bool {
        self.barrier.as_ref().is_some_and(|barrier| barrier.type_url == type_url)
    }

    /// Tells the client what to ask for.
    pub(super) fn tell(&mut self, type_url: &str, names: &[String], leave: bool) -> Result<(), Trouble> {
        self.streams.values_mut().for_each(|stream| stream.referee.unsettle());
        self.before.values_mut().for_each(ClientReferee::unsettle);
        if leave {
            self.streams.values_mut().for_each(|stream| stream.referee.leaves(type_url));
        }
        if self.reference.is_some() && type_url != resource::type_url("eds") {
            return Err(Trouble(format!("nothing makes the client ask for {}", resource::short(type_url))));
        }
        let wanted = self.wanted.entry(type_url.to_owned()).or_default();
        let sign = if leave { '-' } else { '+' };
        for name in names {
            if leave {
                wanted.remove(name)
            } else {
                wanted.insert(name.clone())
            };
        }
        let list: Vec<String> = names.iter().map(|name| format!("{sign}{}", self.short_name(name))).collect();
        self.ladder.push(format!("want {} {}", resource::short(type_url), list.join(" ")));
        if let Some(reference) = &mut self.reference {
            let response = reference.want(names, leave, self.variant);
            self.serve(response);
            return Ok(());
        }
        self.peer.tell(&Tell { type_url: type_url.to_owned(), names: names.to_vec(), leave })
    }

    /// Sends a response on the stream on which its type is asked for. Fills in the nonce, unless it is given.
    pub(super) fn send(&mut self, response: &mut Response, nonce: Option<&str>, merit: Merit) -> bool {
        let Some(id) = self.stream_of(&response.type_url) else { return false };
        self.nonces += 1;
        response.nonce = nonce.map_or_else(|| format!("n{}", self.nonces), str::to_owned);
        let line = self.write_response(response);
        self.ladder.push(format!("S> {line}"));
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.referee.response_with(response, merit);
        }
        self.peer.send(id, &response.encode(self.variant));
        true
    }

    /// Sends a response that makes the client ask.
    fn serve(&mut self, mut response: Response) {
        if self.is_asked(&response.type_url) {
            response.version = self.next_version();
            self.send(&mut response, None, Merit::Good);
        }
    }

    /// Waits until the kit can make the client ask.
    pub(super) fn wait_reference(&mut self) {
        if self.reference.as_ref().is_some_and(Reference::asks_for_clusters) {
            self.wait_asked(resource::type_url("cds"));
        }
    }

    /// Returns the next version of a type.
    pub(super) fn next_version(&self) -> String {
        format!("v{}", self.nonces + 1)
    }

    /// Returns the newest stream on which a type is asked for, or else the newest aggregated stream.
    pub(super) fn stream_of(&self, type_url: &str) -> Option<StreamId> {
        let newest = |is: &dyn Fn(&Stream) -> bool| self.streams.iter().rev().find(|(_, stream)| is(stream));
        let asked = newest(&|stream| stream.referee.is_asked(type_url));
        asked.or_else(|| newest(&|stream| stream.single.is_none())).map(|(id, _)| *id)
    }

    /// Returns whether a type is asked for on an open stream.
    pub(super) fn is_asked(&self, type_url: &str) -> bool {
        self.streams.values().any(|stream| stream.referee.is_asked(type_url))
    }

    /// Returns whether a name is asked for on an open stream, by itself or by the wildcard.
    pub(super) fn asks_for(&self, type_url: &str, name: &str) -> bool {
        self.streams.values().any(|stream| {
            let names = stream.referee.names(type_url);
            names.contains(name) || names.contains("*")
        })
    }

    /// Waits until a type is asked for. Returns whether it is.
    pub(super) fn wait_asked(&mut self, type_url: &str) -> bool {
        self.wait_until(self.timing.again, |session| session.is_asked(type_url))
    }

    /// Takes events until a condition holds. Returns whether it does.
    pub(super) fn wait_until(&mut self, wait: Duration, is: impl Fn(&Self) -> bool) -> bool {
        let end = self.peer.now() + wait;
        for _ in 0..MOST_EVENTS {
            if is(self) {
                return true;
            }
            let left = end.saturating_sub(self.peer.now());
            if self.gone.is_some() || left.is_zero() {
                return false;
            }
            match self.peer.poll(left) {
                Some(event) => self.take(event),
                None => return is(self),
            }
        }
        is(self)
    }

    /// Takes events until there are none for a while.
    pub(super) fn drain(&mut self, quiet: Duration) {
        for _ in 0..MOST_EVENTS {
            match self.peer.poll(quiet) {
                Some(event) => self.take(event),
                None => return,
            }
        }
        self.ladder.push(format!("-- gave up after {MOST_EVENTS} events"));
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, time: Duration) {
        self.ladder.push(format!("-- {} ms", time.as_millis()));
        self.wait_until(time, |_| false);
    }

    /// Ends all streams.
    pub(super) fn cut(&mut self, end: End) {
        self.ladder.push(format!("cut {end:?}"));
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            self.peer.end(id, end);
            self.leave(id);
        }
    }

    fn leave(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.remove(&id) {
            let mut next = stream.referee.next();
            self.before.get(&stream.single).into_iter().for_each(|before| next.learn(before));
            self.before.insert(stream.single, next);
        }
    }

    /// Takes an event: the referee judges it, and a step may look at it later.
    pub(super) fn take(&mut self, event: Event) {
        match event {
            Event::Opened { stream, variant, type_url } => {
                self.opened.0 |= variant == self.variant;
                self.opened.1 |= variant != self.variant;
                let before = self.before.get(&type_url).filter(|_| variant == self.variant);
                let referee = before.map_or_else(|| ClientReferee::new(variant), Clone::clone);
                self.streams.insert(stream, Stream { single: type_url, referee });
                let of = type_url.map_or("ADS", resource::short);
                self.ladder.push(format!("-- stream {stream}, {of}"));
                self.log.push(Entry::Opened { at: self.peer.now() });
            }
            Event::Request(id, request) => self.request(id, request),
            Event::Malformed(id, why) => self.ladder.push(format!("C> no request on stream {id}: {why}")),
            Event::Closed(id, why) => {
                self.ladder.push(format!("C> ends stream {id}: {why}"));
                self.leave(id);
                self.log.push(Entry::Closed);
            }
            Event::Apply { type_url, names, removed } => {
                self.says_apply = true;
                let line = format!("apply {} {{{}}}", resource::short(&type_url), self.short_names(&names));
                let gone =
                    if removed.is_empty() { String::new() } else { format!(" rm[{}]", self.short_names(&removed)) };
                self.ladder.push(format!("   {line}{gone}"));
                self.log.push(Entry::Apply { type_url, names, removed });
            }
            Event::Missing { type_url, name } => {
                self.ladder.push(format!("   missing {} {}", resource::short(&type_url), self.short_name(&name)));
                self.log.push(Entry::Missing { type_url, name, at: self.peer.now() });
            }
            Event::Gone(why) => {
                self.ladder.push(format!("the client is gone: {why}"));
                self.gone.get_or_insert(format!("the client is gone: {why}"));
            }
        }
    }

    fn request(&mut self, id: StreamId, mut request: Request) {
        let elsewhere =
            |(other, stream): (&StreamId, &Stream)| *other != id && stream.referee.is_asked(&request.type_url);
        if self.streams.iter().any(elsewhere) {
            self.spread.insert(request.type_url.clone());
        }
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if let (true, Some(only)) = (request.type_url.is_empty(), stream.single) {
            only.clone_into(&mut request.type_url);
        }
        if let Some(node) = &request.node {
            self.node = Some(node.clone());
        }
        let first = !stream.referee.is_asked(&request.type_url);
        let complaints = stream.referee.request(&request);
        let line = self.write_request(&request);
        self.ladder.push(format!("C> {line}"));
        if request.error.is_none() && !request.nonce.is_empty() && !first {
            self.accepted.insert(request.type_url.clone());
        }
        for complaint in complaints {
            if complaint.rule == Rule::GoodRejected && !self.accepted.contains(&complaint.type_url) {
                let error = request.error.as_ref().map(|(_, message)| message.clone()).unwrap_or_default();
                self.unusable.entry(complaint.type_url.clone()).or_insert(error);
            } else {
                self.complain(complaint);
            }
        }
        let mut serves = None;
        if Reference::serves(&request.type_url) {
            serves = self.reference.as_mut().and_then(|reference| reference.request(&request, first, self.variant));
        }
        self.log.push(Entry::Request { first, request });
        serves.into_iter().for_each(|response| self.serve(response));
    }

    pub(super) fn complain(&mut self, complaint: Complaint) {
        // No single stream has all names, and the kit does not send each resource on the stream that asks for it.
        let of_one_stream =
            [Rule::Names, Rule::NamesUnwanted, Rule::BadAccepted, Rule::NotAnswered].contains(&complaint.rule);
        if of_one_stream && self.spread.contains(&complaint.type_url) {
            return;
        }
        self.ladder.push(format!("   !! {complaint}"));
        self.complaints.push(complaint);
    }
}
