//! Goals that a check must reach at some time; without them the check proves little.

use super::{Both, World};

/// An event that must happen at some time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Goal {
    /// The next server was used.
    On,
    /// A preferred server responded again.
    Back,
    /// The application was informed that no server is reachable.
    Unreachable,
}

impl Goal {
    /// All goals.
    pub const ALL: [Self; 3] = [Self::On, Self::Back, Self::Unreachable];

    /// Returns whether the goal was reached.
    pub fn is_in(self, goals: u128) -> bool {
        goals & 1 << self as u32 != 0
    }
}

impl<V: Both> World<V> {
    /// Records that the goal was reached.
    pub fn reach(&mut self, goal: Goal) {
        self.goals |= 1 << goal as u32;
    }
}
