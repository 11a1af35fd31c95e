//! What one response had, as positions in the source: nothing of it is kept by the names of its resources.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::of_type::OfType;
use super::page::Page;
use super::response_limit::Progress;
use super::source::{Entry, Source};
use super::wanted::Wanted;
use crate::model::{Label, Relabel};
use crate::name::ResourceName;
use crate::revision::Revision;

/// What a response had of what is wanted: what had changed between two revisions, and what few responses have besides.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Extent {
    /// Content that is newer than this, `None`: however old ..
    pub(super) after: Option<Revision>,
    /// .. and not newer than this.
    pub(super) to: Revision,
    /// It had all that is wanted, changed or not.
    pub(super) whole: bool,
    pub(super) more: Option<Box<More>>,
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct More {
    /// Names that were answered.
    pub(super) names: BTreeSet<ResourceName>,
    /// Names that were sent again because they had been rejected, and how often that was done by now.
    pub(super) retried: BTreeSet<ResourceName>,
    pub(super) tries: u32,
    /// A part of the answer to the wildcard.
    pub(super) pages: Option<Pages>,
    /// What it did not have, apart from what was named, for the client had it.
    pub(super) but: BTreeSet<ResourceName>,
}

/// From one place in the pages of a source to another, or to the end.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Pages {
    pub(super) from: Progress,
    pub(super) to: Option<Progress>,
}

impl Extent {
    /// Whether there can be no resource in it.
    pub(super) fn is_nothing(&self) -> bool {
        let more = |more: &More| !more.names.is_empty() || !more.retried.is_empty() || more.pages.is_some();
        !self.whole && self.after == Some(self.to) && !self.more.as_deref().is_some_and(more)
    }

    /// The names that were answered, if it had nothing else.
    pub(super) fn names_at_most(&self) -> Option<impl Iterator<Item = &ResourceName>> {
        let more = self.more.as_deref().filter(|more| more.pages.is_none());
        let only = !self.whole && self.after == Some(self.to);
        more.filter(|_| only).map(|more| more.names.iter().chain(&more.retried))
    }

    /// Whether all that is wanted is in it.
    pub(super) fn is_all(&self) -> bool {
        self.whole || self.after.is_none()
    }

    /// Whether the response said of a name what there is of it now: the resource, or that it does not exist.
    pub(super) fn has<S: Source>(
        &self,
        of: OfType<'_, S>,
        wanted: &Wanted,
        name: &ResourceName,
        entry: &Entry<'_>,
    ) -> bool {
        let more = self.more.as_deref();
        let named =
            |more: &More| wanted.is_asked(&more.names, name, entry) || wanted.is_asked(&more.retried, name, entry);
        let in_range = || self.after.is_none_or(|after| entry.since > after);
        let paged = |pages: &Pages| pages.resources(of).any(|paged| paged == *name);
        let in_pages = || more.and_then(|more| more.pages.as_ref()).is_some_and(paged);
        let had = more.is_some_and(|more| more.but.contains(name));
        let in_some = self.whole || more.is_some_and(named) || (!had && (in_range() || in_pages()));
        in_some && entry.since <= self.to
    }

    /// Takes in what another response had, and what may have been between them.
    pub(super) fn join(&mut self, other: Self) {
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
            more.but.extend(other.but);
            more.pages = match (more.pages.take(), other.pages) {
                (Some(a), Some(b)) => Some(a.join(b)),
                (a, b) => a.or(b),
            };
        }
    }
}

impl Pages {
    /// Whether these are all there are.
    pub(super) fn is_all(&self) -> bool {
        self.is_first() && self.to.is_none()
    }

    /// Whether none went before.
    pub(super) fn is_first(&self) -> bool {
        self.from == Progress::default()
    }

    fn join(self, other: Self) -> Self {
        let (from, to) = (self.from.min(other.from), self.to.zip(other.to).map(|(a, b)| a.max(b)));
        Self { from, to }
    }

    /// The names of the resources from here to there, as they are now.
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

impl Relabel for Extent {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.after.relabel(by);
        self.to.relabel(by);
    }
}
