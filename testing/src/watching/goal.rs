//! Goals that a check must reach at some time; without them the check proves little.

/// An event that must happen at some time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Goal {
    /// A new watcher of a held resource received it.
    Late,
    /// A watcher with content received its removal.
    Gone,
    /// A watcher without content received the reason.
    Failed,
    /// A watcher with content received an ambient error.
    Beside,
    /// An ambient error was cleared.
    Over,
    /// A watcher with an error received content.
    Cured,
    /// The server was reported as unreachable.
    Away,
    /// An update had a resource that was no longer watched.
    Unwatched,
    /// A verdict waited.
    Waited,
    /// A verdict stopped waiting because a watcher left.
    Left,
    /// A watcher received two changes before it finished the first.
    Behind,
    /// A watcher of a wildcard or collection received a member.
    Member,
    /// The alias moved to another resource, and its watcher received that.
    Moved,
    /// The new target of an alias was rejected.
    MovedToBad,
    /// The server responded to the wildcard without a change.
    Synced,
}

impl Goal {
    /// Returns whether the goal was reached.
    pub fn is_in(self, goals: u128) -> bool {
        goals & self.bit() != 0
    }

    /// Returns the bit of the goal.
    pub fn bit(self) -> u128 {
        1 << self as u32
    }
}
