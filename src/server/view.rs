//! What a client has been told: go-control-plane's `returnedResources`, compressed.
//!
//! The many are told by position: all content up to one revision of the source, and all removals up to another. The few
//! that were told besides are kept by name, and the name is that of the resource, never the one that asked for it: a
//! resource may be wanted by its name, an alias, a collection and the wildcard, and any of these may leave.
//!
//! Three rules keep the view right, whatever is forgotten:
//!
//! 1. *By resource.* A resource that is sent is noted under its own name; unsubscribing never touches the view.
//! 2. *Exactness is a privilege.* A change that came to nothing ([`Entry::before`]) is passed over in silence only while
//!    the positions describe the client exactly. Otherwise all that is newer than the positions is told.
//! 3. *Forgetting is safe.* What was told by name may be dropped at any time: that costs duplicates, and never a lost change.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::resource::Resource;
use super::sent_aliases::SentAliases;
use super::source::Entry;
use crate::ensure::ensure;
use crate::model::{Label, Relabel};
use crate::name::ResourceName;
use crate::revision::Revision;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct View {
    /// All content up to this revision was told, or is pending. `None`: nothing was looked at yet.
    sent_to: Option<Revision>,
    /// The same of removals, which may be held back.
    removals_sent_to: Revision,
    /// The oldest removals that the client may have to be told again: something that stands for many left while a response was
    /// in flight, and the client may take that all the same ([design rule 5](crate::manual::rules#rule-5)).
    unsubscribed_since: Option<Revision>,
    /// Something newer than these revisions was told besides.
    inexact: bool,
    /// Nearly always `None`.
    few: Option<Box<Few>>,
}

/// What the positions do not say.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Few {
    /// What was told ahead of the positions, and at which revision.
    sent_ahead: BTreeMap<ResourceName, Revision>,
    aliases: SentAliases,
    /// Names whose error the client was told, so that their absence has to be told as well (SotW).
    reported_errors: BTreeSet<ResourceName>,
    /// What is gone and stays with the client for now: removals that wait for what refers to it (SotW).
    deferred: Vec<Resource>,
}

/// Up to where something was told.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Reach {
    /// No further than before.
    #[default]
    Nowhere,
    /// Up to this revision, for there was no room for more.
    Upto(Revision),
    /// All that there is.
    All,
}

static NO_ALIASES: SentAliases = SentAliases::NONE;
static NO_ERRORS: BTreeSet<ResourceName> = BTreeSet::new();

impl View {
    /// Up to where content was told; `None` if the source was not looked at yet.
    #[inline]
    pub(super) fn sent_to(&self) -> Option<Revision> {
        self.sent_to
    }

    #[inline]
    pub(super) fn removals_sent_to(&self) -> Revision {
        self.removals_sent_to
    }

    /// Up to where both were told.
    #[inline]
    pub(super) fn complete_to(&self) -> Revision {
        self.sent_to.map_or(Revision::default(), |sent_to| sent_to.min(self.removals_sent_to))
    }

    /// Whether something was told by name, of what the positions do not say.
    #[inline]
    pub(super) fn has_sent_ahead(&self) -> bool {
        self.few.as_ref().is_some_and(|few| !few.sent_ahead.is_empty())
    }

    /// At which revision a resource was told ahead of the positions.
    fn sent_ahead(&self, name: &ResourceName) -> Option<Revision> {
        self.few.as_ref()?.sent_ahead.get(name).copied()
    }

    /// Whether a resource was told by name as it is since `since`, whatever the positions say.
    pub(super) fn is_sent_ahead(&self, name: &ResourceName, since: Revision) -> bool {
        self.sent_ahead(name).is_some_and(|sent_ahead| sent_ahead >= since)
    }

    /// Whether a resource that is there is news to the client. Nothing is before the source was looked at: until then all
    /// that is wanted is pending.
    #[inline]
    pub(super) fn is_news(&self, name: &ResourceName, entry: &Entry<'_>) -> bool {
        match self.inexact {
            false => self.is_news_to_all(entry),
            true => self.is_newer(name, entry),
        }
    }

    /// The same where nothing was told by name.
    #[inline]
    fn is_news_to_all(&self, entry: &Entry<'_>) -> bool {
        self.sent_to.is_some_and(|sent_to| entry.is_news(sent_to, sent_to))
    }

    /// Whether it is news that a name does not exist.
    pub(super) fn is_removal_news(&self, name: &ResourceName, entry: &Entry<'_>) -> bool {
        let Some(sent_to) = self.sent_to else { return false };
        match self.inexact {
            false => entry.is_news(self.removals_sent_to, sent_to),
            true => entry.since > self.removals_sent_to.max(self.sent_ahead(name).unwrap_or_default()),
        }
    }

    /// Whether it is news that a name has an error. Of a name that does not exist it is told with its removal.
    pub(super) fn is_error_news(&self, name: &ResourceName, entry: &Entry<'_>) -> bool {
        self.is_newer(name, entry)
    }

    /// Whether what a name is now began after all that was told of it.
    fn is_newer(&self, name: &ResourceName, entry: &Entry<'_>) -> bool {
        self.sent_ahead(name).max(self.sent_to).is_some_and(|told_to| entry.since > told_to)
    }

    /// Whether a change is passed over in silence, for it came to nothing.
    pub(super) fn is_silent(&self, entry: &Entry<'_>) -> bool {
        let changed = self.sent_to.is_some_and(|sent_to| entry.since > sent_to);
        changed && !self.inexact && !self.is_news_to_all(entry)
    }

