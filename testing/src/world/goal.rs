//! Goals that a check must reach at some time; without them the check proves little.

use std::hash::{Hash, Hasher};

/// An event that must happen at some time.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Goal {
    /// A response was rejected.
    Nack,
    /// A part of a response was rejected.
    NackInPart,
    /// A response without a change for the application was ACKed.
    Synced,
    /// A response had to wait for the verdict on the one before.
    Waited,
    /// The stream broke while the application judged an update.
    LateVerdict,
    /// The server received a request that a response had overtaken.
    Stale,
    /// The existence timeout of a resource ran out.
    TimedOut,
    /// The server reported that a resource was removed or does not exist.
    Removed,
    /// A new stream began with the held versions (delta), or with the type's version (SotW).
    Claimed,
    /// A new stream began with the empty version for a resource without a verdict.
    ClaimedUnjudged,
    /// A new stream claimed no version, though one had been accepted, because a resource was missing.
    NoClaim,
    /// The wildcard was sent without a subscription, because an empty list would have subscribed to everything.
    StoodIn,
    /// The wildcard and names were subscribed to together.
    WildcardAndNames,
    /// A name was unsubscribed and subscribed to again while a response was in flight.
    CameBack,
    /// Endpoints were sent again with their cluster.
    Warmed,
    /// Removals waited for the resources that refer to them.
    Held,
    /// The server had forgotten removals that a client did not receive, and ended the stream.
    Behind,
    /// A resource arrived that was not subscribed to by name: as a member of a collection, or by an alias.
    ByAnotherName,
    /// The application lost a resource during a stream.
    Lost,
    /// One response carried more than one change.
    Coalesced,
    /// The server reported an error of a held resource.
    Ambient,
    /// The server reported an error of a resource that is not held.
    Failed,
    /// Removed clusters were sent together with existing ones.
    Union,
    /// A response was limited, and the rest followed.
    ResponseLimit,
    /// A paused type with pending changes was resumed.
    HeldBack,
    /// A type was requested on a new stream though paused.
    PausedFirst,
    /// A heartbeat came, or in its place all of a full-state type.
    Beaten,
    /// A TTL expired during a stream.
    Expired,
    /// A TTL expired without a stream.
    ExpiredAway,
    /// An update of a former stream was accepted that the current stream can't express (delta).
    NewStream,
}

impl Goal {
    /// The number of goals.
    pub const COUNT: u32 = Goal::NewStream as u32 + 1;
}

/// A feature or a condition of a world. Every two of them must be active at once when some response is made.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Feature {
    /// A response continues a limited one.
    ResponseLimit,
    /// The wildcard is subscribed to, with a store of several pages.
    Pages,
    /// A resource that was sent has a TTL.
    Ttl,
    /// A removal has not been sent to the client yet.
    Hold,
    /// A resource that was sent is subscribed to by an alias.
    Alias,
    /// The client has the former target of the moving alias.
    MovedAlias,
    /// A resource that was sent is subscribed to by a collection.
    Collection,
    /// The store has an error of a subscribed resource.
    Error,
    /// The client subscribes to as many names as allowed.
    Limit,
    /// Nothing is known of a subscribed resource.
    Unknown,
    /// The stream began with claimed versions.
    Claims,
    /// The wildcard and names are subscribed to together.
    Wildcard,
}

impl Feature {
    /// All features.
    pub const ALL: [Self; 12] = [
        Self::ResponseLimit,
        Self::Pages,
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

    /// Returns all pairs, except the impossible ones: SotW has neither limited responses nor aliases, and types with a
    /// push order have no collections here.
    pub fn pairs(delta: bool) -> impl Iterator<Item = (Self, Self)> {
        let is_of =
            move |feature: &Self| delta || !matches!(feature, Self::ResponseLimit | Self::Alias | Self::MovedAlias);
        let all = move || Self::ALL.into_iter().filter(is_of);
        let pairs = all().flat_map(move |a| all().filter(move |b| a < *b).map(move |b| (a, b)));
        pairs.filter(|pair| *pair != (Self::Hold, Self::Collection))
    }

    /// Returns the bit of a pair.
    fn pair(self, other: Self) -> u32 {
        let (low, high) = (self.min(other) as u32, self.max(other) as u32);
        Goal::COUNT + high * (high - 1) / 2 + low
    }
}

/// A set of goals and pairs of features. The set is not part of a state: states compare equal regardless of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Goals(pub u128);

impl Goals {
    /// Records that a goal was reached.
    pub fn reach(&mut self, goal: Goal) {
        self.0 |= 1 << goal as u32;
    }

    /// Returns whether a goal was reached.
    pub fn has(self, goal: Goal) -> bool {
        self.0 & (1 << goal as u32) != 0
    }

    /// Records that these features are active at once.
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
