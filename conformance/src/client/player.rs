//! Plays a story with a client, in a session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::peer::End;
use super::reference::Reference;
use super::session::{Entry, Session};
use super::story::{ClientStory, LONG, Step};
use super::suite::own_case;
use crate::message::Response;
use crate::referee::{Complaint, Level};
use crate::resource;
use crate::run::{Outcome, Trouble, Verdict};

/// A shorter delay counts as none.
const AT_ONCE: Duration = Duration::from_millis(10);

/// Why a story ends early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The sentence is not kept, as a message shows.
    Fail(String),
    /// An expected message did not come: a client that is only slow is not at fault.
    Late(String),
    /// The result could not be determined.
    Inconclusive(String),
    /// The client does not have the feature.
    Unsupported(String),
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        Self::Inconclusive(trouble.0)
    }
}

/// Returns the stop for a client that does not ask for a type. A client that cannot be told may have its reasons.
pub(super) fn not_asked(session: &Session<'_>, type_url: &str) -> Stop {
    let why = format!("the client does not ask for {}", resource::short(type_url));
    if session.reference.is_some() { Stop::Inconclusive(why) } else { Stop::Late(why) }
}

/// A story that is over.
pub struct Played {
    /// The outcome.
    pub outcome: Outcome,
    /// Whether the story failed because an expected message did not come.
    pub late: bool,
    /// The complaints of the referee meanwhile.
    pub complaints: Vec<Complaint>,
}

/// The progress of a story.
pub enum Progress {
    /// The story is over.
    Done(Box<Played>),
    /// The story waits for this time, which other stories may use.
    Waits(Duration),
}

/// A story that is being played with one type.
pub struct Player {
    pub(super) story: Arc<ClientStory>,
    /// The type that `T` stands for.
    pub(super) of: String,
    prefix: String,
    pub(super) bound: BTreeMap<String, Response>,
    /// The position in the log at which each bound response was sent.
    pub(super) bound_at: BTreeMap<String, usize>,
    /// The positions in the log of requests that a step demanded.
    pub(super) used: BTreeSet<usize>,
    /// By type: the position in the log from which a step looks.
    pub(super) marks: BTreeMap<String, usize>,
    /// By type: the position in the log at which the last response was sent.
    pub(super) sent_marks: BTreeMap<String, usize>,
    pub(super) start: usize,
    pub(super) notes: Vec<String>,
    /// Whether the client ended a stream on which it wanted nothing more.
    pub(super) ended_stream: bool,
    /// When the last request came that a step waited for.
    pub(super) asked_at: Duration,
    told: BTreeMap<String, BTreeSet<String>>,
    /// The revision of each name that was sent last.
    pub(super) revisions: BTreeMap<String, u64>,
    next: usize,
    ladder: usize,
    complaints: usize,
    is_long: bool,
}

impl Player {
    /// Prepares a story. `of` is the type URL that `T` stands for, `prefix` begins all names.
    pub fn new(story: Arc<ClientStory>, of: &str, prefix: &str) -> Self {
        Self {
            is_long: story.is_long(),
            story,
            of: of.to_owned(),
            prefix: prefix.to_owned(),
            bound: BTreeMap::new(),
            bound_at: BTreeMap::new(),
            used: BTreeSet::new(),
            revisions: BTreeMap::new(),
            marks: BTreeMap::new(),
            sent_marks: BTreeMap::new(),
            start: 0,
            notes: Vec::new(),
            ended_stream: false,
            asked_at: Duration::ZERO,
            told: BTreeMap::new(),
            next: 0,
            ladder: 0,
            complaints: 0,
        }
    }

    /// Plays the story to its end, long waits included.
    pub fn play(mut self, session: &mut Session<'_>) -> Played {
        loop {
            match self.go(session) {
                Progress::Done(played) => return *played,
                Progress::Waits(time) => session.pass(time),
            }
        }
    }

