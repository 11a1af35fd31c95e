//! States as they are compared: what has only an order is replaced by its rank among those of its server, and time is what
//! is left of it.

use std::hash::{Hash, Hasher};

use xds_machine::model::{Label, Relabel};
use xds_machine::{Instant, Nonce};

use super::{Both, Side, Step, World};
use crate::search::Model;

/// A label that counts something; of nonces the two numbers. Zero and none have a meaning, and stay.
#[derive(Clone, Copy)]
enum Kind {
    Attempt,
    Epoch,
    Loss,
    Nonce,
    Request,
    Response,
    Revision,
}

/// Of a server, by kind, in order. Two types count too much alike: that only tells states apart that are alike.
type Labels = [Vec<(u64, u64)>; 7];

fn numbers(nonce: &Nonce) -> (u64, u64) {
    let (stream, count) = nonce.as_str().split_once('.').expect("a nonce of our server");
    (stream.parse().expect("a number"), count.parse().expect("a number"))
}

/// What it counts, and up to where.
fn read(label: &Label<'_>) -> Option<(Kind, (u64, u64))> {
    let (kind, count) = match label {
        Label::Attempt(count) => (Kind::Attempt, **count),
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
        Label::Attempt(count)
        | Label::Epoch(count)
        | Label::Loss(_, count)
        | Label::Request(count)
        | Label::Response(_, count) => *count = rank,
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

impl<V: Both> World<V> {
    /// Shows each label with the number of its server.
    fn relabel(&mut self, mut by: impl FnMut(usize, Label<'_>)) {
        let mut of = 0;
        let mut by = |label: Label<'_>| match label {
            Label::Client(id) => of = id as usize,
            label => by(of, label),
        };
        let Self { servers, sides, apps, now, .. } = self;
        now.relabel(&mut by);
        servers.relabel(&mut by);
        apps.iter_mut().flat_map(|app| app.judging.values_mut()).for_each(|(update, _)| update.relabel(&mut by));
        for (s, Side { cache, stream, server, to, from, .. }) in sides.iter_mut().enumerate() {
            by(Label::Client(s as u64));
            stream.relabel(&mut by);
            cache.relabel(&mut by);
            server.relabel(&mut by);
            to.iter_mut().for_each(|request| request.relabel(&mut by));
            from.iter_mut().for_each(|response| response.relabel(&mut by));
        }
    }
}

impl<V: Both> Model for World<V> {
    type Step = Step;

    fn steps(&self, steps: &mut Vec<Step>) {
        let (own, others) = World::steps(self);
        let later = self.due().is_some_and(|due| due > self.now);
        let others = others.into_iter().filter(|&step| match step {
            Step::Early => later && !own.is_empty(),
            _ => true,
        });
        steps.extend(others.filter(|&step| self.budget.is_none_or(|budget| budget.allows(step))));
        if own.is_empty() && later {
            steps.push(Step::Tick);
        }
        steps.extend(own);
    }

    fn is_own(step: Step) -> bool {
        use Step::{Accept, ClientReads, ClientSends, Connect, Opened, Refused, ServerReads, ServerSends, Tick};
        matches!(
            step,
            Connect
                | Opened { .. }
                | Refused { .. }
                | ClientSends { .. }
                | ServerReads { .. }
                | ServerSends { .. }
                | ClientReads { .. }
                | Accept { .. }
                | Tick
        )
    }

    fn may_repeat(step: Step) -> bool {
        matches!(step, Step::Connect | Step::Refused { .. } | Step::Tick)
    }

    fn take(&mut self, step: Step) {
        World::take(self, step);
    }

    fn check_settled(&self) {
        World::check_settled(self);
    }

    fn canonicalize(&mut self) {
        let (mut labels, now) = (vec![Labels::default(); self.sides.len()], self.now);
        self.relabel(|of, label| {
            if let Some((kind, numbers)) = read(&label) {
                labels[of][kind as usize].push(numbers);
            }
        });
        for labels in labels.iter_mut().flatten() {
            labels.sort_unstable();
            labels.dedup();
        }
        self.relabel(|of, label| replace(&labels[of], now, label));
        // All nonces of a server are now of its stream 1, which may give none of them again, nor may the next.
        self.streams = 1;
        for (s, side) in self.sides.iter_mut().enumerate() {
            let given = labels[s][Kind::Nonce as usize].len() as u64;
            side.server.relabel(&mut |label| match label {
                Label::Stream(stream) => *stream = 1,
                Label::Given(count) => *count = given,
                _ => {}
            });
        }
    }

    fn goals(&self) -> u32 {
        self.goals
    }
}

impl<V: Both> Hash for World<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { fixed: _, budget, servers, sides, apps, now, streams, current, faulty, goals: _ } = self;
        (budget, servers, sides, apps, now, streams, current, faulty).hash(state);
    }
}
