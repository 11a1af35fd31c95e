//! Slots in the order of their last change.

use super::slot::{NONE, Slot};

/// A doubly linked list through the slots, in the order of the last change.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct List {
    pub(super) oldest: u32,
    pub(super) newest: u32,
    pub(super) len: usize,
}

impl List {
    pub(super) const EMPTY: Self = Self { oldest: NONE, newest: NONE, len: 0 };

    pub(super) fn push(&mut self, slots: &mut [Slot], at: u32) {
        slots[at as usize].older = self.newest;
        slots[at as usize].newer = NONE;
        match self.newest {
            NONE => self.oldest = at,
            newest => slots[newest as usize].newer = at,
        }
        self.newest = at;
        self.len += 1;
    }

    pub(super) fn unlink(&mut self, slots: &mut [Slot], at: u32) {
        let (older, newer) = (slots[at as usize].older, slots[at as usize].newer);
        match older {
            NONE => self.oldest = newer,
            older => slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => slots[newer as usize].older = older,
        }
        self.len -= 1;
    }
}
