//! Random stories: requests that a faithful client may send, and resources that a server may be given.
//!
//! Each request is legal at any place, so that any part of a story is a legal story too: SotW lists are complete, delta
//! changes may be repeated, and an ACK with no response to answer becomes a request without an ACK.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;

use crate::message::Variant;
use crate::story::{Answers, Change, Resume, Send, Step, Text, To};

/// The names of a walk. The last one does not exist at first.
const NAMES: [&str; 4] = ["a", "b", "c", "z"];
/// The number of contents that a resource may have; a content may come back.
const REVISIONS: u64 = 3;

/// The parameters of a walk.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shape {
    /// The variant.
    pub variant: Variant,
    /// The types, by their short names.
    pub types: Vec<String>,
    /// The types whose wildcard this walk uses.
    pub wildcard: Vec<String>,
    /// Whether the server's resources can be changed.
    pub has_control: bool,
    /// Whether several changes can be made at once.
    pub has_batches: bool,
    /// The maximum number of streams at a time.
    pub streams: usize,
    /// The number of steps, without those that begin and end a walk.
    pub steps: usize,
}

/// Makes the story of a walk.
pub fn generate(rng: &mut Rng, shape: &Shape) -> Vec<Step> {
    let mut walk = Walk { rng, shape, current: 1, streams: BTreeMap::new(), steps: Vec::new() };
    walk.begin();
    for _ in 0..shape.steps {
        walk.step();
    }
    walk.end();
    walk.steps
}

/// The names that a stream asked for, by type.
type Asked = BTreeMap<String, BTreeSet<String>>;

struct Walk<'a> {
    rng: &'a mut Rng,
    shape: &'a Shape,
    current: usize,
    streams: BTreeMap<usize, Asked>,
    steps: Vec<Step>,
}

