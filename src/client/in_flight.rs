//! The messages in flight of one type: the update that waits for its verdict, the responses that wait behind it, and
//! the ACKs and NACKs to send. One update is pending at a time ([design rule 2](crate::manual::rules#rule-2)); it
//! belongs to the session, everything else to the stream.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::config::Limits;
use super::incoming::{Incoming, Merged};
use super::resources::Resource;
use super::update::{Offer, Rejection, Token};
use super::waiting::{Merging, Waiting, relabel_merged};
use crate::ensure::ensure;
use crate::error::{Code, Status};
use crate::message::ResourceError;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct InFlight {
    out: Option<Out>,
    /// Whether updates to the application are blocked.
    blocked: bool,
    /// Responses that wait for an earlier verdict, or until updates are unblocked.
    waiting: Waiting,
    /// ACKs and NACKs to send, in order.
    pending_acks: VecDeque<PendingAck>,
    /// The number of responses received on this stream.
    serial: u64,
    /// The nonce of the last response.
    nonce: Nonce,
}

/// An update that waits for its verdict.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Out {
    pub(super) token: Token,
    pub(super) offer: Arc<Offer>,
    /// Faults that the machine itself found in the same response.
    pub(super) faults: Vec<Rejection>,
    /// The code of the NACK of the response, if there is one.
    pub(super) code: Code,
    /// Responses that were merged into the one of the update, and are answered before it.
    pub(super) merged: Vec<Merged>,
    /// Errors that later responses had about content of this update. They count after the verdict.
    pub(super) late_errors: Vec<ResourceError>,
    /// Held names that the server reports not to exist, each with the version of that report, which counts once the
    /// removal is accepted (delta).
    pub(super) not_found: Vec<(ResourceName, Version)>,
    /// Whether subscribed names that are absent from the response do not exist.
    pub(super) has_all: bool,
    /// Whether the version of the response covers all resources of the wildcard; `None` if the response has only
    /// heartbeats, which neither add a missing resource nor skip one.
    pub(super) completes: Option<bool>,
    /// Held names that the server may not have known when it made the response (SotW): its version does not cover them.
    pub(super) unheard: Vec<ResourceName>,
    /// Whether the response was received on this stream, so that its ACK or NACK can be sent.
    pub(super) live: bool,
    /// Names in the offer that were unsubscribed at some time since.
    pub(super) unsubscribed: BTreeSet<ResourceName>,
    /// Those of them that were not subscribed to when a later stream began, so that its first request did not claim
    /// them (delta).
    pub(super) unannounced: BTreeSet<ResourceName>,
    pub(super) seen: Option<Seen>,
}

/// The comparison of a response's resources with the held ones, made during reading, and valid as long as no held
/// resource is lost. Saves two passes over a full-state type, whose responses have everything.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Seen {
    pub(super) losses: u64,
    /// The positions of resources that are not held.
    pub(super) new: Vec<usize>,
    /// Whether no resource has a TTL, aliases, or a version in its wrapper.
    pub(super) plain: bool,
}

/// An ACK or NACK to send.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct PendingAck {
    pub(super) nonce: Nonce,
    pub(super) serial: u64,
    /// The version to send, as of the verdict.
    pub(super) version: Version,
    pub(super) error: Option<Status>,
}

impl InFlight {
    // Responses.

