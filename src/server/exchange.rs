//! The responses of a type that wait for their ACK or NACK, and the client's verdicts on earlier ones.
//!
//! A response with content holds back the next one for a bounded time
//! ([`Config::with_answer_wait`](super::Config::with_answer_wait)). Afterwards a newer response takes its place, and its
//! late answer is stale (S-FLOW-01). Heartbeats go out beside it, and hold nothing back.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::extent::Extent;
use super::rejections::Rejections;
use crate::ensure::ensure;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, Version};
use crate::revision::Revision;
use crate::time::Instant;

/// The number of responses with content whose ACK or NACK is recognised: the last one, and the one whose place it took.
const RECOGNISED: usize = 2;

/// The number of earlier responses, of a client that does not answer, whose late NACK is recognised.
const SHARED: usize = 16;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Exchange {
    /// Nonce of the last response.
    nonce: Nonce,
    /// Responses without an ACK or NACK, the oldest first: at most two with content, and one with heartbeats alone.
    out: Vec<Out>,
    /// No ACK or NACK is awaited, because nothing is subscribed (S-SOTW-36).
    abandoned: bool,
    /// Consecutive requests with a nonce of no response of the stream.
    foreign: u32,
    rejections: Option<Box<Rejections>>,
}

/// A response without an ACK or NACK.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Out {
    pub(super) nonce: Nonce,
    pub(super) version: Version,
    /// The revision up to which the response serves the client.
    pub(super) revision: Revision,
    pub(super) extent: Extent,
    /// The time until which the response holds back the next one. `None`: the response has heartbeats alone.
    pub(super) until: Option<Instant>,
    /// The names of resources that the response has as heartbeats.
    pub(super) beats: Vec<ResourceName>,
    /// Whether a newer response took its place, because the answer took too long.
    pub(super) is_replaced: bool,
    /// Nonces of earlier responses that share the verdict of this one, at most [`SHARED`].
    pub(super) shares: Vec<Nonce>,
    /// The client's error message, if it rejected one of these.
    pub(super) refused: Option<Box<str>>,
}

/// A response that has its ACK or NACK.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Answered {
    pub(super) version: Version,
    pub(super) revision: Revision,
    /// The names of resources that the response had as heartbeats.
    pub(super) beats: Vec<ResourceName>,
    /// Whether a newer response had taken the place of this one.
    pub(super) is_late: bool,
}

impl Exchange {
    pub(super) fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// Returns the time until which an unanswered response holds back the next one, if that is later than `now`.
    #[inline]
    pub(super) fn waits_until(&self, now: Instant) -> Option<Instant> {
        self.content().next_back()?.until.filter(|until| now < *until)
    }

    /// Returns whether the ACK or NACK of a response with content is awaited.
    #[inline]
    pub(super) fn is_out(&self) -> bool {
        self.content().next().is_some()
    }

    /// Returns whether the answer to a new name may be sent at once, beside the responses that wait for their ACK or
    /// NACK: two are recognised.
    pub(super) fn has_room_for_answers(&self) -> bool {
        self.count_out() < RECOGNISED
    }

    /// Returns the version of the last response with content that waits for its ACK or NACK.
    pub(super) fn version_out(&self) -> Option<&Version> {
        Some(&self.content().next_back()?.version)
    }

    /// Returns the revision up to which the client had accepted everything before the responses that wait.
    pub(super) fn revision_before(&self) -> Option<Revision> {
        self.content().next().map(|out| out.extent.after.unwrap_or_default())
    }

    /// Returns the number of responses with content that wait for their ACK or NACK.
    pub(super) fn count_out(&self) -> usize {
        self.content().count()
    }

    fn content(&self) -> impl DoubleEndedIterator<Item = &Out> {
        self.out.iter().filter(|out| out.until.is_some() && !self.abandoned)
    }

    /// Notes that a response is sent.
    pub(super) fn send(&mut self, now: Instant, sent: Out) {
        let (has_content, limit) = match sent.until {
            Some(_) => (true, RECOGNISED - 1),
            None => (false, 0),
        };
        if self.abandoned {
            self.out.clear();
        }
        let is_alike = |out: &Out| out.until.is_some() == has_content;
        if self.out.iter().filter(|out| is_alike(out)).count() > limit {
            self.forget_oldest(is_alike);
        }
        let is_overdue = |out: &&mut Out| has_content && out.until.is_some_and(|until| until <= now);
        self.out.iter_mut().filter(is_overdue).for_each(|out| out.is_replaced = true);
        self.nonce = sent.nonce.clone();
        // Grows by exactly one: most streams have one response of a type in flight, or none.
        self.out.reserve_exact(1);
        self.out.push(sent);
        self.abandoned = false;
    }

