//! What should happen at some time in a check, or it proves little.

use std::hash::{Hash, Hasher};

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Goal {
    /// A response was rejected.
    Nack,
    /// A part of one was.
    NackInPart,
    /// A response was answered with nothing for the application in it.
    Synced,
    /// A response had to wait for a verdict on the one before.
    Waited,
    /// The stream broke with an update at the application.
    LateVerdict,
    /// The server saw a request that was overtaken by a response.
    Stale,
    /// The time for a resource to come was up.
    TimedOut,
    /// The server said that a resource does not exist, or no more.
    Removed,
    /// A new stream began with what is held (delta), or with its version (SotW).
    Claimed,
    /// A new stream began with the empty version for what was not judged yet.
    ClaimedUnjudged,
    /// A new stream claimed no version, though one had been accepted: something was lacking.
    NoClaim,
    /// The wildcard stood in for an empty list, which would have meant everything.
    StoodIn,
    /// The wildcard and names were wanted together.
    WildcardAndNames,
    /// A name was unsubscribed and subscribed to again while a response was out.
    CameBack,
    /// Endpoints went again with their cluster.
    Warmed,
    /// Removals waited for what refers to them.
    Held,
    /// The server had forgotten removals that a client did not hear of, and ended the stream.
    Behind,
    /// A resource came that nobody named: as a member of a collection, or by an alias.
    ByAnotherName,
    /// The application lost something while a stream was up.
    Lost,
    /// More than one change went in one response.
    Coalesced,
    /// The server reported an error of what is held.
    Ambient,
    /// And of what is not.
    Failed,
    /// Clusters that are gone were sent beside those that are there.
    Union,
    /// An answer went in portions.
    Portion,
    /// A type was let go that had something to say.
    HeldBack,
    /// A type was asked for on a new stream though it was held back.
    PausedFirst,
    /// A heartbeat came, or for it all of a full-state type.
    Beaten,
    /// A TTL ran out while there was a stream.
    Expired,
    /// And while there was none.
    ExpiredAway,
    /// An update of a former stream was accepted of which this one could not be told (delta).
    NewStream,
}

impl Goal {
    pub const COUNT: u32 = Goal::NewStream as u32 + 1;
}

/// A set of goals. It is no part of a state: states compare equal whatever happened on the way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Goals(pub u32);

impl Goals {
    pub fn reach(&mut self, goal: Goal) {
        self.0 |= 1 << goal as u32;
    }

    pub fn has(self, goal: Goal) -> bool {
        self.0 & (1 << goal as u32) != 0
    }
}

impl PartialEq for Goals {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Goals {}

impl Hash for Goals {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
