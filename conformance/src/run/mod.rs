//! Plays a story against a [`Peer`], under the eyes of the referee.

mod beside;
mod expect;
mod peer;
mod send;
mod stream;
mod verdict;
mod walk;
mod witness;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

pub use self::peer::{Event, Op, Peer, StreamId, Trouble, Wait};
use self::stream::Stream;
pub use self::verdict::{Outcome, Verdict, Walked};
use crate::message::{Response, Variant};
use crate::referee::{Complaint, Level, ServerReferee, World};
use crate::resource::{self, Put};
use crate::story::{Change, Step, Story, To};

/// The number of messages after which one step is given up, because the peer never stops.
const MOST_MESSAGES: usize = 400;
/// The number of events of all streams after which one step is given up.
const MOST_EVENTS: usize = 100_000;

/// Why a story ends early.
#[derive(Debug)]
enum Stop {
    /// The sentence is not kept.
    Fail(String),
    /// The result could not be determined.
    Inconclusive(String),
    /// The control or the transport failed, which is no choice of the peer's.
    Trouble(String),
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble.0)
    }
}

/// A story that is being played, with its own names: `a` is `PREFIXa` on the wire.
pub struct Runner {
    story: Arc<Story>,
    variant: Variant,
    /// The type that `T` stands for.
    of: String,
    prefix: String,
    world: World,
    /// Without a control: the resources that the server has.
    given: Option<Given>,
    /// The changes that no witness has seen.
    unseen: Vec<Op>,
    streams: BTreeMap<usize, Stream>,
    current: usize,
    /// The state of the streams before the last cut, by number: the kit's memory by type, and the referee.
    before: BTreeMap<usize, (BTreeMap<String, stream::OfType>, ServerReferee)>,
    /// Whether the story is that of a walk: the first complaint ends it, and a step that cannot be done is left out.
    is_walk: bool,
    bound: BTreeMap<String, Vec<Response>>,
    complaints: Vec<Complaint>,
    notes: Vec<String>,
    ladder: Vec<String>,
}

impl Runner {
    /// Prepares a story. `of` is the type that `T` stands for, `prefix` begins all names of the run.
    pub fn new(story: Arc<Story>, variant: Variant, of: &str, prefix: &str) -> Self {
        Self {
            story,
            variant,
            of: of.to_owned(),
            prefix: prefix.to_owned(),
            world: World::controlled(prefix),
            given: None,
            unseen: Vec::new(),
            streams: BTreeMap::new(),
            current: 1,
            before: BTreeMap::new(),
            is_walk: false,
            bound: BTreeMap::new(),
            complaints: Vec::new(),
            notes: Vec::new(),
            ladder: Vec::new(),
        }
    }

    /// Makes the story use resources that the server already has, because there is no control.
    #[must_use]
    pub fn with_given(mut self, names: &[String]) -> Self {
        self.world = World::unknown();
        self.given = Some(Given { free: names.to_vec(), ..Given::default() });
        self
    }

    /// Plays the story. Streams stay open: see [`tail`](Self::tail).
    pub fn play(&mut self, peer: &mut dyn Peer) -> Outcome {
        let story = self.story.clone();
        for (line, step) in &story.steps {
            match self.step(peer, step) {
                Ok(()) => {}
                // A choice that the text leaves open cannot be wrong, and the steps that lead to it cannot be demanded.
                Err(Stop::Fail(why) | Stop::Inconclusive(why)) if story.level == Level::May => {
                    self.notes.push(why);
                    return self.judge();
                }
                Err(Stop::Fail(why)) if self.given.as_ref().is_some_and(|given| given.moves) => {
                    let why = format!("line {line}: the server's content changes by itself; {why}");
                    return self.outcome(Verdict::Inconclusive, why);
                }
                Err(Stop::Fail(why)) => return self.outcome(Verdict::Fail, format!("line {line}: {why}")),
                Err(Stop::Inconclusive(why) | Stop::Trouble(why)) => {
                    return self.outcome(Verdict::Inconclusive, format!("line {line}: {why}"));
                }
            }
        }
        self.judge()
    }

    /// Reads the messages that came since, to the end of the run, and judges again.
    pub fn tail(&mut self, peer: &mut dyn Peer) -> Outcome {
        self.ladder.push("-- after the story".into());
        self.drain(peer);
        self.judge()
    }

    /// Removes the resources that the story put, and closes its streams.
    pub fn clean(&mut self, peer: &mut dyn Peer) {
        let types = resource::TYPES.map(|(_, type_url)| type_url);
        let all = types.iter().flat_map(|type_url| self.world.names(type_url).map(move |name| (*type_url, name)));
        let left = all.filter(|(type_url, name)| self.world.states(type_url, name).last() != Some(&None));
        let ops: Vec<Op> =
            left.map(|(type_url, name)| Op::Delete { type_url: type_url.into(), name: name.into() }).collect();
        if !ops.is_empty() {
            _ = peer.control(&ops); // a server that keeps these resources only has more to send next time
        }
        for stream in self.streams.values().filter(|stream| stream.closed.is_none()) {
            peer.close(stream.id);
        }
    }