    /// Stops recognising the oldest response of a kind. What it had shares the verdict of the next one of the kind.
    fn forget_oldest(&mut self, is_alike: impl Fn(&Out) -> bool) {
        let Some(at) = self.out.iter().position(&is_alike) else { return };
        let oldest = self.out.remove(at);
        if let Some(next) = self.out.iter_mut().find(|out| is_alike(out) && !out.extent.whole) {
            next.extent.join(oldest.extent);
            next.beats.extend(oldest.beats);
            next.refused = next.refused.take().or(oldest.refused);
            let shares = oldest.shares.into_iter().chain([oldest.nonce]).chain(core::mem::take(&mut next.shares));
            next.shares = shares.take(SHARED).collect();
        }
    }

    /// Handles the end of all subscriptions: no ACK or NACK is awaited.
    pub(super) fn abandon(&mut self) {
        self.abandoned = !self.out.is_empty();
    }

    /// Handles the nonce of a request, and its error message if it is a NACK. `version`: the version that the client
    /// accepted last, where a request has it (SotW). Returns the response, if one with this nonce waits for its ACK or
    /// NACK.
    pub(super) fn handle_answer(
        &mut self,
        nonce: &Nonce,
        version: Option<&Version>,
        rejection: Option<&str>,
    ) -> Option<Answered> {
        let at = self.out.iter().position(|out| out.nonce == *nonce)?;
        let answered = self.out.remove(at);
        let (has_content, later) = (answered.until.is_some(), &self.out[at..]);
        // What a later response answered by name has a verdict of its own.
        let is_resent = later.iter().any(|out| out.extent.is_all());
        let later = later.iter().filter(|out| out.until.is_some()).filter_map(|out| out.extent.more.as_deref());
        let again = later.flat_map(|more| more.names.iter().cloned()).collect();
        self.foreign = 0;
        self.settle_before(at, has_content, version, rejection);
        if !(is_resent && rejection.is_some()) {
            self.judge(answered.extent, has_content, rejection.or(answered.refused.as_deref()), again);
        }
        if self.out.is_empty() {
            self.out = Vec::new(); // an idle stream keeps no memory for it
            self.abandoned = false;
        }
        self.tidy();
        let Out { version, revision, beats, is_replaced: is_late, .. } = answered;
        Some(Answered { version, revision, beats, is_late })
    }

    /// Settles the responses before the answered one. In delta each response has an answer of its own, in order: that of
    /// content settles what was sent before, and that of heartbeats nothing else. In SotW a nonce stands for all that
    /// was sent before, of which the client has accepted up to `version`.
    fn settle_before(&mut self, at: usize, has_content: bool, version: Option<&Version>, rejection: Option<&str>) {
        let up_to = |version: &Version| self.out[..at].iter().rposition(|out| out.version == *version);
        let accepted = version.and_then(up_to).map_or(0, |last| last + 1);
        let all = has_content || (version.is_some() && rejection.is_some());
        let settled: Vec<Out> = self.out.drain(..if all { at } else { accepted }).collect();
        for out in settled.into_iter().filter(|out| out.until.is_some()) {
            let is_rejected = version.is_some_and(|version| *version != out.version);
            self.judge(out.extent, true, rejection.filter(|_| is_rejected).or(out.refused.as_deref()), BTreeSet::new());
        }
    }

    /// Handles the verdict on a response, with content or with heartbeats alone. `again`: names that were answered since.
    fn judge(&mut self, extent: Extent, has_content: bool, rejection: Option<&str>, again: BTreeSet<ResourceName>) {
        let has_resources = has_content || !extent.is_nothing();
        match (rejection.filter(|_| has_resources), &mut self.rejections, &extent.more) {
            (Some(reason), ..) => self.rejections.get_or_insert_default().add(extent, reason, again),
            (None, Some(_), _) if has_content && extent.is_all() => self.rejections = None, // it has every resource
            (None, Some(rejections), _) if has_content => rejections.accept(),
            (None, Some(rejections), Some(more)) => rejections.accept_names(&more.names),
            _ => {}
        }
    }

    /// Notes a NACK that is no answer to a response in flight. The response that shares the verdict of the rejected one is
    /// rejected with it.
    pub(super) fn refuse(&mut self, nonce: &Nonce, reason: &str) {
        if let Some(out) = self.out.iter_mut().find(|out| out.shares.contains(nonce)) {
            out.refused.get_or_insert_with(|| reason.into());
        }
    }

    /// Counts a request with a nonce of no response of the stream. Returns the number of consecutive ones.
    pub(super) fn count_foreign(&mut self) -> u32 {
        self.foreign = self.foreign.saturating_add(1);
        self.foreign
    }

