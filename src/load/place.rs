//! The target of a call: a locality of a cluster, and possibly an endpoint of it.

use alloc::sync::Arc;

use bytes::Bytes;

use crate::message::Locality;

/// A locality, its priority, and possibly an endpoint. Cheap to clone.
///
/// ```
/// use xds_machine::load::Place;
/// use xds_machine::message::Locality;
///
/// let zone = Locality { region: "r".into(), zone: "a".into(), ..Locality::default() };
/// let place = Place::new(zone).with_priority(1);
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Place {
    pub(super) locality: Arc<Locality>,
    pub(super) priority: u32,
    pub(super) endpoint: Option<Bytes>,
}

impl Place {
    /// Makes the place of a locality with priority 0. An unknown locality is the empty one (R-LRS-30).
    pub fn new(locality: impl Into<Arc<Locality>>) -> Self {
        Self { locality: locality.into(), ..Self::default() }
    }

    /// Sets the priority of the locality in its cluster.
    #[must_use]
    pub fn with_priority(self, priority: u32) -> Self {
        Self { priority, ..self }
    }

    /// Sets the endpoint: an encoded `envoy.config.core.v3.Address`, which the machine passes on.
    #[must_use]
    pub fn with_endpoint(self, address: impl Into<Bytes>) -> Self {
        Self { endpoint: Some(address.into()), ..self }
    }
}

/// The calls that started or ended since the caller last added its counts: deltas of the caller's own counters.
///
/// A call is in progress from its start to its end, so the gauge follows from these counts. A caller that reads several
/// counters while calls go on reads the ends first, so that no end is counted without its start.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Counts {
    /// Calls that were started.
    pub issued: u64,
    /// Calls that ended well.
    pub ok: u64,
    /// Calls that failed.
    pub error: u64,
}

impl Counts {
    /// Makes the counts of calls that were started, and have ended well.
    pub const fn succeeded(calls: u64) -> Self {
        Self { issued: calls, ok: calls, error: 0 }
    }

    /// Makes the counts of calls that were started, and have failed.
    pub const fn failed(calls: u64) -> Self {
        Self { issued: calls, ok: 0, error: calls }
    }
}

/// How a call ended. The caller decides which status is an error; gRPC takes any but OK (R-LRS-20).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Outcome {
    /// The call ended well.
    Ok,
    /// The call failed.
    Error,
}

impl Outcome {
    /// Returns the counts of an end.
    pub(super) fn end(self) -> Counts {
        match self {
            Self::Ok => Counts { ok: 1, ..Counts::default() },
            Self::Error => Counts { error: 1, ..Counts::default() },
        }
    }
}
