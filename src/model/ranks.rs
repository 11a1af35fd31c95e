//! Ranks of labels: a label that has only an order becomes its position, and a moment becomes the remaining time.

use alloc::format;
use alloc::vec::Vec;

use super::{Label, Relabel};
use crate::name::{Nonce, TypeUrl};
use crate::time::Instant;

/// Makes a state canonical for comparison at this time: two states that differ only in labels become equal. Returns the
/// number of server streams in the state.
///
/// The canonical state can be continued if the caller also resets:
///
/// - `now`, which is [`Instant::EPOCH`] afterwards (or is part of the state, as one of its moments);
/// - the number of the next stream, which must be greater than the returned number.
///
/// Labels of each client are ranked separately ([`Label::Client`]). Nonces and revisions are those of one control
/// plane; several control planes need a [`Ranks`] each. A nonce that does not come from a
/// [`Server`](crate::server::Server) of this crate stays as it is.
///
/// ```
/// use xds_machine::client::{Client, Config};
/// use xds_machine::message::Node;
/// use xds_machine::model::canonical;
/// use xds_machine::{Delta, Instant, TypeUrl};
///
/// let mut client = Client::<Delta>::new(Config::new(Node::new("n")));
/// client.resources_mut(&TypeUrl::from("type")).subscribe(["a"])?;
/// client.handle_open();
/// let mut once = client.clone();
/// client.handle_close();
/// client.handle_open();
/// assert_ne!(once, client, "another stream");
/// canonical(&mut once, Instant::EPOCH);
/// canonical(&mut client, Instant::EPOCH);
/// assert_eq!(once, client, "and nothing else");
/// # Ok::<(), xds_machine::Misuse>(())
/// ```
pub fn canonical(state: &mut (impl Relabel + ?Sized), now: Instant) -> u64 {
    let mut ranks = Ranks::default();
    state.relabel(&mut |label| ranks.note(&label));
    state.relabel(&mut |label| ranks.replace(now, label));
    ranks.streams
}

/// The labels of a state by kind, and by type where types count separately: the basis of [`canonical`], for a state of
/// several parts that are ranked separately. Note all labels first, then replace all in the same order.
// Vectors, because every transition of a model runs this with few labels, and trees would take twice the time.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Ranks {
    labels: Vec<OfKind>,
    /// The client that the current labels belong to.
    client: u64,
    streams: u64,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct OfKind {
    kind: Kind,
    of: Option<TypeUrl>,
    client: u64,
    /// The two numbers of each nonce, in order.
    numbers: Vec<(u64, u64)>,
}

/// A kind of label that is ranked. A zero count and an empty nonce mean "none", and stay.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Kind {
    Attempt,
    Epoch,
    Loss,
    Nonce,
    Request,
    Response,
    Revision,
}

impl Ranks {
    /// Notes a label.
    pub fn note(&mut self, label: &Label<'_>) {
        if let Label::Client(id) = label {
            self.client = *id;
        }
        let Some((kind, of, numbers)) = read(label) else { return };
        let at = self.find(kind, of).unwrap_or_else(|| {
            self.labels.push(OfKind { kind, of: of.cloned(), client: self.client_of(kind), numbers: Vec::new() });
            self.labels.len() - 1
        });
        let known = &mut self.labels[at].numbers;
        if let Err(place) = known.binary_search(&numbers) {
            known.insert(place, numbers);
        }
    }

    /// Replaces a label by its rank among the noted labels, from 1, and a moment by the time from `now` until then; a
    /// count that nothing depends on becomes zero. Server streams are numbered in order of appearance. All nonces
    /// become nonces of stream 1, and the number of nonces that a stream has given becomes the number of all noted
    /// nonces, so that no stream gives one of them again.
    pub fn replace(&mut self, now: Instant, label: Label<'_>) {
        match label {
            Label::Client(id) => self.client = id,
            Label::Instant(instant) => *instant = Instant::from_epoch(instant.saturating_since(now)),
            Label::Stream(stream) => {
                self.streams += 1;
                *stream = self.streams;
            }
            Label::Count(count) => *count = 0,
            Label::Given(count) => *count = self.nonces(),
            label => {
                let Some((kind, of, numbers)) = read(&label) else { return };
                let Some(at) = self.find(kind, of) else { return };
                let rank = self.labels[at].numbers.partition_point(|&one| one < numbers) as u64 + 1;
                // An unchanged nonce need not be made anew.
                if kind != Kind::Nonce || numbers != (1, rank) {
                    write(label, rank);
                }
            }
        }
    }

