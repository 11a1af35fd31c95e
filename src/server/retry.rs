//! What was rejected is not sent again until it changes (S-SOTW-12), unless the configuration says to try again: some
//! clients reject for reasons that pass. After a time, and never more than so often, so that it is no loop (S-NACK-01).

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use core::time::Duration;

use super::portion::Progress;
use super::source::Revision;
use super::subscription::Subscription;
use crate::model::{Label, Relabel};
use crate::name::ResourceName;
use crate::time::Instant;

/// Whether and when a rejected response is sent again, though nothing changed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Retry {
    /// How long after the NACK.
    pub after: Duration,
    /// How often, for one rejection. What is new and rejected counts anew.
    pub times: u32,
}

/// The rejections of one type, where the configuration says to try again.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Retries {
    /// What the response that is out was made of.
    out: Option<Base>,
    /// What was rejected, and when it is sent again.
    due: Option<(Instant, Base)>,
    /// How often it was sent again.
    count: u32,
}

/// Where a subscription stood before a response: what it had is found again from there, with what has changed since.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Base {
    cursor: Option<Revision>,
    /// The wildcard was answered, from there on.
    sweep: Option<Progress>,
    /// The names that were.
    names: BTreeSet<ResourceName>,
    /// It was sent because of a rejection.
    again: bool,
    /// It has all that is wanted.
    whole: bool,
}

impl Subscription {
    /// To be called before a response is made.
    pub(super) fn base(&self, again: bool) -> Base {
        let progress = || self.progress.as_deref().cloned().unwrap_or_default();
        Base { cursor: self.cursor, sweep: self.sweep.then(progress), again, ..Base::default() }
    }

    /// And this once it is sent.
    pub(super) fn note_out(&mut self, base: Base, names: BTreeSet<ResourceName>, whole: bool) {
        self.retries.get_or_insert_default().out = Some(Base { names, whole, ..base });
    }

    pub(super) fn was_accepted(&mut self) {
        if let Some(retries) = &mut self.retries {
            if retries.out.take().is_some_and(|out| out.again || out.whole) {
                retries.due = None;
            }
        }
    }

    pub(super) fn was_rejected(&mut self, now: Instant, retry: Retry) {
        let Some(retries) = &mut self.retries else { return };
        let Some(mut base) = retries.out.take() else { return };
        if !base.again {
            retries.count = 0;
        }
        if let Some((_, earlier)) = retries.due.take() {
            base.cursor = earlier.cursor.into_iter().chain(base.cursor).min();
            base.sweep = earlier.sweep.or(base.sweep);
            base.names.extend(earlier.names);
        }
        if retries.count < retry.times {
            retries.due = Some((now + retry.after, base));
        }
    }

    /// When something is to be sent again: not while something else is on its way.
    pub(super) fn next_retry(&self) -> Option<Instant> {
        let (due, _) = self.retries.as_ref()?.due.as_ref()?;
        Some(*due).filter(|_| self.out.is_none())
    }

    pub(super) fn retries(&self, now: Instant) -> bool {
        !self.owes() && self.next_retry().is_some_and(|due| due <= now)
    }

    pub(super) fn put_off_retry(&mut self, until: Instant) {
        if let Some((due, _)) = self.retries.as_mut().and_then(|retries| retries.due.as_mut()) {
            *due = until;
        }
    }

    /// Makes what was rejected be news again.
    pub(super) fn try_again(&mut self) {
        let Some(retries) = &mut self.retries else { return };
        let Some((_, base)) = retries.due.take() else { return };
        retries.count += 1;
        let (names, wildcard) = (&self.interest.names, self.interest.wildcard);
        self.owed.extend(base.names.into_iter().filter(|name| wildcard || names.contains(name)));
        if let Some(progress) = base.sweep.filter(|_| wildcard) {
            self.sweep = true;
            self.progress = Some(progress).filter(|progress| *progress != Progress::default()).map(Box::new);
        }
        if base.cursor < self.cursor && base.cursor.is_some() {
            self.cursor = base.cursor; // but not the removals: who rejected one has lost it all the same (S-DELTA-26)
            self.inexact = true;
        }
    }
}

impl Relabel for Retries {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        let bases = self.out.iter_mut().chain(self.due.iter_mut().map(|(_, base)| base));
        bases.for_each(|base| base.cursor.relabel(by));
        if let Some((due, _)) = &mut self.due {
            due.relabel(by);
        }
    }
}
