//! The state that a client was sent: go-control-plane's `returnedResources`, compressed.
//!
//! Most of the state is two positions: all content up to one revision of the source was sent, and all removals up to
//! another. The few resources that were sent beyond the positions are kept by name, and the name is that of the
//! resource, never the subscribed one: a resource may be subscribed by its name, an alias, a collection and the
//! wildcard, and any of these may be unsubscribed.
//!
//! Two rules keep the view right, whatever is forgotten:
//!
//! 1. *By resource.* A resource that is sent is noted under its own name; unsubscribing never touches the view.
//! 2. *Forgetting is safe.* A note by name may be dropped at any time: that costs duplicates, and never a lost
//!    change.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::of_type::OfType;
use super::resource::Resource;
use super::sent_aliases::SentAliases;
use super::source::{Entry, Source};
use super::wanted::Wanted;
use crate::ensure::ensure;
use crate::model::{Label, Relabel};
use crate::name::ResourceName;
use crate::revision::Revision;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct View {
    /// All content up to this revision was sent, or is pending. `None`: the source was not read yet.
    sent_to: Option<Revision>,
    /// The same for removals, which may be deferred.
    removals_sent_to: Revision,
    /// The exceptions; nearly always `None`.
    few: Option<Box<Few>>,
}

/// State that the positions do not describe.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Few {
    /// Names sent ahead of the positions, and the revision of each.
    sent_ahead: BTreeMap<ResourceName, Revision>,
    aliases: SentAliases,
    /// Names whose error was sent, so that their absence has to be sent as well (SotW).
    reported_errors: BTreeSet<ResourceName>,
    /// Removed resources that the client keeps for now, until the resources that refer to them were sent (SotW).
    deferred: Vec<Resource>,
    /// The position of the oldest removals that may have to be sent again. A client may unsubscribe from a wildcard or
    /// collection and subscribe again, or unsubscribe while a response is in flight and accept that response all the
    /// same ([design rule 5](crate::manual::rules#rule-5)).
    unsubscribed_since: Option<Revision>,
}

/// The position up to which something is sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Reach {
    /// Unchanged.
    #[default]
    Nowhere,
    /// Up to this revision, because there was no room for more.
    Upto(Revision),
    /// Up to the current revision.
    All,
}

static NO_ALIASES: SentAliases = SentAliases::NONE;
static NO_ERRORS: BTreeSet<ResourceName> = BTreeSet::new();

impl View {
    /// Returns the revision up to which content was sent; `None` if the source was not read yet.
    #[inline]
    pub(super) fn sent_to(&self) -> Option<Revision> {
        self.sent_to
    }

    #[inline]
    pub(super) fn removals_sent_to(&self) -> Revision {
        self.removals_sent_to
    }

    /// Returns the revision up to which both content and removals were sent.
    #[inline]
    pub(super) fn complete_to(&self) -> Revision {
        self.sent_to.map_or(Revision::default(), |sent_to| sent_to.min(self.removals_sent_to))
    }

    /// Returns whether something was sent ahead of the positions and is kept by name.
    #[inline]
    pub(super) fn has_sent_ahead(&self) -> bool {
        self.few.as_ref().is_some_and(|few| !few.sent_ahead.is_empty())
    }

    /// Returns the revision at which a resource was sent ahead of the positions.
    fn sent_ahead(&self, name: &ResourceName) -> Option<Revision> {
        self.few.as_ref()?.sent_ahead.get(name).copied()
    }

    /// Returns the revision up to which the state of a name was sent; `None` if the source was not read yet.
    pub(super) fn sent_to_of(&self, name: &ResourceName) -> Option<Revision> {
        self.sent_ahead(name).max(self.sent_to)
    }

    /// Returns whether the form that a resource has since `since` was sent by name, whatever the positions say.
    pub(super) fn is_sent_ahead(&self, name: &ResourceName, since: Revision) -> bool {
        self.sent_ahead(name).is_some_and(|sent_ahead| sent_ahead >= since)
    }

    /// Returns whether a present resource is news to the client. Nothing is news before the source was read: until
    /// then every subscribed resource is pending.
    #[inline]
    pub(super) fn is_news(&self, name: &ResourceName, entry: &Entry<'_>) -> bool {
        self.is_newer(name, entry)
    }

    /// Returns whether the absence of a name is news.
    pub(super) fn is_removal_news(&self, name: &ResourceName, entry: &Entry<'_>) -> bool {
        self.sent_to.is_some() && self.is_removal_newer(name, entry)
    }

    /// Returns whether the error of a name is news. The error of an absent name is sent with its removal.
    pub(super) fn is_error_news(&self, name: &ResourceName, entry: &Entry<'_>) -> bool {
        self.is_newer(name, entry)
    }

