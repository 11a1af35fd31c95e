//! The extent of one response, as positions in the source: the names of its resources are not kept.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::of_type::OfType;
use super::page::Page;
use super::response_limit::Progress;
use super::source::{Entry, Source, State};
use super::wanted::{was_asked, was_named};
use crate::model::{Label, Relabel};
use crate::name::ResourceName;
use crate::revision::Revision;

/// The subscribed resources in a response: the changes between two revisions, and additions that few responses have.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Extent {
    /// Exclusive lower bound of the content; `None`: no bound.
    pub(super) after: Option<Revision>,
    /// Inclusive upper bound of the content.
    pub(super) to: Revision,
    /// Whether the response had all subscribed resources, changed or not.
    pub(super) whole: bool,
    pub(super) more: Option<Box<More>>,
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct More {
    /// Answered names.
    pub(super) names: BTreeSet<ResourceName>,
    /// The pages of a partial answer to the wildcard.
    pub(super) pages: Option<Pages>,
    /// Names that were left out, unless answered by name, because the client had them.
    pub(super) but: BTreeSet<ResourceName>,
    /// Names that were sent besides, and the revision of the source then, if it is newer than the upper bound of the
    /// content.
    pub(super) ahead: BTreeSet<ResourceName>,
    pub(super) ahead_to: Revision,
    /// The bounds of the removals, if they differ from those of the content.
    pub(super) removals: Option<(Revision, Revision)>,
    /// Whether all present resources were left out, unless answered by name, because the client had them.
    pub(super) claimed: bool,
}

/// A range from one position in the pages of a source to another, or to the end.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Pages {
    pub(super) from: Progress,
    pub(super) to: Option<Progress>,
}

impl Extent {
    /// The extent of a response that has heartbeats alone.
    pub(super) const NOTHING: Self = Self { after: Some(Revision(0)), to: Revision(0), whole: false, more: None };

    /// Returns the extent of a response that has these names alone, as of a revision.
    pub(super) fn of_names(to: Revision, names: BTreeSet<ResourceName>) -> Self {
        if names.is_empty() {
            return Self::NOTHING;
        }
        Self { after: Some(to), to, whole: false, more: Some(More { names, ..More::default() }.into()) }
    }

    /// Returns whether the extent certainly has no resource.
    pub(super) fn is_nothing(&self) -> bool {
        let more = |more: &More| !more.names.is_empty() || more.pages.is_some() || !more.ahead.is_empty();
        !self.whole && self.after == Some(self.to) && !self.more.as_deref().is_some_and(more)
    }

    /// Returns the answered names, if the response had nothing else.
    pub(super) fn names_at_most(&self) -> Option<impl Iterator<Item = &ResourceName>> {
        let more = self.more.as_deref().filter(|more| more.pages.is_none() && more.ahead.is_empty());
        let only = !self.whole && self.after == Some(self.to);
        more.filter(|_| only).map(|more| more.names.iter())
    }

    /// Returns whether the response had all subscribed resources.
    pub(super) fn is_all(&self) -> bool {
        let leaves_out = |more: &More| !more.but.is_empty();
        self.whole || (self.after.is_none() && !self.more.as_deref().is_some_and(leaves_out))
    }

    /// Returns whether the response had the current state of a name: the resource, or its absence. `paged` says whether
    /// the name is in a range of pages.
    pub(super) fn has(&self, name: &ResourceName, entry: &Entry<'_>, paged: impl Fn(&Pages) -> bool) -> bool {
        let more = self.more.as_deref();
        let named = |more: &More| was_named(&more.names, name, entry);
        let asked = |more: &More| was_asked(&more.names, name, entry);
        let in_pages = || more.and_then(|more| more.pages.as_ref()).is_some_and(&paged);
        let ahead = |more: &More| more.ahead.contains(name);
        let had = more.is_some_and(|more| more.leaves_out(name, entry));
        let by_name = || more.is_some_and(|more| named(more) || ahead(more) || (!had && asked(more)));
        let in_some = || self.whole || (!had && in_pages());
        (!had && self.is_between(entry))
            || (entry.since <= self.to && in_some())
            || (entry.since <= self.sent_at() && by_name())
    }

    /// Returns the revision of the source when the response was sent, if the response has anything by name.
    pub(super) fn sent_at(&self) -> Revision {
        self.more.as_ref().map_or(self.to, |more| self.to.max(more.ahead_to))
    }

    /// Returns whether a resource or a removal is between the bounds.
    pub(super) fn is_between(&self, entry: &Entry<'_>) -> bool {
        let (after, to) = if entry.state == State::Absent { self.removals() } else { (self.after, self.to) };
        entry.since <= to && after.is_none_or(|after| entry.since > after)
    }

    /// Returns the bounds of the removals.
    fn removals(&self) -> (Option<Revision>, Revision) {
        self.removals_apart().map_or((self.after, self.to), |(after, to)| (Some(after), to))
    }