    /// Plays up to the next long wait, or to the end.
    pub fn go(&mut self, session: &mut Session<'_>) -> Progress {
        session.prefix.clone_from(&self.prefix);
        let story = self.story.clone();
        if self.next == 0 {
            (self.start, self.ladder) = (session.log.len(), session.ladder.len());
            self.complaints = session.complaints.len();
            session.wait_reference();
        }
        while let Some((line, step)) = story.steps.get(self.next) {
            self.next += 1;
            match step {
                Step::Wait(time) if *time >= LONG => return Progress::Waits(*time),
                _ => {}
            }
            let before = session.gone.is_some();
            if let Err(stop) = self.step(session, step) {
                return Progress::Done(Box::new(self.end(session, Some((*line, stop)))));
            }
            if session.gone.is_some() && !before {
                let stop = Stop::Fail(session.gone.clone().unwrap_or_default());
                return Progress::Done(Box::new(self.end(session, Some((*line, stop)))));
            }
        }
        Progress::Done(Box::new(self.end(session, None)))
    }

    /// Judges the story, and ends the client's subscriptions.
    fn end(&mut self, session: &mut Session<'_>, stop: Option<(usize, Stop)>) -> Played {
        if stop.is_none() && session.gone.is_none() {
            session.rest();
        }
        let failed = stop.is_some();
        let (mut verdict, mut why, late) = match stop {
            None => (Verdict::Pass, self.notes.join("; "), false),
            Some((line, Stop::Fail(why))) => (Verdict::Fail, format!("line {line}: {why}"), false),
            Some((line, Stop::Late(why))) => (Verdict::Fail, format!("line {line}: {why}"), true),
            Some((line, Stop::Inconclusive(why))) => (Verdict::Inconclusive, format!("line {line}: {why}"), false),
            Some((_, Stop::Unsupported(why))) => (Verdict::Unsupported, why, false),
        };
        let level = self.story.level;
        let own = |complaint: &&Complaint| {
            let strong = complaint.rule.level() == Level::Must || level != Level::Must;
            strong && own_case(complaint.rule, session.variant) == Some(self.story.id.as_str())
        };
        if let (Verdict::Pass, Some(complaint)) = (verdict, session.complaints[self.complaints..].iter().find(own)) {
            (verdict, why) = (Verdict::Fail, complaint.to_string());
        }
        if verdict == Verdict::Fail && session.spread.contains(&self.of) {
            let what = format!("the client asks for each resource on a stream of its own; {why}");
            (verdict, why) = (Verdict::Inconclusive, what);
        }
        if late && self.ended_stream {
            let what = format!("the client ends a stream of which it wants nothing more; {why}");
            (verdict, why) = (Verdict::Inconclusive, what);
        }
        if verdict == Verdict::Fail && level == Level::May {
            verdict = Verdict::Inconclusive; // a choice that the text leaves open cannot be wrong
        }
        // The client must accept the resources that make it ask, too.
        let unusable = match session.reference {
            Some(_) => session.unusable.values().next(),
            None => session.unusable.get(&self.of),
        };
        if let Some(error) = unusable.cloned().filter(|_| verdict != Verdict::Unsupported) {
            let what = format!("the client rejects what the kit serves of {}: {error}", resource::short(&self.of));
            let is_about_it = self.story.id == super::suite::ACK;
            (verdict, why) = (if is_about_it { Verdict::Fail } else { Verdict::Inconclusive }, what);
        }
        if session.gone.is_none() {
            self.clean(session, failed);
        }
        let complaints = session.complaints[self.complaints..].to_vec();
        let ladder = session.ladder[self.ladder..].to_vec();
        Played { outcome: Outcome { verdict, why, ladder }, late, complaints }
    }

    /// Unsubscribes from everything, and after a failure begins with new streams.
    fn clean(&mut self, session: &mut Session<'_>, failed: bool) {
        for (type_url, names) in std::mem::take(&mut self.told) {
            let names: Vec<String> = names.into_iter().collect();
            if !names.is_empty() && session.tell(&type_url, &names, true).is_err() {
                session.ladder.push("-- the client does not unsubscribe".into());
            }
        }
        // An Envoy whose stream ends while a cluster waits for its endpoints does not ask for clusters for a while.
        let is_envoy = session.reference.as_ref().is_some_and(Reference::asks_for_clusters);
        let may_cut = !self.is_long && !is_envoy && !session.streams.is_empty();
        if failed && may_cut {
            session.cut(End::Unavailable);
        }
        if !self.is_long {
            session.settle();
        }
    }

