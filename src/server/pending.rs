//! Pending answers: names to answer, whether they changed or not, and the resources of the wildcard.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use core::mem::take;

use super::claims::Claims;
use super::response_limit::Progress;
use super::wanted::Wanted;
use crate::ensure::ensure;
use crate::name::ResourceName;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Pending {
    /// Names to answer, including collections and aliases.
    names: BTreeSet<ResourceName>,
    wildcard: Wildcard,
    /// Whether a response is sent even if it is empty, because the client waits for one (S-SOTW-04, S-DELTA-05).
    reply: bool,
    /// Whether a request asked for something since the last response.
    is_new: bool,
    /// Whether the next response begins with the removals, because the changes left no room for them in the last one.
    removals_first: bool,
    /// Resources that the client claims, some of which may be removed.
    claims: Option<Box<Claims>>,
}

/// The progress of the answer to a wildcard.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) enum Wildcard {
    /// No answer is pending.
    #[default]
    Answered,
    /// The answer has not begun.
    Asked,
    /// The answer has not begun. The client has all resources but those that are pending by name.
    Claimed,
    /// The answer continues from here.
    Begun(Box<Progress>),
}

impl Pending {
    /// Returns whether nothing is pending.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.reply
            && self.wildcard == Wildcard::Answered
            && self.names.is_empty()
            && !self.claims.as_ref().is_some_and(|claims| claims.is_pending())
    }

    pub(super) fn names(&self) -> &BTreeSet<ResourceName> {
        &self.names
    }

    pub(super) fn wildcard(&self) -> &Wildcard {
        &self.wildcard
    }

    /// Returns whether the answer to the wildcard is pending, in whole or in part.
    pub(super) fn has_wildcard(&self) -> bool {
        self.wildcard != Wildcard::Answered
    }

    /// Returns whether a request asked for something since the last response.
    pub(super) fn is_new(&self) -> bool {
        self.is_new && !self.is_empty()
    }

    /// Notes that a request asked for something (`true`), or that a response answered as much as there was room for.
    pub(super) fn set_new(&mut self, is_new: bool) {
        self.is_new = is_new;
    }

    pub(super) fn reply(&self) -> bool {
        self.reply
    }

    pub(super) fn removals_first(&self) -> bool {
        self.removals_first
    }

    /// Notes whether the next response begins with the removals.
    pub(super) fn set_removals_first(&mut self, removals_first: bool) {
        self.removals_first = removals_first;
    }

    pub(super) fn claims(&self) -> Option<&Claims> {
        self.claims.as_deref()
    }

    // Requests.

    /// Makes a name pending. `limit` bounds the names that only the wildcard or a collection covers: beyond it these
    /// are answered by a complete answer to the wildcard and the collections. Returns these names: that answer must
    /// have them, whatever the client was sent or claims.
    pub(super) fn add(&mut self, name: ResourceName, wanted: &Wanted, limit: usize) -> BTreeSet<ResourceName> {
        self.names.insert(name);
        if self.names.len() <= wanted.names().len() + limit {
            return BTreeSet::new();
        }
        let (own, covered) = take(&mut self.names).into_iter().partition(|name| wanted.names().contains(name));
        self.names = own;
        self.names.extend(wanted.globs().iter().cloned());
        if wanted.wildcard() {
            self.wildcard = Wildcard::Asked;
        }
        covered
    }

    pub(super) fn remove(&mut self, name: &ResourceName) {
        self.names.remove(name);
    }

    /// Keeps only the subscribed names.
    pub(super) fn retain_wanted(&mut self, wanted: &Wanted) {
        self.names.retain(|name| wanted.covers(name.as_str()));
    }

    /// Makes the wildcard pending, for the first time or again.
    pub(super) fn add_wildcard(&mut self) {
        self.wildcard = Wildcard::Asked;
        self.reply = true;
    }

    /// Drops the pending wildcard. Subscribed names that its answer would have covered become pending by themselves.
    pub(super) fn remove_wildcard(&mut self, wanted: &Wanted) {
        if take(&mut self.wildcard) != Wildcard::Answered {
            self.names = wanted.names().clone();
        }
        self.retain_wanted(wanted);
    }

    /// Notes that the client has all resources that the answer to the wildcard would have, but `rest`.
    pub(super) fn note_claimed(&mut self, rest: impl Iterator<Item = ResourceName>) {
        self.wildcard = Wildcard::Claimed;
        self.names.extend(rest);
    }

    pub(super) fn set_reply(&mut self, reply: bool) {
        self.reply = reply;
    }

    pub(super) fn set_claims(&mut self, claims: Claims) {
        self.claims = Some(Box::new(claims)).filter(|claims| !claims.is_empty());
    }

    /// Drops the claimed version of a name: the resource is to be sent.
    pub(super) fn unclaim(&mut self, name: &ResourceName) {
        if let Some(claims) = &mut self.claims {
            claims.unclaim(name);
        }
    }

    /// Notes a name subscribed while a response is in flight: the client may have a resource of that response by it.
    pub(super) fn note_late(&mut self, name: ResourceName) {
        self.claims.get_or_insert_default().add_late(name);
    }

    /// Notes that a name was unsubscribed: the client may have a resource of it by a pending name.
    pub(super) fn note_parted(&mut self) {
        if !self.names.is_empty() {
            self.claims.get_or_insert_default().note_parted();
        }
    }

    /// Notes resources that the client may have though no name subscribes to them: their removal is sent if that is so.
    pub(super) fn note_left<'a>(&mut self, names: impl Iterator<Item = &'a ResourceName>) {
        let mut names = names.peekable();
        if names.peek().is_some() {
            self.claims.get_or_insert_default().add_left(names.cloned());
        }
    }

    // Answers.

    /// Takes the pending names, to answer them.
    pub(super) fn take_names(&mut self) -> BTreeSet<ResourceName> {
        take(&mut self.names)
    }

    /// Takes the claims, if names were subscribed while a response was in flight, or others unsubscribed meanwhile.
    #[inline]
    pub(super) fn take_late(&mut self) -> Option<Box<Claims>> {
        self.claims.take_if(|claims| claims.has_late())
    }

    pub(super) fn take_claims(&mut self) -> Option<Box<Claims>> {
        self.claims.take()
    }

    /// Puts back the names for which there was no room.
    pub(super) fn put_back(&mut self, rest: BTreeSet<ResourceName>) {
        self.names = rest;
    }

    /// Notes that the wildcard is answered up to `progress`; `None`: completely.
    pub(super) fn set_progress(&mut self, progress: Option<Progress>) {
        self.wildcard = progress.map_or(Wildcard::Answered, |progress| Wildcard::Begun(Box::new(progress)));
    }

    /// Checks the invariants.
    pub(super) fn check(&self, wanted: &Wanted) -> Result<(), String> {
        let astray = self.names.iter().find(|name| !wanted.covers(name.as_str()));
        ensure!(astray.is_none(), "{astray:?} is pending and not wanted");
        ensure!(!self.has_wildcard() || wanted.wildcard(), "an answer to a wildcard that is not wanted");
        self.claims.as_ref().map_or(Ok(()), |claims| claims.check(wanted))
    }
}
