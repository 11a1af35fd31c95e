//! Labels by rank: what has only an order is replaced by its place in it, and time by what is left of it.

use xds_machine::model::Label;
use xds_machine::{Instant, Nonce, TypeUrl};

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
pub struct Labels(Vec<OfKind>);

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
        self.0.iter().position(|one| one.kind == kind && one.of.as_ref() == of)
    }

    pub fn note(&mut self, label: &Label<'_>) {
        let Some((kind, of, numbers)) = read(label) else { return };
        let at = self.of(kind, of).unwrap_or_else(|| {
            self.0.push(OfKind { kind, of: of.cloned(), numbers: Vec::new() });
            self.0.len() - 1
        });
        let known = &mut self.0[at].numbers;
        if let Err(place) = known.binary_search(&numbers) {
            known.insert(place, numbers);
        }
    }

    /// Replaces a label that was noted.
    pub fn replace(&self, now: Instant, label: Label<'_>) {
        match read(&label) {
            Some((kind, of, numbers)) => {
                let at = self.of(kind, of).expect("it was noted");
                let rank = self.0[at].numbers.partition_point(|&one| one < numbers) as u64 + 1;
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
    pub fn nonces(&self) -> u64 {
        self.of(Kind::Nonce, None).map_or(0, |at| self.0[at].numbers.len() as u64)
    }
}
