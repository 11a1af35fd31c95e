//! For model checkers: machines as states.
//!
//! A machine is `Clone + Eq + Hash`, so it can be (part of) the state of a model, with no adapter. But some of what it
//! holds only ever grows: nonces, epochs, revisions, counters. Two states that differ in nothing else behave alike, and
//! yet are two; nothing that repeats is ever seen to repeat. So before a state is compared it is relabeled: each label
//! becomes its rank among the labels of its kind. Time is made relative to now in the same way. [`canonical`]
//! does both.
//!
//! A model and a fuzz target in full are in the [chapter on testing](crate::manual::_06_testing) of the manual.
//!
//! The crate `xds-machine-testing` has this for all kinds (`canonical::canonicalize`), a client and a server to build a model
//! around (`duo::Duo`), and the search.

mod ranks;

pub use self::ranks::{Ranks, canonical};
use crate::name::{Nonce, TypeUrl};
use crate::revision::Revision;
use crate::time::Instant;

/// Something in a state that has an order and no meaning of its own.
#[derive(Debug)]
#[non_exhaustive]
pub enum Label<'a> {
    /// Counts the attempts to have a stream to a server. Zero means that there was none.
    Attempt(&'a mut u64),
    /// No label: those that follow are of the client of this id ([`Config::with_id`](crate::client::Config::with_id)).
    /// What one client counts is never compared with what another does, so the labels of each may be ranked by themselves.
    Client(u64),
    /// Counts the streams of a client.
    Epoch(&'a mut u64),
    /// Counts how often a client lost what it held of a type.
    Loss(&'a TypeUrl, &'a mut u64),
    /// How many nonces a server's stream has given.
    Given(&'a mut u64),
    /// A moment; its distance from now is what counts.
    Instant(&'a mut Instant),
    /// A nonce. Compared for equality only; the empty one means none.
    Nonce(&'a mut Nonce),
    /// Counts the requests of a client's stream. Zero means that there was none.
    Request(&'a mut u64),
    /// Counts the responses of a type on a client's stream. Zero means that there was none.
    Response(&'a TypeUrl, &'a mut u64),
    /// A revision of a source.
    Revision(&'a mut Revision),
    /// The number of a server's stream. It and the next make the nonces, and nothing else.
    Stream(&'a mut u64),
}

/// A state, or part of one, that has labels.
pub trait Relabel {
    /// Shows each label, to be looked at or changed. The order of labels of one kind must stay.
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