    /// Returns whether the current state of a name began after all that was sent of it.
    fn is_newer(&self, name: &ResourceName, entry: &Entry<'_>) -> bool {
        self.sent_to_of(name).is_some_and(|sent_to| entry.since > sent_to)
    }

    /// The same for the absence of a name.
    fn is_removal_newer(&self, name: &ResourceName, entry: &Entry<'_>) -> bool {
        entry.since > self.removals_sent_to.max(self.sent_ahead(name).unwrap_or_default())
    }

    // Sent state.

    /// Notes that a client unsubscribed, and may still have or get resources of which it is sent no removal.
    pub(super) fn note_unsubscribed(&mut self) {
        if self.sent_to.is_some() {
            let since = self.complete_to();
            let left = &mut self.few.get_or_insert_default().unsubscribed_since;
            *left = Some(left.map_or(since, |left| left.min(since)));
        }
    }

    /// Notes that a client subscribes to the wildcard or a collection again: the removals since it unsubscribed are
    /// sent. `all`: no earlier unsubscription needs them later.
    pub(super) fn note_resubscribed(&mut self, all: bool) {
        let Some(left) = self.few.as_ref().and_then(|few| few.unsubscribed_since) else { return };
        self.removals_sent_to = self.removals_sent_to.min(left);
        if all {
            self.change_few(|few| few.unsubscribed_since = None);
        }
    }

    /// Moves the positions. `paging`: the answer to a wildcard continues with further pages.
    pub(super) fn advance(&mut self, now: Revision, content: Reach, removals: Reach, paging: bool) {
        let first = self.sent_to.is_none();
        let to = |reach, before| match reach {
            Reach::Nowhere => before,
            Reach::Upto(revision) => revision,
            Reach::All => now,
        };
        // Present resources are pending at first, and nothing was sent that could be removed.
        self.sent_to = Some(if first { now } else { to(content, self.sent_to.unwrap_or(now)) });
        self.removals_sent_to = if first { now } else { to(removals, self.removals_sent_to) };
        let all = first || content == Reach::All;
        if all && (first || removals == Reach::All) && !paging {
            self.change_few(|few| few.sent_ahead.clear());
            return;
        }
        if !paging {
            // While an answer continues through the pages, the positions do not describe the pages to come.
            let complete_to = self.complete_to();
            self.change_few(|few| few.sent_ahead.retain(|_, sent_ahead| *sent_ahead > complete_to));
        }
    }

    /// Notes that the state of a name as of `now` was sent ahead of the positions: resource, removal or error. Beyond
    /// `limit` names all notes are dropped.
    pub(super) fn note_sent_ahead(&mut self, name: &ResourceName, now: Revision, limit: usize) {
        let sent_ahead = &mut self.few.get_or_insert_default().sent_ahead;
        sent_ahead.insert(name.clone(), now);
        if sent_ahead.len() > limit {
            sent_ahead.clear();
            self.tidy();
        }
    }

    /// Returns the names that were sent ahead of the positions.
    pub(super) fn names_sent_ahead(&self) -> impl Iterator<Item = &ResourceName> {
        self.few.iter().flat_map(|few| few.sent_ahead.keys())
    }

    /// Drops the notes of names that are subscribed again.
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

    /// Notes that the client has a resource by each subscribed alias that stands for it.
    pub(super) fn note_aliases<S: Source>(&mut self, of: OfType<'_, S>, wanted: &Wanted, resource: &Resource) {
        for alias in wanted.aliases_of(of, resource).filter(|alias| *alias != resource.name()) {
            self.change_aliases(|aliases| aliases.insert(alias, resource.name()));
        }
    }

    /// Notes that the client may have the former targets of an alias that `may_have` picks.
    pub(super) fn note_former_targets<S: Source>(
        &mut self,
        of: OfType<'_, S>,
        alias: &ResourceName,
        may_have: impl Fn(&ResourceName) -> bool,
    ) {
        for name in of.former_targets(alias).iter().filter(|name| may_have(name)) {
            self.change_aliases(|aliases| aliases.insert(alias, name));
        }
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

    // Deferred removals (SotW).

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

    /// Frees the exceptions if there are none.
    fn tidy(&mut self) {
        if self.few.as_deref().is_some_and(|few| *few == Few::default()) {
            self.few = None;
        }
    }

    /// Checks the invariants.
    pub(super) fn check(&self) -> Result<(), String> {
        let Some(few) = &self.few else { return Ok(()) };
        ensure!(**few != Few::default(), "room for exceptions, and there are none");
        ensure!(few.sent_ahead.is_empty() || self.sent_to.is_some(), "something was told, and nothing looked at");
        few.aliases.check()
    }
}

impl Relabel for View {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.sent_to.relabel(by);
        self.removals_sent_to.relabel(by);
        if let Some(few) = &mut self.few {
            few.unsubscribed_since.relabel(by);
            few.sent_ahead.values_mut().for_each(|sent_ahead| sent_ahead.relabel(by));
        }
    }
}