    /// Resets the count after a request that is no ACK or NACK, and not stale.
    pub(super) fn reset_foreign(&mut self) {
        self.foreign = 0;
    }

    // Rejections.

    /// Notes the names of a response, with the revision since which each has its state: their rejections end.
    pub(super) fn note_sent<'a>(&mut self, names: impl Iterator<Item = (&'a ResourceName, Revision)>, limit: usize) {
        if let Some(rejections) = &mut self.rejections {
            rejections.note_sent(names, limit);
            self.tidy();
        }
    }

    pub(super) fn has_rejections(&self) -> bool {
        self.rejections.is_some()
    }

    /// Drops all rejections, because every resource is answered anew. The responses in flight keep their verdicts.
    pub(super) fn forget_rejections(&mut self) {
        self.rejections = None;
    }

    // Queries.

    /// Returns whether a response whose ACK or NACK is awaited satisfies `had`.
    pub(super) fn is_in_flight(&self, had: impl Fn(&Extent) -> bool) -> bool {
        self.content().any(|out| had(&out.extent))
    }

    /// Returns the client's error message for the last rejected response that had a resource, unless the resource was
    /// sent again since. `had` says whether a response had it.
    pub(super) fn rejection(&self, name: &ResourceName, had: impl Fn(&Extent) -> bool) -> Option<&str> {
        self.rejections.as_ref()?.reason(name, had)
    }

    /// Returns the responses in flight and the rejected responses.
    pub(super) fn extents(&self) -> impl Iterator<Item = &Extent> {
        self.out.iter().map(|out| &out.extent).chain(self.rejected_extents())
    }

    /// Returns the rejected responses.
    pub(super) fn rejected_extents(&self) -> impl Iterator<Item = &Extent> {
        self.rejections.iter().flat_map(|rejections| rejections.extents())
    }

    fn tidy(&mut self) {
        if self.rejections.as_ref().is_some_and(|rejections| rejections.is_empty()) {
            self.rejections = None;
        }
    }

    /// Checks the invariants. `sent`: nonces that the stream has issued.
    pub(super) fn check(&self, sent: u64) -> Result<(), String> {
        ensure!(!self.out.is_empty() || !self.abandoned, "no response is in flight, and one is abandoned");
        ensure!(self.out.iter().all(|out| !out.nonce.is_empty()), "a response with no nonce is in flight");
        let content = self.out.iter().filter(|out| out.until.is_some()).count();
        ensure!(content <= RECOGNISED, "{content} responses with content are in flight");
        ensure!(self.out.len() <= content + 1, "several responses with heartbeats are in flight");
        if let Some((_, count)) = self.nonce.as_str().split_once('.') {
            let given = count.parse().is_ok_and(|count: u64| count <= sent);
            ensure!(given, "{} is no nonce of this stream, which gave {sent}", self.nonce);
        }
        self.rejections.as_ref().map_or(Ok(()), |rejections| rejections.check())
    }

    pub(super) fn foreign(&self) -> u32 {
        self.foreign
    }
}

impl Relabel for Exchange {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.nonce.relabel(by);
        for out in &mut self.out {
            out.nonce.relabel(by);
            out.revision.relabel(by);
            out.extent.relabel(by);
            out.until.relabel(by);
            out.shares.iter_mut().for_each(|nonce| nonce.relabel(by));
        }
        if let Some(rejections) = &mut self.rejections {
            rejections.relabel(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn send(exchange: &mut Exchange, nonce: &str, version: &str, until: Option<Instant>) {
        let (nonce, version, extent) =
            (nonce.into(), version.into(), Extent::of_names(Revision(1), [ResourceName::from("a")].into()));
        let out = Out {
            nonce,
            version,
            revision: Revision(1),
            extent,
            until,
            beats: Vec::new(),
            is_replaced: false,
            shares: Vec::new(),
            refused: None,
        };
        exchange.send(Instant::EPOCH, out);
    }

    #[test]
    fn the_version_in_a_sotw_answer_settles_what_was_sent_up_to_it() {
        let (mut exchange, until) = (Exchange::default(), Some(Instant::EPOCH + Duration::from_secs(1)));
        send(&mut exchange, "1.1", "v1", until);
        send(&mut exchange, "1.2", "v2", until);
        send(&mut exchange, "1.3", "v2", None);
        let first = exchange.clone();
        assert!(exchange.handle_answer(&"1.3".into(), Some(&"v2".into()), None).is_some());
        assert_eq!(exchange.count_out(), 0, "the client left the ACK of the first response out");

        exchange = first;
        assert!(exchange.handle_answer(&"1.3".into(), Some(&"v1".into()), None).is_some());
        assert_eq!(exchange.version_out(), Some(&"v2".into()), "the client has yet to judge it");
    }
}
