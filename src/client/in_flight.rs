//! What is under way of one type: the update that waits for its verdict, the responses that wait behind it, and the
//! answers to send. One update is out at a time ([design rule 2](crate::manual::rules#rule-2)); it belongs to the
//! session, all else to the stream.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::incoming::Incoming;
use super::update::{Offer, Rejection, Token};
use crate::ensure::ensure;
use crate::error::Status;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct InFlight {
    out: Option<Out>,
    /// The application is to be given no update now.
    blocked: bool,
    /// Responses that wait for the verdict before theirs.
    waiting: VecDeque<Incoming>,
    /// What is to be answered, in order.
    pending_acks: VecDeque<PendingAck>,
    /// How many responses came.
    serial: u64,
    /// The nonce of the last.
    nonce: Nonce,
}

/// An update that the application has not answered.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Out {
    pub(super) token: Token,
    pub(super) offer: Arc<Offer>,
    /// What the machine itself rejected of the same response.
    pub(super) faults: Vec<Rejection>,
    /// Names that are said not to exist and are held: the versions of that, once their removal is accepted (delta).
    pub(super) not_found: Vec<(ResourceName, Version)>,
    /// What is wanted and not in the response does not exist.
    pub(super) has_all: bool,
    /// The version of the response is one of all that the wildcard stands for.
    pub(super) completes: bool,
    /// Whether the response came on this stream, so that its answer can be sent.
    pub(super) live: bool,
    /// Names in the offer that were unwanted at some time since.
    pub(super) unsubscribed: BTreeSet<ResourceName>,
    /// Those of them that were not wanted when a later stream began, so that its first request did not claim them (delta).
    pub(super) unannounced: BTreeSet<ResourceName>,
    pub(super) seen: Option<Seen>,
}

/// How the resources of a response compare with what is held: found out as it was read, and good as long as nothing is
/// lost since. It spares a full-state type, of which each response has everything, two more passes.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Seen {
    pub(super) losses: u64,
    /// Which are not held, by their number.
    pub(super) new: Vec<usize>,
    /// None has a TTL.
    pub(super) plain: bool,
}

/// An ACK or NACK that is to be sent.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct PendingAck {
    pub(super) nonce: Nonce,
    pub(super) serial: u64,
    /// The version to claim, as it was at the verdict.
    pub(super) version: Version,
    pub(super) error: Option<Status>,
}

impl InFlight {
    // Responses.

    /// A response came: its number.
    pub(super) fn count(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// It was read, and waits for its turn.
    pub(super) fn wait(&mut self, mut incoming: Incoming) {
        self.nonce = incoming.nonce.clone();
        // What it was compared with is what it will be applied to, unless it has to wait.
        incoming.compared &= self.waiting.is_empty() && self.out.is_none() && !self.blocked;
        self.waiting.push_back(incoming);
    }

    /// The response whose turn it is, if the application may be given an update.
    pub(super) fn next(&mut self) -> Option<Incoming> {
        if self.out.is_some() || self.blocked { None } else { self.waiting.pop_front() }
    }

    pub(super) fn hold(&mut self, blocked: bool) {
        self.blocked = blocked;
    }

    // The update.

    pub(super) fn set_out(&mut self, out: Out) {
        debug_assert!(self.out.is_none(), "one update of a type at a time");
        self.out = Some(out);
    }

    /// The update that this is the verdict of.
    pub(super) fn take_out(&mut self, token: &Token) -> Option<Out> {
        self.out.take_if(|out| out.token == *token)
    }

    pub(super) fn out(&self) -> Option<&Out> {
        self.out.as_ref()
    }

    /// Names of the update are unwanted.
    pub(super) fn note_unsubscribed(&mut self, names: impl IntoIterator<Item = ResourceName>) {
        if let Some(out) = &mut self.out {
            out.unsubscribed.extend(names);
        }
    }

    /// Names of the update that the first request of a stream did not claim.
    pub(super) fn note_unsaid(&mut self, names: BTreeSet<ResourceName>) {
        if let Some(out) = &mut self.out {
            out.unannounced = names;
        }
    }

    // Answers.

    pub(super) fn answer(&mut self, ack: PendingAck) {
        self.pending_acks.push_back(ack);
    }

    pub(super) fn take_answer(&mut self) -> Option<PendingAck> {
        self.pending_acks.pop_front()
    }

    pub(super) fn leave_stream(&mut self) {
        self.waiting.clear();
        self.pending_acks.clear();
        self.serial = 0;
        self.nonce = Nonce::default();
        if let Some(out) = &mut self.out {
            out.live = false;
            out.unannounced.clear();
        }
    }

    // Questions.

    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    pub(super) fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// How many answers wait to be sent.
    pub(super) fn pending_acks(&self) -> usize {
        self.pending_acks.len()
    }

    /// How many responses are not answered.
    pub(super) fn unanswered(&self) -> usize {
        self.unjudged() + self.pending_acks.len()
    }

    /// How many responses of this stream wait for a verdict.
    pub(super) fn unjudged(&self) -> usize {
        self.waiting.len() + usize::from(self.out.as_ref().is_some_and(|out| out.live))
    }

    /// Whether a name has something on its way to the application.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.waiting.iter().any(|incoming| incoming.mentions(name))
            || self.out.as_ref().is_some_and(|out| out.offer.resources.have(name))
    }

