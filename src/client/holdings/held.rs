//! A resource that the application holds, and a server's report that a resource does not exist.

use crate::name::Version;
use crate::time::Instant;

/// A resource that the application holds.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Held {
    /// Empty where implied: a claimed resource of a full-state type in SotW has the version of the last response that
    /// was accepted completely.
    pub(super) version: Version,
    /// The time at which the content was accepted (R-CSDS-06). Empty for content from elsewhere, and where the version
    /// is implied: then the time is that of the type.
    pub(super) accepted_at: Option<Instant>,
    /// Whether the version may be sent to the server. A resource that was unsubscribed for a while before its update
    /// was accepted is not claimed: the application has it, so its removal counts, but the client must request it
    /// ([design rule 14](crate::manual::rules#rule-14)).
    pub(super) claimed: bool,
}

/// The response by which a server reported that a resource does not exist. Fields may be added.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Absence {
    /// The version of that response.
    pub version: Version,
    /// The time at which the machine recorded the report.
    pub at: Instant,
    /// The version that the server gave to the absence itself (C-NAME-10), which is claimed on a new stream.
    pub(in crate::client) claim: Option<Version>,
}

impl Held {
    pub(in crate::client) fn version(&self) -> &Version {
        &self.version
    }

    pub(in crate::client) fn accepted_at(&self) -> Option<Instant> {
        self.accepted_at
    }

    pub(in crate::client) fn is_claimed(&self) -> bool {
        self.claimed
    }

    /// Returns the version to claim, which is empty for an unclaimed resource.
    pub(in crate::client) fn claim(&self) -> Version {
        if self.claimed { self.version.clone() } else { Version::default() }
    }
}
