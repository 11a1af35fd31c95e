//! The number of times each kind of event may happen.

use super::Step;

/// The events of the environment, and their counts.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Budget {
    /// The number of new watchers.
    pub watches: u8,
    /// The number of watchers that leave.
    pub unwatches: u8,
    /// The number of new or changed resources.
    pub puts: u8,
    /// The number of resources that can't be decoded.
    pub bad: u8,
    /// The number of removed resources.
    pub deletes: u8,
    /// The number of errors that the server reports.
    pub fails: u8,
    /// The number of times that the alias moves.
    pub points: u8,
    /// The number of broken streams.
    pub cuts: u8,
    /// The number of server failures. A failed server may come back.
    pub downs: u8,
    /// The number of times that time passes although other steps are possible.
    pub early: u8,
    /// The number of times that a chosen watcher is polled out of turn.
    pub picks: u8,
}

impl Budget {
    /// No events of the environment.
    pub const NONE: Self = Self {
        watches: 0,
        unwatches: 0,
        puts: 0,
        bad: 0,
        deletes: 0,
        fails: 0,
        points: 0,
        cuts: 0,
        downs: 0,
        early: 0,
        picks: 0,
    };

    fn of(&mut self, step: Step) -> Option<&mut u8> {
        match step {
            Step::Watch { .. } => Some(&mut self.watches),
            Step::Unwatch { .. } => Some(&mut self.unwatches),
            Step::Put { content: super::BAD, .. } => Some(&mut self.bad),
            Step::Put { .. } => Some(&mut self.puts),
            Step::Delete { .. } => Some(&mut self.deletes),
            Step::Fail { .. } => Some(&mut self.fails),
            Step::Point { .. } => Some(&mut self.points),
            Step::Cut => Some(&mut self.cuts),
            Step::Down => Some(&mut self.downs),
            Step::Early => Some(&mut self.early),
            Step::Pick { .. } => Some(&mut self.picks),
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
            *left -= 1;
        }
    }
}