    /// Whether the application may be removing something at this moment.
    pub(super) fn removes(&self) -> bool {
        self.out.as_ref().is_some_and(|out| !out.offer.removed.is_empty())
    }

    /// Whether all of it is to be forgotten when a stream begins of which nothing is wanted.
    pub(super) fn is_idle(&self) -> bool {
        self.out.is_none() && !self.blocked
    }

    /// What must hold.
    pub(super) fn check(&self, limit: usize) -> Result<(), String> {
        ensure!(self.unanswered() <= limit, "{} responses unanswered, limit {limit}", self.unanswered());
        ensure!(self.waiting.is_empty() || !self.is_idle(), "a response waits for nothing");
        ensure!(self.waiting.iter().all(|incoming| incoming.serial <= self.serial), "a response of the future waits");
        self.out.as_ref().map_or(Ok(()), Out::check)
    }

    /// What must hold when there is no stream.
    pub(super) fn check_no_stream(&self) -> Result<(), String> {
        ensure!(self.waiting.is_empty() && self.pending_acks.is_empty(), "a closed stream has a backlog");
        ensure!(self.serial == 0 && self.nonce.is_empty(), "a nonce outlived its stream");
        ensure!(!self.out.as_ref().is_some_and(|out| out.live), "an answer is owed to a closed stream");
        Ok(())
    }

    pub(super) fn relabel(&mut self, type_url: &TypeUrl, by: &mut dyn FnMut(Label<'_>)) {
        by(Label::Response(type_url, &mut self.serial));
        self.nonce.relabel(by);
        if let Some(out) = &mut self.out {
            out.token.relabel(by);
            out.seen.iter_mut().for_each(|seen| by(Label::Loss(type_url, &mut seen.losses)));
        }
        for incoming in &mut self.waiting {
            by(Label::Response(type_url, &mut incoming.serial));
            incoming.nonce.relabel(by);
        }
        for ack in &mut self.pending_acks {
            by(Label::Response(type_url, &mut ack.serial));
            ack.nonce.relabel(by);
        }
    }
}

impl Out {
    fn check(&self) -> Result<(), String> {
        let offer = &self.offer;
        ensure!(!offer.resources.is_empty() || !offer.removed.is_empty(), "an update of nothing is out");
        ensure!(offer.resources.names().is_sorted_by(|a, b| a < b), "an update is not in order");
        ensure!(offer.removed.is_sorted_by(|a, b| a < b), "removals are not in order");
        let twice = offer.removed.iter().find(|name| offer.resources.find(name.as_str()).is_some());
        ensure!(twice.is_none(), "{twice:?} is there and gone");
        let names: BTreeSet<&ResourceName> = match self.unsubscribed.is_empty() {
            true => BTreeSet::new(),
            false => offer.resources.names().chain(&offer.removed).collect(),
        };
        ensure!(self.unsubscribed.iter().all(|name| names.contains(name)), "a name left an update that it is not in");
        Ok(())
    }
}
