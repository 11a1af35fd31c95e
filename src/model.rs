//! Support for model checkers that use machines as states.
//!
//! A machine is `Clone + Eq + Hash`, so it can be (part of) the state of a model without an adapter. But some of its
//! values only grow: nonces, epochs, revisions, counters. Two states that differ only in these behave alike, yet
//! compare as different, so no cycle is ever found. [`canonical`] therefore relabels a state before it is compared:
//! each label becomes its rank among the labels of its kind, and moments become relative to now.
//!
//! The [chapter on testing](crate::manual::_06_testing) of the manual has a complete model and fuzz target.
//!
//! The crate `xds-machine-testing` has a client and a server to build a model around (`duo::Duo`), and the search over
//! such a model (`search`).

mod ranks;

pub use self::ranks::{Ranks, canonical};
use crate::name::{Nonce, TypeUrl};
use crate::revision::Revision;
use crate::time::Instant;

/// A value in a state that has an order and no other meaning.
#[derive(Debug)]
#[non_exhaustive]
pub enum Label<'a> {
    /// Counts the attempts to open a stream to a server. Zero means no attempt.
    Attempt(&'a mut u64),
    /// Not a label: the labels that follow belong to the client of this id
    /// ([`Config::with_id`](crate::client::Config::with_id)). The counters of different clients are never compared, so
    /// the labels of each client may be ranked separately.
    Client(u64),
    /// Counts something that no behaviour depends on.
    Count(&'a mut u64),
    /// Counts the streams of a client.
    Epoch(&'a mut u64),
    /// Counts how often a client lost its held resources of a type.
    Loss(&'a TypeUrl, &'a mut u64),
    /// Counts the nonces that a server's stream has given.
    Given(&'a mut u64),
    /// A moment; only its distance from now matters.
    Instant(&'a mut Instant),
    /// A nonce. Compared for equality only; the empty nonce means none.
    Nonce(&'a mut Nonce),
    /// Counts the requests of a client's stream. Zero means no request.
    Request(&'a mut u64),
    /// Counts the responses of a type on a client's stream. Zero means no response.
    Response(&'a TypeUrl, &'a mut u64),
    /// A revision of a source.
    Revision(&'a mut Revision),
    /// The number of a server's stream. This number and [`Given`](Self::Given) determine the nonces.
    Stream(&'a mut u64),
}

/// A state, or part of a state, that has labels.
pub trait Relabel {
    /// Passes each label to `by`, which may read or change it. The order of labels of one kind must not change.
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>));
}

impl<T: Relabel> Relabel for Option<T> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        if let Some(some) = self {
            some.relabel(by);
        }
    }
}

impl Relabel for Nonce {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        by(Label::Nonce(self));
    }
}

impl Relabel for Revision {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        by(Label::Revision(self));
    }
}

impl Relabel for Instant {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        by(Label::Instant(self));
    }
}

macro_rules! messages_have_a_nonce {
    ($($message:ty)+) => {
        $(impl Relabel for $message {
            fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
                self.nonce.relabel(by);
            }
        })+
    };
}

messages_have_a_nonce! {
    crate::message::sotw::Request
    crate::message::sotw::Response
    crate::message::delta::Request
    crate::message::delta::Response
}