    /// Returns the conversation so far.
    pub fn ladder(&self) -> &[String] {
        &self.ladder
    }

    /// Returns the complaints so far.
    pub fn complaints(&self) -> &[Complaint] {
        &self.complaints
    }

    fn judge(&self) -> Outcome {
        let level = self.story.level;
        let counts = |complaint: &&Complaint| {
            let strong = complaint.rule.level() == Level::Must || level != Level::Must;
            strong && level != Level::May && verdict::own_case(complaint.rule).is_none_or(|id| id == self.story.id)
        };
        let moves = self.given.as_ref().is_some_and(|given| given.moves);
        match self.complaints.iter().find(counts) {
            Some(complaint) if moves => {
                let why = format!("the server's content changes by itself; {complaint}");
                self.outcome(Verdict::Inconclusive, why)
            }
            Some(complaint) => self.outcome(Verdict::Fail, complaint.to_string()),
            None => self.outcome(Verdict::Pass, self.notes.join("; ")),
        }
    }

    fn outcome(&self, verdict: Verdict, why: String) -> Outcome {
        Outcome { verdict, why, ladder: self.ladder.clone() }
    }

    fn step(&mut self, peer: &mut dyn Peer, step: &Step) -> Result<(), Stop> {
        match step {
            Step::World { changes, batch } => return self.change(peer, changes, *batch),
            Step::Restart => {
                self.ladder.push("world restart".into());
                self.streams.clear();
                self.before.clear();
                self.unseen.clear();
                // The server may have kept any resource: nothing is known of a resource until it is put again.
                self.world = World::unknown();
                peer.control(&[Op::Restart])?;
            }
            Step::Stream(number) => self.current = *number,
            Step::Cut => {
                if let Some(stream) = self.streams.remove(&self.current) {
                    peer.close(stream.id);
                    self.before.insert(self.current, (stream.types, stream.referee));
                    self.ladder.push("cut".into());
                }
            }
            Step::Send(send) => return self.send(peer, send),
            Step::Bytes(bytes) => {
                let stream = self.stream(peer)?;
                peer.send_bytes(stream, bytes)?;
                self.ladder.push(format!("C> {} bytes that are no message", bytes.len()));
            }
            Step::Answer { nack } => return self.answer_all(peer, *nack),
            Step::AnswerOne { type_name, nack } => return self.answer_one(peer, type_name, *nack),
            Step::Hear => self.hear(peer),
            Step::Must(expected) => return self.must(peer, expected),
            Step::MustBeside { expected, type_name, name } => {
                return self.must_beside(peer, expected, type_name, name);
            }
            Step::Exactly(expected) => return self.exactly(peer, expected),
            Step::MustNot(expected) => return self.must_not(peer, expected),
            Step::Maybe(expected) => return self.maybe(peer, expected),
            Step::Order(types) => return self.order(peer, types),
            Step::Lives => {
                self.drain(peer);
                if let Some(status) = self.streams.get(&self.current).and_then(|stream| stream.closed.as_ref()) {
                    return Err(Stop::Fail(format!("the stream was ended: {status}")));
                }
            }
            Step::MayClose => {
                self.drain(peer);
                let closed = self.streams.get(&self.current).and_then(|stream| stream.closed.clone());
                self.notes
                    .push(closed.map_or("the stream stays".into(), |status| format!("the stream ends: {status}")));
            }
            Step::Rest => return self.rest(peer),
            Step::Wait(time) => peer.pass(*time),
        }
        Ok(())
    }

    fn change(&mut self, peer: &mut dyn Peer, changes: &[Change], batch: bool) -> Result<(), Stop> {
        if let Some(given) = &mut self.given {
            let took = changes.iter().all(|change| given.take(&change.name));
            self.ladder.push("world: resources that the server has already".into());
            return if took { Ok(()) } else { Err(Stop::Inconclusive("the server has too few resources".into())) };
        }
        let ops: Vec<Op> = changes.iter().map(|change| self.op(change)).collect();
        for ops in if batch { vec![&ops[..]] } else { ops.chunks(1).collect() } {
            // The referees learn of the change first: a push may be faster than the control's answer.
            for op in ops {
                self.ladder.push(format!("world {}", self.write_op(op)));
                self.world_changes(op);
            }
            peer.control(ops)?;
            self.unseen.extend_from_slice(ops);
        }
        Ok(())
    }