    fn removals_apart(&self) -> Option<(Revision, Revision)> {
        self.more.as_ref()?.removals
    }

    /// Keeps only the answered names of a response that left out the resources that the client had.
    fn forget_claims(&mut self) {
        if let Some(more) = self.more.as_mut().filter(|more| more.claimed) {
            more.claimed = false;
            self.after = Some(self.to);
        }
    }

    /// Extends the extent to cover that of another response, and the range between them.
    pub(super) fn join(&mut self, mut other: Self) {
        let ((after_a, to_a), (after_b, to_b)) = (self.removals(), other.removals());
        let removals = after_a.zip(after_b).map(|(a, b)| (a.min(b), to_a.max(to_b)));
        let removals = removals.filter(|_| self.removals_apart().or(other.removals_apart()).is_some());
        // What either response left out, the other one may have.
        if let Some(more) = &mut self.more {
            let leaves_out = |name: &ResourceName| other.more.as_ref().is_some_and(|other| other.but.contains(name));
            more.but.retain(leaves_out);
        }
        self.forget_claims();
        other.forget_claims();
        let is_range = |extent: &Self| extent.after != Some(extent.to);
        let to = self.to.max(other.to);
        self.after = match (is_range(self), is_range(&other)) {
            (true, true) => self.after.min(other.after),
            (true, false) => self.after,
            (false, true) => other.after,
            (false, false) => Some(to),
        };
        self.to = to;
        self.whole |= other.whole;
        if let Some(other) = other.more {
            let more = self.more.get_or_insert_default();
            more.names.extend(other.names);
            more.ahead.extend(other.ahead);
            more.ahead_to = more.ahead_to.max(other.ahead_to);
            more.pages = match (more.pages.take(), other.pages) {
                (Some(a), Some(b)) => Some(a.join(b)),
                (a, b) => a.or(b),
            };
        }
        if removals.is_some() {
            self.more.get_or_insert_default().removals = removals;
        }
    }
}

impl More {
    /// Returns whether the response had the current state of a name only if it answered the name.
    pub(super) fn leaves_out(&self, name: &ResourceName, entry: &Entry<'_>) -> bool {
        self.but.contains(name) || (self.claimed && entry.resource().is_some())
    }
}

impl Pages {
    /// All pages.
    pub(super) const ALL: Self = Self { from: Progress { page: 0, after: None }, to: None };

    /// Returns whether the range has all pages.
    pub(super) fn is_all(&self) -> bool {
        self.is_first() && self.to.is_none()
    }

    /// Returns whether the range begins at the first page.
    pub(super) fn is_first(&self) -> bool {
        self.from == Progress::default()
    }

    fn join(self, other: Self) -> Self {
        let (from, to) = (self.from.min(other.from), self.to.zip(other.to).map(|(a, b)| a.max(b)));
        Self { from, to }
    }

    /// Returns the current names of the resources in the range.
    pub(super) fn resources<S: Source>(&self, of: OfType<'_, S>) -> impl Iterator<Item = ResourceName> {
        let count = self.to.as_ref().map_or(usize::MAX, |to| (to.page - self.from.page).saturating_add(1));
        let pages = of.pages().enumerate().skip(self.from.page).take(count);
        pages.flat_map(move |(number, page)| self.names_of(number, &page))
    }

    fn names_of(&self, number: usize, page: &Page) -> Vec<ResourceName> {
        let is_after =
            |name: &ResourceName| number > self.from.page || self.from.after.as_ref().is_none_or(|after| after < name);
        let is_before = |name: &ResourceName| match &self.to {
            Some(to) if number == to.page => to.after.as_ref().is_some_and(|after| name <= after),
            Some(to) => number < to.page,
            None => true,
        };
        let names = page.resources().iter().map(|resource| resource.name());
        names.filter(|name| is_after(name) && is_before(name)).cloned().collect()
    }
}

/// The names in the page ranges of responses. They are collected once, or each resource would walk through the pages.
pub(super) struct PageNames<'a>(Vec<(&'a Pages, BTreeSet<ResourceName>)>);

impl<'a> PageNames<'a> {
    pub(super) fn new<S: Source>(of: OfType<'_, S>, extents: impl Iterator<Item = &'a Extent>) -> Self {
        let pages = extents.filter_map(|extent| extent.more.as_ref()?.pages.as_ref());
        Self(pages.map(|pages| (pages, pages.resources(of).collect())).collect())
    }

    /// Returns whether one of the ranges has a name.
    pub(super) fn have(&self, range: &Pages, name: &ResourceName) -> bool {
        self.0.iter().any(|(pages, names)| *pages == range && names.contains(name))
    }
}

impl Relabel for Extent {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.after.relabel(by);
        self.to.relabel(by);
        let Some(more) = &mut self.more else { return };
        if more.ahead_to != Revision::default() {
            more.ahead_to.relabel(by);
        }
        if let Some((after, to)) = &mut more.removals {
            after.relabel(by);
            to.relabel(by);
        }
    }
}
