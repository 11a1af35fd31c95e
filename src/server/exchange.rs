//! The last response of a type, and what the client said of the ones before.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;

use super::config::Retry;
use super::extent::Extent;
use super::rejections::{DueRetries, Rejections};
use crate::ensure::ensure;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, Version};
use crate::revision::Revision;
use crate::time::Instant;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Exchange {
    /// Of the last response.
    nonce: Nonce,
    /// That response, until it is answered.
    in_flight: Option<InFlight>,
    /// Requests that answered nothing since the last that did.
    stale: u32,
    rejections: Option<Box<Rejections>>,
    /// What is to be sent again, and was not yet.
    retrying: Option<Box<Retrying>>,
}

/// Names that are pending because they were rejected, and how often that was so.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Retrying {
    names: BTreeSet<ResourceName>,
    /// All of a full-state type is.
    whole: bool,
    tries: u32,
}

/// A response that is not answered.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct InFlight {
    version: Version,
    /// Up to which the client was served with it.
    revision: Revision,
    extent: Extent,
    /// The answer is not waited for, since nothing is wanted (S-SOTW-36).
    abandoned: bool,
}

impl Exchange {
    pub(super) fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// Whether an answer is waited for: until then nothing else of the type is sent.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.in_flight.as_ref().is_some_and(|in_flight| !in_flight.abandoned)
    }

    /// A response is sent.
    pub(super) fn send(&mut self, nonce: Nonce, version: Version, revision: Revision, extent: Extent) {
        self.nonce = nonce;
        self.in_flight = Some(InFlight { version, revision, extent, abandoned: false });
    }

    /// Nothing is wanted any more: the answer is not waited for, and nothing is sent again.
    pub(super) fn abandon(&mut self) {
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.abandoned = true;
        }
        self.clear_rejections();
    }

    /// The client answered the last response, by its nonce. The version and the revision of that, if it was not answered
    /// before.
    pub(super) fn handle_answer(
        &mut self,
        now: Instant,
        rejected: bool,
        retry: Option<Retry>,
    ) -> Option<(Version, Revision)> {
        let InFlight { version, revision, extent, .. } = self.in_flight.take()?;
        self.stale = 0;
        if rejected {
            self.rejections.get_or_insert_default().add(extent, now, retry);
        } else if extent.is_all() {
            self.clear_rejections(); // all of it was accepted
        }
        self.tidy();
        Some((version, revision))
    }

    /// A request answered nothing. How many did in a row.
    pub(super) fn count_stale(&mut self) -> u32 {
        self.stale = self.stale.saturating_add(1);
        self.stale
    }

    /// A request was no answer, and rightly so.
    pub(super) fn forgive_stale(&mut self) {
        self.stale = 0;
    }

    // What was rejected.

    /// A name is answered anew.
    pub(super) fn forget_rejection(&mut self, name: &ResourceName, limit: usize) {
        if let Some(rejections) = &mut self.rejections {
            rejections.forget(name, limit);
            self.tidy();
        }
        if let Some(retrying) = &mut self.retrying {
            retrying.names.remove(name);
        }
    }

    /// Everything is.
    pub(super) fn clear_rejections(&mut self) {
        (self.rejections, self.retrying) = (None, None);
    }

    /// When something rejected is to be sent again: not while something else is on its way.
    #[inline]
    pub(super) fn next_retry(&self) -> Option<Instant> {
        self.rejections.as_ref()?.next().filter(|_| !self.is_waiting())
    }

    pub(super) fn put_off_retries(&mut self, now: Instant, until: Instant) {
        if let Some(rejections) = &mut self.rejections {
            rejections.put_off(now, until);
        }
    }

    /// Takes what is to be sent again.
    pub(super) fn take_due_retries(&mut self, now: Instant) -> DueRetries {
        let due = self.rejections.as_mut().map_or_else(DueRetries::default, |rejections| rejections.take_due(now));
        self.tidy();
        due
    }

    /// Notes what is to be sent again: names, or all of a full-state type.
    pub(super) fn retry(&mut self, names: BTreeSet<ResourceName>, whole: bool, tries: u32) {
        if whole || !names.is_empty() {
            self.retrying = Some(Box::new(Retrying { names, whole, tries }));
        }
    }

    /// Whether all of a full-state type is to be sent again.
    pub(super) fn retries_whole(&self) -> bool {
        self.retrying.as_ref().is_some_and(|retrying| retrying.whole)
    }

    /// Marks what a response sends again.
    pub(super) fn note_retried(&mut self, extent: &mut Extent) {
        let Some(mut retrying) = self.retrying.take() else { return };
        let more = extent.more.get_or_insert_default();
        more.tries = retrying.tries;
        let (again, rest) = core::mem::take(&mut retrying.names).into_iter().partition(|name| more.names.remove(name));
        (more.retried, retrying.names) = (again, rest);
        self.retrying = (!retrying.names.is_empty()).then_some(Retrying { whole: false, ..*retrying }.into());
    }

    // Questions.

    /// Whether something was sent with the response that is not answered, if that `had` it.
    pub(super) fn is_in_flight(&self, had: impl Fn(&Extent) -> bool) -> bool {
        self.in_flight.as_ref().is_some_and(|in_flight| had(&in_flight.extent))
    }

    /// Whether something was rejected: a response that `had` it.
    pub(super) fn is_rejected(
        &self,
        had: impl Fn(&Extent) -> bool,
        is_asked: impl Fn(&BTreeSet<ResourceName>) -> bool,
    ) -> bool {
        self.rejections.as_ref().is_some_and(|rejections| rejections.has(had, is_asked))
    }

    fn tidy(&mut self) {
        if self.rejections.as_ref().is_some_and(|rejections| rejections.is_empty()) {
            self.rejections = None;
        }
    }

    /// What must hold. The stream gave `sent` nonces.
    pub(super) fn check(&self, sent: u64) -> Result<(), String> {
        ensure!(self.in_flight.is_none() || !self.nonce.is_empty(), "a response with no nonce is in flight");
        if let Some((_, count)) = self.nonce.as_str().split_once('.') {
            let given = count.parse().is_ok_and(|count: u64| count <= sent);
            ensure!(given, "{} is no nonce of this stream, which gave {sent}", self.nonce);
        }
        self.rejections.as_ref().map_or(Ok(()), |rejections| rejections.check())
    }

    pub(super) fn stale(&self) -> u32 {
        self.stale
    }
}

impl Relabel for Exchange {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.nonce.relabel(by);
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.revision.relabel(by);
            in_flight.extent.relabel(by);
        }
        if let Some(rejections) = &mut self.rejections {
            rejections.relabel(by);
        }
    }
}