    // What was told.

    /// A client stopped asking for something while a response was in flight.
    pub(super) fn note_unsubscribed(&mut self) {
        if self.sent_to.is_some() {
            let since = self.complete_to();
            self.unsubscribed_since = Some(self.unsubscribed_since.map_or(since, |left| left.min(since)));
        }
    }

    /// A client asks for many again: it is told what went since it left. `all`: for all that it may have left.
    pub(super) fn come_back(&mut self, all: bool) {
        if let Some(left) = self.unsubscribed_since {
            self.removals_sent_to = self.removals_sent_to.min(left);
            self.unsubscribed_since = Some(left).filter(|_| !all);
        }
    }

    /// The positions move. `paging`: the answer to a wildcard goes on with further pages.
    pub(super) fn advance(&mut self, now: Revision, content: Reach, removals: Reach, paging: bool) {
        let first = self.sent_to.is_none();
        let to = |reach, before| match reach {
            Reach::Nowhere => before,
            Reach::Upto(revision) => revision,
            Reach::All => now,
        };
        // What is there at first is pending, and nothing was told that could be gone.
        self.sent_to = Some(if first { now } else { to(content, self.sent_to.unwrap_or(now)) });
        self.removals_sent_to = if first { now } else { to(removals, self.removals_sent_to) };
        let all = first || content == Reach::All;
        if all && (first || removals == Reach::All) && !paging {
            self.change_few(|few| few.sent_ahead.clear());
            self.inexact = false;
            return;
        }
        if !paging {
            // While an answer goes on through the pages, they don't say what the client was told of what is to come.
            let told_to = self.complete_to();
            self.change_few(|few| few.sent_ahead.retain(|_, sent_ahead| *sent_ahead > told_to));
        }
        self.inexact |= !all || self.has_sent_ahead();
    }

    /// A name was told ahead of the positions: the resource is there, or gone, or has an error, as of `now`. Of more than
    /// `limit` names nothing is kept.
    pub(super) fn note_sent_ahead(&mut self, name: &ResourceName, now: Revision, limit: usize) {
        self.inexact = true;
        let sent_ahead = &mut self.few.get_or_insert_default().sent_ahead;
        sent_ahead.insert(name.clone(), now);
        if sent_ahead.len() > limit {
            sent_ahead.clear();
            self.tidy();
        }
    }

    /// The names that were told ahead of the positions.
    pub(super) fn names_sent_ahead(&self) -> impl Iterator<Item = &ResourceName> {
        self.few.iter().flat_map(|few| few.sent_ahead.keys())
    }

    /// What was told of these names does not count any more: they are asked for again.
    pub(super) fn forget_sent_ahead(&mut self, is_doubted: impl Fn(&ResourceName) -> bool) {
        self.change_few(|few| few.sent_ahead.retain(|name, _| !is_doubted(name)));
    }

    // Aliases.

    pub(super) fn aliases(&self) -> &SentAliases {
        self.few.as_ref().map_or(&NO_ALIASES, |few| &few.aliases)
    }

    pub(super) fn change_aliases(&mut self, change: impl FnOnce(&mut SentAliases)) {
        change(&mut self.few.get_or_insert_default().aliases);
        self.tidy();
    }

    // Errors (SotW).

    pub(super) fn reported_errors(&self) -> &BTreeSet<ResourceName> {
        self.few.as_ref().map_or(&NO_ERRORS, |few| &few.reported_errors)
    }

    pub(super) fn set_reported_errors(&mut self, names: BTreeSet<ResourceName>) {
        if !names.is_empty() || !self.reported_errors().is_empty() {
            self.few.get_or_insert_default().reported_errors = names;
            self.tidy();
        }
    }

    // Removals that wait (SotW).

    pub(super) fn deferred(&self) -> &[Resource] {
        self.few.as_ref().map_or(&[], |few| &few.deferred)
    }

    pub(super) fn set_deferred(&mut self, deferred: Vec<Resource>) {
        if !deferred.is_empty() || !self.deferred().is_empty() {
            self.few.get_or_insert_default().deferred = deferred;
            self.tidy();
        }
    }

    // Private.

    fn change_few(&mut self, change: impl FnOnce(&mut Few)) {
        if let Some(few) = &mut self.few {
            change(few);
            self.tidy();
        }
    }

    /// What has nothing in it takes no memory.
    fn tidy(&mut self) {
        if self.few.as_deref().is_some_and(|few| *few == Few::default()) {
            self.few = None;
        }
    }

    /// What must hold.
    pub(super) fn check(&self) -> Result<(), String> {
        let Some(few) = &self.few else { return Ok(()) };
        ensure!(**few != Few::default(), "room for exceptions, and there are none");
        ensure!(few.sent_ahead.is_empty() || self.inexact, "something is told ahead of what counts as exact");
        ensure!(few.sent_ahead.is_empty() || self.sent_to.is_some(), "something was told, and nothing looked at");
        few.aliases.check()
    }
}

impl Relabel for View {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.sent_to.relabel(by);
        self.removals_sent_to.relabel(by);
        self.unsubscribed_since.relabel(by);
        if let Some(few) = &mut self.few {
            few.sent_ahead.values_mut().for_each(|sent_ahead| sent_ahead.relabel(by));
        }
    }
}
