//! States as they are compared: what has only an order is replaced by its rank, and time is what is left of it.

use std::hash::{Hash, Hasher};

use xds_machine::model::{Label, Relabel};
use xds_machine::server::Revision;
use xds_machine::{Instant, Nonce, TypeUrl};

use super::{Both, Pair, World};

/// The labels of a world, in order. Zero and empty have a meaning, and stay.
#[derive(Default)]
struct Labels {
    epochs: Ranks<u64>,
    requests: Ranks<u64>,
    responses: Vec<(TypeUrl, Ranks<u64>)>,
    losses: Vec<(TypeUrl, Ranks<u64>)>,
    revisions: Ranks<u64>,
    nonces: Ranks<(u64, u64)>,
}

/// A few labels of a kind, sorted: this is done for each transition, and a tree would take twice the time.
struct Ranks<T>(Vec<T>);

impl<T> Default for Ranks<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Ord> Ranks<T> {
    fn insert(&mut self, label: T) {
        if let Err(place) = self.0.binary_search(&label) {
            self.0.insert(place, label);
        }
    }

    fn of(&self, label: &T) -> u64 {
        self.0.partition_point(|one| one < label) as u64 + 1
    }
}

fn of_type<'a>(all: &'a mut Vec<(TypeUrl, Ranks<u64>)>, type_url: &TypeUrl) -> &'a mut Ranks<u64> {
    let place = all.iter().position(|(one, _)| one == type_url).unwrap_or_else(|| {
        all.push((type_url.clone(), Ranks::default()));
        all.len() - 1
    });
    &mut all[place].1
}

/// The two numbers in a nonce of ours, which are in the order in which they were given.
fn numbers(nonce: &Nonce) -> (u64, u64) {
    let (stream, count) = nonce.as_str().split_once('.').expect("a nonce of our server");
    (stream.parse().expect("a number"), count.parse().expect("a number"))
}

impl Labels {
    fn note(&mut self, label: Label<'_>) {
        match label {
            Label::Epoch(&mut 0) | Label::Request(&mut 0) | Label::Response(_, &mut 0) | Label::Loss(_, &mut 0) => {}
            Label::Epoch(epoch) => self.epochs.insert(*epoch),
            Label::Request(count) => self.requests.insert(*count),
            Label::Response(of, count) => of_type(&mut self.responses, of).insert(*count),
            Label::Loss(of, count) => of_type(&mut self.losses, of).insert(*count),
            Label::Revision(revision) if *revision > Revision::default() => self.revisions.insert(revision.0),
            Label::Nonce(nonce) if !nonce.is_empty() => self.nonces.insert(numbers(nonce)),
            _ => {}
        }
    }

    fn replace(&mut self, now: Instant, label: Label<'_>) {
        match label {
            Label::Epoch(&mut 0) | Label::Request(&mut 0) | Label::Response(_, &mut 0) | Label::Loss(_, &mut 0) => {}
            Label::Epoch(epoch) => *epoch = self.epochs.of(epoch),
            Label::Request(count) => *count = self.requests.of(count),
            Label::Response(of, count) => *count = of_type(&mut self.responses, of).of(count),
            Label::Loss(of, count) => *count = of_type(&mut self.losses, of).of(count),
            Label::Revision(revision) if *revision > Revision::default() => {
                revision.0 = self.revisions.of(&revision.0);
            }
            Label::Nonce(nonce) if !nonce.is_empty() => {
                let (numbers, rank) = (numbers(nonce), self.nonces.of(&numbers(nonce)));
                if numbers != (1, rank) {
                    *nonce = format!("1.{rank}").into();
                }
            }
            Label::Instant(instant) => *instant = Instant::from_epoch(instant.saturating_since(now)),
            _ => {}
        }
    }
}

impl<V: Both> World<V> {
    /// Makes the state what it is compared as. It is one to go on from: what comes next has labels that are new.
    pub fn canonicalize(&mut self) {
        let (mut labels, now) = (Labels::default(), self.now);
        self.relabel(&mut |label| labels.note(label));
        self.relabel(&mut |label| labels.replace(now, label));
        // All nonces are now of stream 1; no server may give one of them again.
        let given = labels.nonces.0.len() as u64;
        self.streams = self.pairs.len() as u64;
        for (c, pair) in self.pairs.iter_mut().enumerate() {
            pair.server.relabel(&mut |label| match label {
                Label::Stream(stream) => *stream = c as u64 + 1,
                Label::Given(count) => *count = given,
                _ => {}
            });
        }
    }
}

impl<V: Both> Relabel for World<V> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        let Self { setup: _, budget: _, now, cache, streams: _, pairs } = self;
        now.relabel(by);
        cache.relabel(by);
        for Pair { client, server, up, down, sending, apps, ghost, faulty, goals: _ } in pairs {
            client.relabel(by);
            server.relabel(by);
            up.iter_mut().for_each(|request| request.relabel(by));
            down.iter_mut().for_each(|response| response.relabel(by));
            sending.relabel(by);
            for app in apps {
                app.judging.relabel(by);
                app.until.values_mut().for_each(|until| until.relabel(by));
            }
            ghost.relabel(by);
            faulty.relabel(by);
        }
    }
}

impl<V: Both> Hash for World<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { setup: _, budget, now, cache, streams, pairs } = self;
        (budget, now, cache, streams, pairs).hash(state);
    }
}

impl<V: Both> PartialEq for World<V> {
    fn eq(&self, other: &Self) -> bool {
        let Self { setup: _, budget, now, cache, streams, pairs } = self;
        *budget == other.budget
            && *now == other.now
            && *cache == other.cache
            && *streams == other.streams
            && *pairs == other.pairs
    }
}

impl<V: Both> Eq for World<V> {}
