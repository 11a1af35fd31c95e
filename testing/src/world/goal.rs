//! What should happen at some time in a check, or it proves little.

use std::hash::{Hash, Hasher};

/// What has to happen at some time.
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
    ResponseLimit,
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
    /// What was rejected went again, though nothing changed.
    Retried,
}

impl Goal {
    /// How many there are.
    pub const COUNT: u32 = Goal::Retried as u32 + 1;
}

/// What a world may have, or be in. Two of them are to be active at once as a response is made, each with each.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Feature {
    /// An answer goes on with the next portion.
    ResponseLimit,
    /// Everything is wanted of a store of several pages.
    Pages,
    /// What was rejected is to be sent again.
    Retry,
    /// Something that was sent has a TTL.
    Ttl,
    /// The client was not told yet that something is gone.
    Hold,
    /// Something that was sent is wanted by an alias.
    Alias,
    /// What the alias that moves stood for is with the client.
    MovedAlias,
    /// Something that was sent is wanted by a collection.
    Collection,
    /// The store has an error of something that is wanted.
    Error,
    /// The client wants as many names as it may.
    Limit,
    /// Nothing is known of something that is wanted.
    Unknown,
    /// The stream began with what the client has.
    Claims,
    /// The wildcard and names are wanted together.
    Wildcard,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::ResponseLimit,
        Self::Pages,
        Self::Retry,
        Self::Ttl,
        Self::Hold,
        Self::Alias,
        Self::MovedAlias,
        Self::Collection,
        Self::Error,
        Self::Limit,
        Self::Unknown,
        Self::Claims,
        Self::Wildcard,
    ];

    /// All pairs, but for those that can't be: SotW has neither portions nor aliases, and types in an order have no
    /// collections here.
    pub fn pairs(delta: bool) -> impl Iterator<Item = (Self, Self)> {
        let is_of =
            move |feature: &Self| delta || !matches!(feature, Self::ResponseLimit | Self::Alias | Self::MovedAlias);
        let all = move || Self::ALL.into_iter().filter(is_of);
        let pairs = all().flat_map(move |a| all().filter(move |b| a < *b).map(move |b| (a, b)));
        pairs.filter(|pair| *pair != (Self::Hold, Self::Collection))
    }

    /// A bit for each pair.
    fn pair(self, other: Self) -> u32 {
        let (low, high) = (self.min(other) as u32, self.max(other) as u32);
        Goal::COUNT + high * (high - 1) / 2 + low
    }
}

/// A set of goals and pairs of features. It is no part of a state: states compare equal whatever happened on the way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Goals(pub u128);

impl Goals {
    /// Takes note that a goal was reached.
    pub fn reach(&mut self, goal: Goal) {
        self.0 |= 1 << goal as u32;
    }

    /// Returns whether a goal was reached.
    pub fn has(self, goal: Goal) -> bool {
        self.0 & (1 << goal as u32) != 0
    }

    /// These features are active at once.
    pub fn reach_pairs(&mut self, active: &[Feature]) {
        for (at, &one) in active.iter().enumerate() {
            active[..at].iter().for_each(|&other| self.0 |= 1 << one.pair(other));
        }
    }

    /// Returns whether two features were active at once.
    pub fn has_pair(self, one: Feature, other: Feature) -> bool {
        self.0 & (1 << one.pair(other)) != 0
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
