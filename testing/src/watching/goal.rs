//! What must happen at some time in a check, or it proves little.

/// What has to happen at some time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Goal {
    /// Somebody watched what was held already, and was told.
    Late,
    /// A watcher that had something was told that it is gone.
    Gone,
    /// A watcher that had nothing was told why.
    Failed,
    /// A watcher was told of an error beside what it has.
    Beside,
    /// And that it is over.
    Over,
    /// Who had an error was told of content.
    Cured,
    /// The server was said to be away.
    Away,
    /// A resource that nobody watched any more came in an update.
    Unwatched,
    /// A verdict waited.
    Waited,
    /// It did so no more because a watcher left.
    Left,
    /// A watcher was told of two changes and had not done with the first.
    Behind,
    /// A member was told to who watches the whole.
    Member,
    /// An alias came to stand for another resource, and who watches by it was told that.
    Moved,
    /// What an alias came to stand for was rejected.
    MovedToBad,
    /// The wildcard was answered, and there was nothing new.
    Synced,
}

impl Goal {
    /// Returns whether it happened.
    pub fn is_in(self, goals: u128) -> bool {
        goals & self.bit() != 0
    }

    /// Returns its bit.
    pub fn bit(self) -> u128 {
        1 << self as u32
    }
}
