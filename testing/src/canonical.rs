//! Labels by rank: what has only an order is replaced by its place in it, and time by what is left of it.

use xds_machine::model::{Label, Relabel};
use xds_machine::{Instant, Nonce, TypeUrl};

/// Makes a state what it is compared as: each label becomes its rank among the labels of its kind (and of its type, where
/// each type counts for itself), and each moment its distance from `now`, which becomes zero.
///
/// What follows a [`Label::Client`] has ranks of its own, up to the next. The state is one to go on from: nonces are those of
/// stream 1, servers are numbered anew, and none of them gives a nonce that is there. (The counter that numbers new streams
/// has to be set to the number of servers in the state.)
pub fn canonicalize(state: &mut (impl Relabel + ?Sized), now: Instant) {
    let mut groups: Vec<(u64, Labels)> = vec![(0, Labels::default())];
    let place = |groups: &mut Vec<(u64, Labels)>, of: u64| {
        groups.iter().position(|(known, _)| *known == of).unwrap_or_else(|| {
            groups.push((of, Labels::default()));
            groups.len() - 1
        })
    };
    let mut at = 0;
    state.relabel(&mut |label| match label {
        Label::Client(of) => at = place(&mut groups, of),
        label => groups[at].1.note(&label),
    });
    at = 0;
    state.relabel(&mut |label| match label {
        Label::Client(of) => at = place(&mut groups, of),
        Label::Stream(stream) => {
            groups[at].1.servers += 1;
            *stream = groups[at].1.servers;
        }
        Label::Given(count) => *count = groups[at].1.nonces(),
        label => groups[at].1.replace(now, label),
    });
}

/// A label that counts something; of nonces the two numbers. Zero and none have a meaning, and stay.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Kind {
    Attempt,
    Epoch,
    Loss,
    Nonce,
    Request,
    Response,
    Revision,
}

/// The labels of a state by kind, and by type where each counts for itself. Vectors: this is done for each transition,
/// there are few of them, and trees would take twice the time.
#[derive(Default)]
struct Labels {
    kinds: Vec<OfKind>,
    /// How many servers were numbered anew.
    servers: u64,
}

struct OfKind {
    kind: Kind,
    of: Option<TypeUrl>,
    numbers: Vec<(u64, u64)>,
}

/// The two numbers in a nonce of ours, which are in the order in which they were given.
fn numbers(nonce: &Nonce) -> (u64, u64) {
    let (stream, count) = nonce.as_str().split_once('.').expect("a nonce of our server");
    (stream.parse().expect("a number"), count.parse().expect("a number"))
}

/// What it counts, of which type, and up to where.
fn read<'a>(label: &'a Label<'_>) -> Option<(Kind, Option<&'a TypeUrl>, (u64, u64))> {
    let (kind, of, count) = match label {
        Label::Attempt(count) => (Kind::Attempt, None, **count),
        Label::Epoch(count) => (Kind::Epoch, None, **count),
        Label::Loss(of, count) => (Kind::Loss, Some(*of), **count),
        Label::Request(count) => (Kind::Request, None, **count),
        Label::Response(of, count) => (Kind::Response, Some(*of), **count),
        Label::Revision(revision) => (Kind::Revision, None, revision.0),
        Label::Nonce(nonce) => return (!nonce.is_empty()).then(|| (Kind::Nonce, None, numbers(nonce))),
        _ => return None,
    };
    (count > 0).then_some((kind, of, (0, count)))
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

impl Labels {
    fn of(&self, kind: Kind, of: Option<&TypeUrl>) -> Option<usize> {
        self.kinds.iter().position(|one| one.kind == kind && one.of.as_ref() == of)
    }

    fn note(&mut self, label: &Label<'_>) {
        let Some((kind, of, numbers)) = read(label) else { return };
        let at = self.of(kind, of).unwrap_or_else(|| {
            self.kinds.push(OfKind { kind, of: of.cloned(), numbers: Vec::new() });
            self.kinds.len() - 1
        });
        let known = &mut self.kinds[at].numbers;
        if let Err(place) = known.binary_search(&numbers) {
            known.insert(place, numbers);
        }
    }

    /// Replaces a label that was noted.
    fn replace(&self, now: Instant, label: Label<'_>) {
        match read(&label) {
            Some((kind, of, numbers)) => {
                let at = self.of(kind, of).expect("it was noted");
                let rank = self.kinds[at].numbers.partition_point(|&one| one < numbers) as u64 + 1;
                // A nonce that stays need not be made anew.
                if kind != Kind::Nonce || numbers != (1, rank) {
                    write(label, rank);
                }
            }
            None => {
                if let Label::Instant(instant) = label {
                    *instant = Instant::from_epoch(instant.saturating_since(now));
                }
            }
        }
    }

    /// How many nonces there are. All are now of stream 1.
    fn nonces(&self) -> u64 {
        self.of(Kind::Nonce, None).map_or(0, |at| self.kinds[at].numbers.len() as u64)
    }
}