    /// Returns the number of noted nonces.
    fn nonces(&self) -> u64 {
        self.find(Kind::Nonce, None).map_or(0, |at| self.labels[at].numbers.len() as u64)
    }

    fn find(&self, kind: Kind, of: Option<&TypeUrl>) -> Option<usize> {
        let client = self.client_of(kind);
        self.labels.iter().position(|one| one.kind == kind && one.client == client && one.of.as_ref() == of)
    }

    /// Returns the client within which labels of this kind are compared; 0 if the labels of all clients are compared.
    fn client_of(&self, kind: Kind) -> u64 {
        if matches!(kind, Kind::Nonce | Kind::Revision) { 0 } else { self.client }
    }
}

/// Returns the kind of a ranked label, its type, and its value.
fn read<'a>(label: &'a Label<'_>) -> Option<(Kind, Option<&'a TypeUrl>, (u64, u64))> {
    let (kind, of, count) = match label {
        Label::Attempt(count) => (Kind::Attempt, None, **count),
        Label::Epoch(count) => (Kind::Epoch, None, **count),
        Label::Loss(of, count) => (Kind::Loss, Some(*of), **count),
        Label::Request(count) => (Kind::Request, None, **count),
        Label::Response(of, count) => (Kind::Response, Some(*of), **count),
        Label::Revision(revision) => (Kind::Revision, None, revision.0),
        Label::Nonce(nonce) => return Some((Kind::Nonce, None, numbers(nonce)?)),
        Label::Client(_) | Label::Count(_) | Label::Given(_) | Label::Instant(_) | Label::Stream(_) => return None,
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
        Label::Nonce(nonce) => *nonce = format!("1.{rank}").as_str().into(),
        Label::Client(_) | Label::Count(_) | Label::Given(_) | Label::Instant(_) | Label::Stream(_) => {}
    }
}

/// Returns the two numbers in a nonce of this crate's server. Their order is the order of the nonces.
fn numbers(nonce: &Nonce) -> Option<(u64, u64)> {
    let (stream, count) = nonce.as_str().split_once('.')?;
    Some((stream.parse().ok()?, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::Revision;

    /// A moment, a revision, a nonce, and the counters of two clients.
    struct State {
        at: Instant,
        revisions: [Revision; 2],
        nonces: [Nonce; 3],
        epochs: [u64; 3],
        streams: [(u64, u64); 2],
    }

    impl Relabel for State {
        fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
            self.at.relabel(by);
            for (stream, given) in &mut self.streams {
                by(Label::Stream(stream));
                by(Label::Given(given));
            }
            for (client, epoch) in self.epochs.iter_mut().enumerate() {
                by(Label::Client(client as u64 / 2));
                by(Label::Epoch(epoch));
            }
            self.revisions.iter_mut().for_each(|revision| revision.relabel(by));
            self.nonces.iter_mut().for_each(|nonce| nonce.relabel(by));
        }
    }

    #[test]
    fn labels_become_ranks_and_stay_in_order() {
        let now = Instant::EPOCH + core::time::Duration::from_secs(7);
        let mut state = State {
            at: now + core::time::Duration::from_secs(2),
            revisions: [Revision(40), Revision(0)],
            nonces: ["9.2".into(), "theirs".into(), "3.8".into()],
            epochs: [8, 5, 9],
            streams: [(9, 2), (12, 0)],
        };
        for _ in 0..2 {
            assert_eq!(canonical(&mut state, now), 2);
            assert_eq!(state.revisions, [Revision(1), Revision(0)], "none stays none");
            assert_eq!(state.nonces, ["1.2", "theirs", "1.1"]);
            assert_eq!(state.epochs, [2, 1, 1], "of each client by itself");
            assert_eq!(state.streams, [(1, 2), (2, 2)], "none gives a nonce again");
            assert_eq!(state.at, Instant::EPOCH + core::time::Duration::from_secs(2));
            state.at = now + core::time::Duration::from_secs(2);
        }
    }
}
