//! How often each kind of event may happen.

use super::Step;

/// What may happen from outside, and how often.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Budget {
    /// A server goes down. It comes up again, or does not.
    pub downs: u8,
    /// How often a stream breaks.
    pub cuts: u8,
    /// How often an update is rejected, whole or in part.
    pub rejects: u8,
    /// How often a name is subscribed to.
    pub subscribes: u8,
    /// How often a name is unsubscribed.
    pub unsubscribes: u8,
    /// How often the application loses a resource.
    pub forgets: u8,
    /// How often a resource is put, or changed.
    pub puts: u8,
    /// How often a resource is removed.
    pub deletes: u8,
    /// Time passes though all is not quiet.
    pub early: u8,
}

impl Budget {
    /// Nothing happens from outside.
    pub const NONE: Self = Self {
        downs: 0,
        cuts: 0,
        rejects: 0,
        subscribes: 0,
        unsubscribes: 0,
        forgets: 0,
        puts: 0,
        deletes: 0,
        early: 0,
    };

    fn of(&mut self, step: Step) -> Option<&mut u8> {
        match step {
            Step::Down { .. } => Some(&mut self.downs),
            Step::Cut { .. } => Some(&mut self.cuts),
            Step::Reject { .. } => Some(&mut self.rejects),
            Step::Subscribe { .. } => Some(&mut self.subscribes),
            Step::Unsubscribe { .. } => Some(&mut self.unsubscribes),
            Step::Forget { .. } => Some(&mut self.forgets),
            Step::Put { .. } => Some(&mut self.puts),
            Step::Delete { .. } => Some(&mut self.deletes),
            Step::Early => Some(&mut self.early),
            _ => None,
        }
    }

    /// Returns whether a step may be taken still.
    pub fn allows(mut self, step: Step) -> bool {
        self.of(step).is_none_or(|left| *left > 0)
    }

    /// Takes note of a step.
    pub fn spend(&mut self, step: Step) {
        if let Some(left) = self.of(step) {
            *left = left.saturating_sub(1);
        }
    }
}
