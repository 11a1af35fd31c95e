//! How often each kind of event may happen.

use super::Step;

/// What may happen from outside, and how often.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Budget {
    /// How often a watcher comes.
    pub watches: u8,
    /// How often a watcher leaves.
    pub unwatches: u8,
    /// How often a resource is put, or changed.
    pub puts: u8,
    /// Puts of what can't be decoded.
    pub bad: u8,
    /// How often a resource is removed.
    pub deletes: u8,
    /// Errors that the server reports.
    pub fails: u8,
    /// The alias comes to stand for something else.
    pub points: u8,
    /// How often a stream breaks.
    pub cuts: u8,
    /// The server goes down. It comes up again, or does not.
    pub downs: u8,
    /// Time passes though all is not quiet.
    pub early: u8,
    /// A watcher is asked for, and not whose turn it is.
    pub picks: u8,
}

impl Budget {
    /// Nothing happens from outside.
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

    /// Returns whether a step may be taken still.
    pub fn allows(mut self, step: Step) -> bool {
        self.of(step).is_none_or(|left| *left > 0)
    }

    /// Takes note of a step.
    pub fn spend(&mut self, step: Step) {
        if let Some(left) = self.of(step) {
            *left -= 1;
        }
    }
}
