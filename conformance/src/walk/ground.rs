//! Where walks are walked: the peer of one side, and what a step of that side is.

use crate::message::Variant;
use crate::run::Walked;

/// How long a walk waits for what must come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pace {
    /// As long as a case does: what counts.
    Patient,
    /// A few times what was measured: what only looks for a shorter walk.
    Hasty,
}

/// A walk that was walked.
#[derive(Clone, Debug)]
pub struct Played {
    /// How it ended.
    pub walked: Walked,
    /// The conversation.
    pub ladder: Vec<String>,
    /// Whether there was a peer at all.
    pub is_there: bool,
}

impl Played {
    /// A walk with nobody.
    pub fn with_nobody(why: String) -> Self {
        Self { walked: Walked::Inconclusive(why), ladder: Vec::new(), is_there: false }
    }
}

/// Where walks are walked.
pub trait Ground: Sync {
    /// A step of a walk.
    type Step: Clone + Send;

    /// Walks the steps, with names of their own.
    fn play(&self, variant: Variant, steps: &[Self::Step], pace: Pace) -> Played;

    /// Writes the steps as lines of a story.
    fn write(&self, variant: Variant, steps: &[Self::Step]) -> Vec<String>;

    /// Returns what this project's own machine would have said, which explains and does not judge.
    fn ours(&self, variant: Variant, steps: &[Self::Step]) -> Vec<String>;
}
