//! What must happen at some time in a check, or it proves little.

use super::{Both, World};

/// What has to happen at some time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Goal {
    /// The next server was asked.
    On,
    /// A server that is preferred answered.
    Back,
    /// The application was told that there is none.
    Unreachable,
}

impl Goal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::On, Self::Back, Self::Unreachable];

    /// Returns whether it happened.
    pub fn is_in(self, goals: u128) -> bool {
        goals & 1 << self as u32 != 0
    }
}

impl<V: Both> World<V> {
    /// Takes note that it happened.
    pub fn reach(&mut self, goal: Goal) {
        self.goals |= 1 << goal as u32;
    }
}