impl Walk<'_> {
    fn one_in(&mut self, times: usize) -> bool {
        self.rng.usize(..times) == 0
    }

    fn pick<'t>(&mut self, of: &'t [String]) -> &'t str {
        &of[self.rng.usize(..of.len())]
    }

    fn name(&mut self) -> String {
        NAMES[self.rng.usize(..NAMES.len())].to_owned()
    }

    /// Puts resources before the first stream: at least one of each type, so that a witness has something to see.
    fn begin(&mut self) {
        for of in &self.shape.types {
            let names = if self.shape.has_control { 1 + self.rng.usize(..2) } else { 3 };
            for name in &NAMES[..names] {
                let to = To::Put { revision: 1, ttl: None, alias: None };
                let changes = vec![Change { type_name: of.clone(), name: (*name).to_owned(), to }];
                self.steps.push(Step::World { changes, batch: false });
            }
        }
    }

    /// Lets every stream come to rest.
    fn end(&mut self) {
        let streams: Vec<usize> = self.streams.keys().copied().collect();
        for number in streams {
            self.steps.extend([Step::Stream(number), Step::Rest]);
        }
    }

    fn step(&mut self) {
        let of = self.pick(&self.shape.types).to_owned();
        match self.rng.usize(..100) {
            0..20 if self.shape.has_control => self.world(&of),
            20..50 => self.send(&of),
            50..70 => {
                let nack = self.one_in(4);
                self.steps.push(Step::AnswerOne { type_name: of, nack });
            }
            70..80 => {
                let nack = self.one_in(6);
                self.steps.push(Step::Answer { nack });
            }
            80..90 => self.steps.push(Step::Hear),
            90..94 => self.steps.push(Step::Rest),
            94..97 => {
                self.streams.remove(&self.current);
                self.steps.push(Step::Cut);
            }
            97..100 if self.shape.streams > 1 => {
                self.current = 1 + self.rng.usize(..self.shape.streams);
                self.steps.push(Step::Stream(self.current));
            }
            _ => self.send(&of),
        }
    }

    fn world(&mut self, of: &str) {
        let batch = self.shape.has_batches && self.one_in(6);
        let number = if batch { 2 + self.rng.usize(..2) } else { 1 };
        let mut changes: Vec<Change> = Vec::new();
        for at in 0..number {
            let type_name = if at == 0 { of.to_owned() } else { self.pick(&self.shape.types).to_owned() };
            let name = self.name();
            let to = match self.rng.usize(..10) {
                0..4 => To::Delete,
                _ => To::Put { revision: 1 + self.rng.u64(..REVISIONS), ttl: None, alias: None },
            };
            if !changes.iter().any(|other| other.type_name == type_name && other.name == name) {
                changes.push(Change { type_name, name, to });
            }
        }
        self.steps.push(Step::World { changes, batch });
    }

    fn answers(&mut self) -> Answers {
        match self.rng.usize(..8) {
            0..4 => Answers::Nothing,
            4..7 => Answers::Ack(None),
            _ => Answers::Nack(None),
        }
    }

    fn send(&mut self, of: &str) {
        let answers = self.answers();
        let resume = [Resume::Last, Resume::Last, Resume::No, Resume::Older][self.rng.usize(..4)];
        let first = !self.streams.get(&self.current).is_some_and(|asked| asked.contains_key(of));
        // The first request of a type has no response to answer, and no other request resumes.
        let (answers, resume) = if first { (Answers::Nothing, resume) } else { (answers, Resume::No) };
        let mut send = Send { type_name: of.to_owned(), answers, resume, ..Send::default() };
        let wildcard = self.shape.wildcard.iter().any(|other| other == of);
        // The mutator: nonces that a server must tolerate.
        if self.one_in(12) {
            send.nonce = match (self.shape.variant, first) {
                (Variant::Sotw, true) => Some(Text::Literal("of-an-earlier-stream".into())),
                (Variant::Delta, false) => {
                    send.answers = Answers::Nothing;
                    Some(Text::Literal("stale".into()))
                }
                _ => None,
            };
        }
        let mut asked = self.streams.entry(self.current).or_default().remove(of).unwrap_or_default();
        match self.shape.variant {
            Variant::Sotw => self.list(&mut send, &mut asked, first, wildcard),
            Variant::Delta => self.changes(&mut send, &mut asked, first, wildcard),
        }
        self.streams.entry(self.current).or_default().insert(of.to_owned(), asked);
        self.steps.push(Step::Send(send));
    }

    /// Makes the list of a SotW request: with one name more, one name less, another name, or none.
    fn list(&mut self, send: &mut Send, asked: &mut BTreeSet<String>, first: bool, wildcard: bool) {
        match self.rng.usize(..12) {
            0..3 if first && wildcard => asked.clear(), // the legacy wildcard
            0 if !first => asked.clear(),
            1..4 if wildcard => _ = asked.insert("*".into()),
            1..4 => _ = asked.insert(self.name()),
            4..6 if !first => {
                let gone = asked.iter().nth(self.rng.usize(..asked.len().max(1))).cloned();
                gone.iter().for_each(|name| _ = asked.remove(name));
            }
            6 if !first => {} // the same list once more
            _ => {
                asked.insert(self.name());
                if self.one_in(3) {
                    asked.insert(self.name());
                }
            }
        }
        if first && asked.is_empty() && !wildcard {
            asked.insert(self.name());
        }
        send.names = asked.iter().cloned().collect();
        self.rng.shuffle(&mut send.names);
        let twice = send.names.first().cloned().filter(|_| self.one_in(12));
        send.names.extend(twice);
    }

    /// Makes the changes of a delta request.
    fn changes(&mut self, send: &mut Send, asked: &mut BTreeSet<String>, first: bool, wildcard: bool) {
        let star = "*".to_owned();
        match self.rng.usize(..12) {
            0..3 if first && wildcard => {} // the legacy wildcard
            0 if first => send.names.push(self.name()),
            0 if !matches!(send.answers, Answers::Nothing) => {} // an ACK, or an empty request
            1..4 if wildcard && asked.contains(&star) && !self.one_in(3) => send.unsubscribe.push(star),
            1..4 if wildcard => send.names.push(star),
            4..7 if !first => {
                // A name that is subscribed to, or a phantom.
                let known = asked.iter().nth(self.rng.usize(..asked.len().max(1))).cloned();
                let phantom = self.one_in(5);
                send.unsubscribe.push(match known.filter(|name| name != "*" && !phantom) {
                    Some(name) => name,
                    None => self.name(),
                });
                if self.one_in(4) {
                    let name = self.name();
                    send.names.extend(Some(name).filter(|name| !send.unsubscribe.contains(name)));
                }
            }
            _ => {
                send.names.push(self.name());
                let more = self.name();
                if self.one_in(3) && !send.names.contains(&more) {
                    send.names.push(more);
                }
            }
        }
        asked.extend(send.names.iter().cloned());
        asked.retain(|name| !send.unsubscribe.contains(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::Story;

    fn shape(variant: Variant) -> Shape {
        let types = vec!["cds".to_owned(), "eds".to_owned()];
        let wildcard = vec!["cds".to_owned()];
        Shape { variant, types, wildcard, has_control: true, has_batches: true, streams: 3, steps: 40 }
    }

    #[test]
    fn a_walk_is_determined_by_its_seed_and_its_story_round_trips() {
        for (variant, seed) in
            [Variant::Sotw, Variant::Delta].into_iter().flat_map(|of| (0..50).map(move |seed| (of, seed)))
        {
            let make = |seed| generate(&mut Rng::with_seed(seed), &shape(variant));
            let steps = make(seed);
            assert_eq!(steps, make(seed));
            assert_ne!(steps, make(seed + 1));
            let story = Story { rule: "R-1".into(), sentence: "s".into(), ..Story::of_walk(variant, &steps) };
            let again = Story::parse(&story.write(variant), variant).expect("a story");
            let steps = |story: &Story| story.steps.iter().map(|(_, step)| step.clone()).collect::<Vec<_>>();
            assert_eq!(steps(&again), steps(&story));
        }
    }
}
