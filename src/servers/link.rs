//! A server, and the stream to it.

use alloc::vec::Vec;

use super::action::Stream;
use super::config::ServerId;
use crate::client::{Backoff, Client, Update, Variant};
use crate::model::{Label, Relabel};
use crate::name::TypeUrl;
use crate::time::Instant;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Link<V: Variant> {
    pub(super) client: Client<V>,
    pub(super) backoff: Backoff,
    pub(super) state: State,
    /// Counts the attempts.
    attempt: u64,
    /// The last attempt failed, and no response has come since.
    pub(super) failing: bool,
    /// The updates that wait for their verdict, at most one per type.
    pub(super) out: Vec<Out>,
    /// The servers that share a list with this one: the same names may be subscribed to at them.
    pub(super) related: Vec<usize>,
}

/// An update that waits for its verdict.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Out {
    pub(super) update: Update,
    /// The servers that were asked for the same names at some time since: their updates of the type wait.
    pub(super) blocks: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum State {
    /// There is no stream. The next one may be opened from this time on.
    Down(Instant),
    /// The driver was asked to open a stream.
    Connecting,
    Up {
        /// A response came on this stream.
        answered: bool,
    },
}

impl<V: Variant> Link<V> {
    pub(super) fn new(client: Client<V>, backoff: Backoff, related: Vec<usize>) -> Self {
        let state = State::Down(Instant::EPOCH);
        Self { client, backoff, state, attempt: 0, failing: false, out: Vec::new(), related }
    }

    /// Returns the current attempt.
    pub(super) fn attempt(&self, server: usize) -> Stream {
        Stream { server: ServerId(server), attempt: self.attempt }
    }

    /// Returns whether this attempt is the current one.
    pub(super) fn is(&self, stream: Stream) -> bool {
        !matches!(self.state, State::Down(_)) && stream.attempt == self.attempt
    }

    pub(super) fn is_up(&self, stream: Stream) -> bool {
        matches!(self.state, State::Up { .. }) && stream.attempt == self.attempt
    }

    pub(super) fn connect(&mut self) {
        self.attempt += 1;
        self.state = State::Connecting;
    }

    pub(super) fn judges(&self, type_url: &TypeUrl) -> bool {
        self.out.iter().any(|out| out.update.type_url() == type_url)
    }

    /// Returns whether updates of a type from another server wait for a verdict on one of this server.
    pub(super) fn blocks(&self, other: usize, type_url: &TypeUrl) -> bool {
        self.out.iter().any(|out| out.update.type_url() == type_url && out.blocks.contains(&other))
    }
}

impl<V: Variant> Relabel for Link<V> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.client.relabel(by);
        by(Label::Attempt(&mut self.attempt));
        if let State::Down(until) = &mut self.state {
            until.relabel(by);
        }
        self.out.iter_mut().for_each(|out| out.update.relabel(by));
    }
}
