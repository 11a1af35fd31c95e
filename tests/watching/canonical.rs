//! States as they are compared: what has only an order is replaced by its rank, and time is what is left of it.

use std::hash::{Hash, Hasher};

use xds_machine::model::{Label, Relabel};
use xds_machine::{Instant, Nonce};

use super::{Both, Step, World};
use crate::search::Model;

/// A label that counts something; of nonces the two numbers. Zero and none have a meaning, and stay.
#[derive(Clone, Copy)]
enum Kind {
    Epoch,
    Loss,
    Nonce,
    Request,
    Response,
    Revision,
}

/// By kind, in order.
type Labels = [Vec<(u64, u64)>; 6];

fn numbers(nonce: &Nonce) -> (u64, u64) {
    let (stream, count) = nonce.as_str().split_once('.').expect("a nonce of our server");
    (stream.parse().expect("a number"), count.parse().expect("a number"))
}

/// What it counts, and up to where.
fn read(label: &Label<'_>) -> Option<(Kind, (u64, u64))> {
    let (kind, count) = match label {
        Label::Epoch(count) => (Kind::Epoch, **count),
        Label::Loss(_, count) => (Kind::Loss, **count),
        Label::Request(count) => (Kind::Request, **count),
        Label::Response(_, count) => (Kind::Response, **count),
        Label::Revision(revision) => (Kind::Revision, revision.0),
        Label::Nonce(nonce) => return (!nonce.is_empty()).then(|| (Kind::Nonce, numbers(nonce))),
        _ => return None,
    };
    (count > 0).then_some((kind, (0, count)))
}

fn write(label: Label<'_>, rank: u64) {
    match label {
        Label::Epoch(count) | Label::Loss(_, count) | Label::Request(count) | Label::Response(_, count) => {
            *count = rank;
        }
        Label::Revision(revision) => revision.0 = rank,
        Label::Nonce(nonce) => *nonce = format!("1.{rank}").into(),
        _ => {}
    }
}

fn replace(labels: &Labels, now: Instant, label: Label<'_>) {
    match read(&label) {
        Some((kind, numbers)) => write(label, labels[kind as usize].partition_point(|&of| of < numbers) as u64 + 1),
        None => {
            if let Label::Instant(instant) = label {
                *instant = Instant::from_epoch(instant.saturating_since(now));
            }
        }
    }
}

impl<V: Both> Relabel for World<V> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        let Self { now, cache, client, server, actions, layer, verdicts, .. } = self;
        now.relabel(by);
        cache.relabel(by);
        client.relabel(by);
        server.relabel(by);
        actions.iter_mut().for_each(|action| action.relabel(by));
        layer.watches.relabel(by);
        verdicts.iter_mut().for_each(|verdict| verdict.relabel(by));
    }
}

impl<V: Both> Model for World<V> {
    type Step = Step;

    fn steps(&self, steps: &mut Vec<Step>) {
        World::steps(self, steps);
    }

    fn is_own(step: Step) -> bool {
        step.is_own()
    }

    fn take(&mut self, step: Step) {
        World::take(self, step);
    }

    fn check_settled(&self) {
        World::check_settled(self);
    }

    fn canonicalize(&mut self) {
        let (mut labels, now) = (Labels::default(), self.now);
        self.relabel(&mut |label| {
            if let Some((kind, numbers)) = read(&label) {
                labels[kind as usize].push(numbers);
            }
        });
        for labels in &mut labels {
            labels.sort_unstable();
            labels.dedup();
        }
        self.relabel(&mut |label| replace(&labels, now, label));
        // All nonces are now of stream 1, which may give none of them again, nor may the next.
        self.streams = 1;
        let given = labels[Kind::Nonce as usize].len() as u64;
        self.server.relabel(&mut |label| match label {
            Label::Stream(stream) => *stream = 1,
            Label::Given(count) => *count = given,
            _ => {}
        });
    }

    fn goals(&self) -> u32 {
        self.goals
    }
}

impl<V: Both> Hash for World<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            fixed: _,
            budget,
            now,
            cache,
            up,
            client,
            server,
            answered,
            streams,
            actions,
            layer,
            verdicts,
            ids,
            ghost,
            goals: _,
        } = self;
        (budget, now, cache, up, client, server, answered).hash(state);
        (streams, actions, layer, verdicts, ids, ghost).hash(state);
    }
}
