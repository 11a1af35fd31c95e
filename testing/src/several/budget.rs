//! The number of times each kind of event may happen.

use super::Step;

/// The events of the environment, and their counts.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Budget {
    /// The number of server failures. A failed server may come back.
    pub downs: u8,
    /// The number of broken streams.
    pub cuts: u8,
    /// The number of rejected updates, completely or in part.
    pub rejects: u8,
    /// The number of subscriptions.
    pub subscribes: u8,
    /// The number of unsubscriptions.
    pub unsubscribes: u8,
    /// The number of resources that the application loses.
    pub forgets: u8,
    /// The number of new or changed resources.
    pub puts: u8,
    /// The number of removed resources.
    pub deletes: u8,
    /// The number of times that time passes although other steps are possible.
    pub early: u8,
}

impl Budget {
    /// No events of the environment.
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

    /// Returns whether a step may still be taken.
    pub fn allows(mut self, step: Step) -> bool {
        self.of(step).is_none_or(|left| *left > 0)
    }

    /// Records a step.
    pub fn spend(&mut self, step: Step) {
        if let Some(left) = self.of(step) {
            *left = left.saturating_sub(1);
        }
    }
}
