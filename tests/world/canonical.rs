//! States as they are compared: what has only an order is replaced by its rank, and time is what is left of it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use xds_machine::model::{Label, Relabel};
use xds_machine::server::Revision;
use xds_machine::{Instant, Nonce, TypeUrl};

use super::{Both, Pair, World};

/// The labels of a world, in order. Zero and empty have a meaning, and stay.
#[derive(Default)]
struct Labels {
    epochs: BTreeSet<u64>,
    requests: BTreeSet<u64>,
    responses: BTreeMap<TypeUrl, BTreeSet<u64>>,
    losses: BTreeMap<TypeUrl, BTreeSet<u64>>,
    revisions: BTreeSet<u64>,
    nonces: BTreeSet<(u64, u64)>,
}

/// The two numbers in a nonce of ours, which are in the order in which they were given.
fn numbers(nonce: &Nonce) -> (u64, u64) {
    let (stream, count) = nonce.as_str().split_once('.').expect("a nonce of our server");
    (stream.parse().expect("a number"), count.parse().expect("a number"))
}

fn rank<T: Ord>(all: &BTreeSet<T>, one: &T) -> u64 {
    all.range(..one).count() as u64 + 1
}

impl Labels {
    fn note(&mut self, label: Label<'_>) {
        match label {
            Label::Epoch(&mut 0) | Label::Request(&mut 0) | Label::Response(_, &mut 0) | Label::Loss(_, &mut 0) => {}
            Label::Epoch(epoch) => _ = self.epochs.insert(*epoch),
            Label::Request(count) => _ = self.requests.insert(*count),
            Label::Response(of, count) => _ = self.responses.entry(of.clone()).or_default().insert(*count),
            Label::Loss(of, count) => _ = self.losses.entry(of.clone()).or_default().insert(*count),
            Label::Revision(revision) if *revision > Revision::default() => _ = self.revisions.insert(revision.0),
            Label::Nonce(nonce) if !nonce.is_empty() => _ = self.nonces.insert(numbers(nonce)),
            _ => {}
        }
    }

    fn replace(&self, now: Instant, label: Label<'_>) {
        match label {
            Label::Epoch(&mut 0) | Label::Request(&mut 0) | Label::Response(_, &mut 0) | Label::Loss(_, &mut 0) => {}
            Label::Epoch(epoch) => *epoch = rank(&self.epochs, epoch),
            Label::Request(count) => *count = rank(&self.requests, count),
            Label::Response(of, count) => *count = rank(&self.responses[of], count),
            Label::Loss(of, count) => *count = rank(&self.losses[of], count),
            Label::Revision(revision) if *revision > Revision::default() => {
                revision.0 = rank(&self.revisions, &revision.0);
            }
            Label::Nonce(nonce) if !nonce.is_empty() => {
                *nonce = format!("1.{}", rank(&self.nonces, &numbers(nonce))).into();
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
        let given = labels.nonces.len() as u64;
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
