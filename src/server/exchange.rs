//! The last response of a type, and the client's verdicts on earlier ones.

use alloc::boxed::Box;
use alloc::string::String;

use super::extent::Extent;
use super::rejections::Rejections;
use crate::ensure::ensure;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, Version};
use crate::revision::Revision;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Exchange {
    /// Nonce of the last response.
    nonce: Nonce,
    /// The last response, until its ACK or NACK.
    in_flight: Option<InFlight>,
    /// The ACK or NACK of that response is not awaited, because nothing is subscribed (S-SOTW-36). A field of
    /// `Exchange`, where a flag takes no additional memory: each idle stream has one exchange for each type.
    abandoned: bool,
    /// Consecutive stale requests.
    stale: u32,
    rejections: Option<Box<Rejections>>,
}

/// A response without an ACK or NACK.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct InFlight {
    version: Version,
    /// The revision up to which the response serves the client.
    revision: Revision,
    extent: Extent,
}

impl Exchange {
    pub(super) fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// Returns whether an ACK or NACK is awaited: until then nothing else of the type is sent.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.in_flight.is_some() && !self.abandoned
    }

    /// Notes that a response is sent.
    pub(super) fn send(&mut self, nonce: Nonce, version: Version, revision: Revision, extent: Extent) {
        self.nonce = nonce;
        self.in_flight = Some(InFlight { version, revision, extent });
        self.abandoned = false;
    }

    /// Handles the end of all subscriptions: no ACK or NACK is awaited, and nothing is resent.
    pub(super) fn abandon(&mut self) {
        self.abandoned = self.in_flight.is_some();
        self.clear_rejections();
    }

    /// Handles the ACK or NACK of the last response. Returns the version and the revision of that response, unless it
    /// had its ACK or NACK already. `rejection`: the client's error message, if it is a NACK.
    pub(super) fn handle_answer(&mut self, rejection: Option<&str>) -> Option<(Version, Revision)> {
        let InFlight { version, revision, extent } = self.in_flight.take()?;
        self.abandoned = false;
        self.stale = 0;
        if let Some(reason) = rejection {
            self.rejections.get_or_insert_default().add(extent, reason);
        } else if extent.is_all() {
            self.clear_rejections(); // the client accepted every resource
        } else if let Some(rejections) = &mut self.rejections {
            rejections.accept();
        }
        self.tidy();
        Some((version, revision))
    }

    /// Counts a stale request. Returns the number of consecutive ones.
    pub(super) fn count_stale(&mut self) -> u32 {
        self.stale = self.stale.saturating_add(1);
        self.stale
    }

    /// Resets the count after a request that is no ACK or NACK, and not stale.
    pub(super) fn reset_stale(&mut self) {
        self.stale = 0;
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

    /// Drops all rejections, also of the response in flight, because every resource is answered anew.
    pub(super) fn forget_resources(&mut self) {
        self.clear_rejections();
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.extent = Extent::NOTHING;
        }
    }

    /// Drops all rejections.
    fn clear_rejections(&mut self) {
        self.rejections = None;
    }

    // Queries.

    /// Returns whether the response whose ACK or NACK is awaited satisfies `had`.
    pub(super) fn is_in_flight(&self, had: impl Fn(&Extent) -> bool) -> bool {
        self.in_flight.as_ref().is_some_and(|in_flight| !self.abandoned && had(&in_flight.extent))
    }

    /// Returns the client's error message for the last rejected response that had a resource, unless the resource was
    /// sent again since. `had` says whether a response had it.
    pub(super) fn rejection(&self, name: &ResourceName, had: impl Fn(&Extent) -> bool) -> Option<&str> {
        self.rejections.as_ref()?.reason(name, had)
    }

    /// Returns the response in flight and the rejected responses.
    pub(super) fn extents(&self) -> impl Iterator<Item = &Extent> {
        let rejected = self.rejections.iter().flat_map(|rejections| rejections.extents());
        self.in_flight.iter().map(|in_flight| &in_flight.extent).chain(rejected)
    }

    fn tidy(&mut self) {
        if self.rejections.as_ref().is_some_and(|rejections| rejections.is_empty()) {
            self.rejections = None;
        }
    }

    /// Checks the invariants. `sent`: nonces that the stream has issued.
    pub(super) fn check(&self, sent: u64) -> Result<(), String> {
        ensure!(self.in_flight.is_some() || !self.abandoned, "no response is in flight, and one is abandoned");
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