    fn world_changes(&mut self, op: &Op) {
        let referees = self.streams.values_mut().map(|stream| &mut stream.referee);
        match op {
            Op::Put(put) => {
                self.world.put(&put.type_url, &put.name, put.revision);
                referees.for_each(|referee| referee.put(&put.type_url, &put.name, put.revision));
            }
            Op::Delete { type_url, name } => {
                self.world.delete(type_url, name);
                referees.for_each(|referee| referee.delete(type_url, name));
            }
            Op::Clear => {
                for (_, type_url) in resource::TYPES {
                    let names: Vec<String> = self.world.names(type_url).map(str::to_owned).collect();
                    names.iter().for_each(|name| self.world.delete(type_url, name));
                    for stream in self.streams.values_mut() {
                        names.iter().for_each(|name| stream.referee.delete(type_url, name));
                    }
                }
            }
            // The server decides whether a resource with an error, or an unknown resource, exists.
            Op::Error { type_url, name, .. } | Op::Unknown { type_url, name } => {
                self.world.forget(type_url, name);
                referees.for_each(|referee| referee.forget(type_url, name));
            }
            Op::Restart => {}
        }
    }

    fn op(&self, change: &Change) -> Op {
        let (type_url, name) = (self.type_url(&change.type_name), self.name(&change.name));
        match &change.to {
            To::Put { revision, ttl, alias } => {
                let alias = alias.as_ref().map(|alias| self.name(alias));
                Op::Put(Put { type_url, name, revision: *revision, ttl: *ttl, alias })
            }
            To::Delete => Op::Delete { type_url, name },
            To::Error(code) => Op::Error { type_url, name, code: *code },
            To::Unknown => Op::Unknown { type_url, name },
        }
    }

    fn write_op(&self, op: &Op) -> String {
        match op {
            Op::Put(put) => {
                format!("put {} {} {}", resource::short(&put.type_url), self.short_name(&put.name), put.revision)
            }
            Op::Delete { type_url, name } => format!("delete {} {}", resource::short(type_url), self.short_name(name)),
            Op::Error { type_url, name, code } => {
                format!("error {} {} {code}", resource::short(type_url), self.short_name(name))
            }
            Op::Unknown { type_url, name } => {
                format!("unknown {} {}", resource::short(type_url), self.short_name(name))
            }
            Op::Clear => "clear".into(),
            Op::Restart => "restart".into(),
        }
    }

    /// Returns the type URL of a word of the story.
    fn type_url(&self, word: &str) -> String {
        if word == "T" { self.of.clone() } else { resource::type_url(word).to_owned() }
    }

    /// Returns the name on the wire.
    fn name(&self, name: &str) -> String {
        let given = self.given.as_ref().and_then(|given| given.taken.get(name));
        match name.strip_prefix("xdstp:") {
            _ if given.is_some() => given.cloned().unwrap_or_default(),
            _ if name == "*" => name.to_owned(),
            Some(_) => name.replacen("/d/", &format!("/{}d/", self.prefix), 1),
            None => format!("{}{name}", self.prefix),
        }
    }

    /// Returns the name as the story has it.
    fn short_name<'n>(&self, name: &'n str) -> &'n str {
        name.strip_prefix(self.prefix.as_str()).unwrap_or(name)
    }

    /// Returns whether a name is of this run.
    fn is_own(&self, name: &str) -> bool {
        let given = || self.given.iter().any(|given| given.taken.values().any(|taken| taken == name));
        name.contains(self.prefix.as_str()) || given()
    }
}

/// The resources of a server that the kit does not control.
#[derive(Default)]
struct Given {
    /// Names of resources that no name of the story stands for yet.
    free: Vec<String>,
    /// The names of the story, and the resources that they stand for.
    taken: BTreeMap<String, String>,
    /// The contents that were seen last, by type and name: content that changes by itself proves nothing.
    seen: BTreeMap<(String, String), Option<Bytes>>,
    /// Whether a content changed.
    moves: bool,
}

impl Given {
    /// Lets a name of the story stand for a resource. Returns whether there was one left.
    fn take(&mut self, name: &str) -> bool {
        if !self.taken.contains_key(name) {
            let Some(free) = self.free.pop() else { return false };
            self.taken.insert(name.to_owned(), free);
        }
        true
    }

    /// Notes the contents of a response.
    fn see(&mut self, response: &Response) {
        for item in &response.resources {
            let key = (response.type_url.clone(), item.name.clone());
            let before = self.seen.insert(key, item.body.clone());
            self.moves |= before.is_some_and(|before| before != item.body);
        }
        // A resource that the server had is removed.
        self.moves |= response.removed.iter().any(|name| self.taken.values().any(|taken| taken == name));
    }
}