    /// Counts a response, and returns its number.
    pub(super) fn count(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Queues a response that was read.
    pub(super) fn wait(&mut self, incoming: Incoming, merging: &Merging) {
        self.nonce = incoming.nonce.clone();
        if self.out.is_none() && !self.blocked {
            self.waiting.pass(incoming);
        } else {
            self.waiting.push(incoming, merging);
        }
    }

    /// Takes the responses that wait, merged into one, if the application may be given an update.
    pub(super) fn next(&mut self, merging: &Merging) -> Option<Incoming> {
        if self.out.is_some() || self.blocked { None } else { self.waiting.take(merging) }
    }

    /// Returns whether a response was refused because too much waited, and forgets it.
    pub(super) fn take_overflowed(&mut self) -> bool {
        self.waiting.take_overflowed()
    }

    pub(super) fn hold(&mut self, blocked: bool) {
        self.blocked = blocked;
    }

    // The update.

    pub(super) fn set_out(&mut self, out: Out) {
        debug_assert!(self.out.is_none(), "one update of a type at a time");
        self.out = Some(out);
    }

    /// Takes the update that a verdict belongs to.
    pub(super) fn take_out(&mut self, token: &Token) -> Option<Out> {
        self.out.take_if(|out| out.token == *token)
    }

    pub(super) fn out(&self) -> Option<&Out> {
        self.out.as_ref()
    }

    /// Marks names of the update as unsubscribed.
    pub(super) fn note_unsubscribed(&mut self, names: impl IntoIterator<Item = ResourceName>) {
        if let Some(out) = &mut self.out {
            out.unsubscribed.extend(names);
        }
    }

    /// Marks names of the update that the first request of a stream did not claim.
    pub(super) fn note_unannounced(&mut self, names: BTreeSet<ResourceName>) {
        if let Some(out) = &mut self.out {
            out.unannounced = names;
        }
    }

    // ACKs and NACKs.

    /// Adds an ACK or NACK. Beyond the limit the oldest ACK is left out: that of a later response stands for it.
    pub(super) fn answer(&mut self, ack: PendingAck, limit: usize) {
        self.pending_acks.push_back(ack);
        if self.pending_acks.len() > limit {
            let accepted = self.pending_acks.iter().position(|ack| ack.error.is_none());
            self.pending_acks.remove(accepted.unwrap_or(0));
        }
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

    // Queries.

    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    pub(super) fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// Returns the number of ACKs and NACKs to send.
    pub(super) fn pending_acks(&self) -> usize {
        self.pending_acks.len()
    }

    /// Returns the number of unanswered responses.
    pub(super) fn unanswered(&self) -> usize {
        self.unjudged() + self.pending_acks.len()
    }

    /// Returns the number of responses of this stream that wait for a verdict.
    pub(super) fn unjudged(&self) -> usize {
        self.waiting.len() + usize::from(self.out.as_ref().is_some_and(|out| out.live))
    }

    /// Returns the version of each response that waits for a verdict, the last one first, and the content that the
    /// response has of a resource.
    pub(super) fn unjudged_content(&self, name: &str) -> impl Iterator<Item = (&Version, Option<Resource<'_>>)> {
        let out = self.out.iter().map(|out| &out.offer.resources);
        let all = self.waiting.iter().map(|incoming| &incoming.resources).chain(out);
        all.map(move |resources| (resources.version(), resources.find(name).map(|at| resources.at(at))))
    }

    /// Returns whether content of this resource waits for a verdict.
    pub(super) fn has_content(&self, name: &str) -> bool {
        self.unjudged_content(name).any(|(_, content)| content.is_some())
    }

    /// Returns whether a waiting response, or a resource of the pending update, concerns this name.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.waiting.iter().any(|incoming| incoming.mentions(name))
            || self.out.as_ref().is_some_and(|out| out.offer.resources.have(name))
    }

    /// Returns whether no update is pending or blocked, so that a type without subscribed names has no state to keep.
    pub(super) fn is_idle(&self) -> bool {
        self.out.is_none() && !self.blocked
    }

    /// Checks the invariants.
    pub(super) fn check(&self, limits: &Limits) -> Result<(), String> {
        let (acks, limit) = (self.pending_acks.len(), limits.waiting_responses);
        ensure!(acks <= limit, "{acks} answers wait, limit {limit}");
        ensure!(self.waiting.is_empty() || !self.is_idle(), "a response waits for nothing");
        self.waiting.check(limits, self.serial)?;
        self.out.as_ref().map_or(Ok(()), Out::check)
    }

    /// Checks the invariants that hold without a stream.
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
            relabel_merged(&mut out.merged, type_url, by);
        }
        self.waiting.relabel(type_url, by);
        for ack in &mut self.pending_acks {
            by(Label::Response(type_url, &mut ack.serial));
            ack.nonce.relabel(by);
        }
    }
}

impl Out {
    /// Takes the errors that later responses had about content of this update, as a response with nothing else. `None` if
    /// there are none, or their stream is closed.
    pub(super) fn take_late_errors(&mut self) -> Option<Incoming> {
        let errors = core::mem::take(&mut self.late_errors);
        let version = || self.offer.resources.version().clone();
        let has_any = self.live && !errors.is_empty();
        has_any.then(|| Incoming { errors, ..Incoming::new(Nonce::default(), 0, version()) })
    }

    /// Returns whether the machine itself found no fault.
    pub(super) fn is_faultless(&self) -> bool {
        self.faults.is_empty() && self.merged.iter().all(|merged| merged.faults.is_empty())
    }

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