    fn step(&mut self, session: &mut Session<'_>, step: &Step) -> Result<(), Stop> {
        match step {
            Step::Want { type_name, add, remove } => return self.want(session, type_name, add, remove),
            Step::Send(send) => return self.send(session, send),
            Step::Bytes { type_name, bytes } => {
                let type_url = self.type_url(type_name);
                let stream = session.stream_of(&type_url).ok_or_else(|| Stop::Inconclusive("no stream".into()))?;
                session.ladder.push(format!("S> {} bytes that are no response", bytes.len()));
                session.peer.send(stream, bytes);
            }
            Step::Must(wish) => return self.must(session, wish),
            Step::MustNot(wish) => return self.must_not(session, wish),
            Step::Maybe(wish) => self.maybe(session, wish),
            Step::Names { type_name, names } => return self.names(session, type_name, names),
            Step::Claims { type_name, held } => return self.claims(session, type_name, held),
            Step::Apply(applied) => return self.applied(session, applied),
            Step::Missing { type_name, name, within } => return self.missing(session, type_name, name, *within),
            Step::Cut(end) => {
                session.cut(*end);
                self.mark_all(session);
            }
            Step::Fresh => {
                if !session.streams.is_empty() {
                    session.cut(End::Ok);
                }
                self.mark_all(session);
            }
            Step::Barrier => session.rest(),
            Step::Declares(features) => {
                let node = session.node.as_ref();
                let claims = |feature: &String| node.is_some_and(|node| node.features.contains(feature));
                if !features.iter().any(claims) {
                    return Err(Stop::Unsupported(format!("the client does not claim {}", features.join(" or "))));
                }
            }
            Step::Lives => {
                let ended = session.log[self.start..].iter().any(|entry| matches!(entry, Entry::Closed));
                if ended {
                    return Err(Stop::Fail("the client ended the stream".into()));
                }
            }
            Step::Wait(time) => session.pass(*time),
            Step::Backoff(times) => return self.backoff(session, *times),
        }
        Ok(())
    }

    fn want(
        &mut self,
        session: &mut Session<'_>,
        type_name: &str,
        add: &[String],
        remove: &[String],
    ) -> Result<(), Stop> {
        let type_url = self.type_url(type_name);
        self.marks.insert(type_url.clone(), session.log.len());
        for (names, leave) in [(remove, true), (add, false)] {
            if names.is_empty() {
                continue;
            }
            let names: Vec<String> = names.iter().map(|name| self.name(name)).collect();
            let told = self.told.entry(type_url.clone()).or_default();
            for name in &names {
                if leave {
                    told.remove(name)
                } else {
                    told.insert(name.clone())
                };
            }
            session.tell(&type_url, &names, leave)?;
        }
        Ok(())
    }

    /// Ends each stream as soon as it opens, and checks that the client does not open the next one at once.
    fn backoff(&mut self, session: &mut Session<'_>, times: usize) -> Result<(), Stop> {
        let mut gaps = Vec::new();
        for _ in 0..times {
            let (mark, ended) = (session.log.len(), session.peer.now());
            session.cut(End::Unavailable);
            let opened = |entry: &Entry| match entry {
                Entry::Opened { at, .. } => Some(*at),
                _ => None,
            };
            let has = |session: &Session<'_>| session.log[mark..].iter().find_map(opened);
            session.wait_until(session.timing.again, |session| has(session).is_some());
            let Some(at) = has(session) else { return Err(Stop::Late("the client does not come back".into())) };
            gaps.push(at.saturating_sub(ended));
        }
        self.mark_all(session);
        let list: Vec<String> = gaps.iter().map(|gap| format!("{} ms", gap.as_millis())).collect();
        let list = format!("comes back after {}", list.join(", "));
        session.ladder.push(format!("   {list}"));
        if gaps.iter().filter(|gap| **gap < AT_ONCE).count() + 1 >= times {
            return Err(Stop::Fail(format!("the client {list}")));
        }
        self.notes.push(list);
        Ok(())
    }

    fn mark_all(&mut self, session: &Session<'_>) {
        self.marks.clear();
        self.sent_marks.clear();
        self.start = session.log.len();
    }

    /// Returns the type URL of a word of the story.
    pub(super) fn type_url(&self, word: &str) -> String {
        if word == "T" { self.of.clone() } else { resource::type_url(word).to_owned() }
    }

    /// Returns the name on the wire.
    pub(super) fn name(&self, name: &str) -> String {
        match name {
            "*" => name.to_owned(),
            _ if name.starts_with("xdstp:") => name.replacen("/d/", &format!("/{}d/", self.prefix), 1),
            "empty" => String::new(),
            _ => format!("{}{name}", self.prefix),
        }
    }
}
