//! The ground of walks: the peer of one side, and the steps of that side.

use crate::message::Variant;
use crate::run::Walked;

/// How long a walk waits for a message that must come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pace {
    /// As long as a case waits: for walks that count.
    Patient,
    /// A few times the measured time: for walks that only look for a shorter one.
    Hasty,
}

/// A walk that was played.
#[derive(Clone, Debug)]
pub struct Played {
    /// How the walk ended.
    pub walked: Walked,
    /// The conversation.
    pub ladder: Vec<String>,
    /// Whether there was a peer at all.
    pub is_there: bool,
}

impl Played {
    /// Makes the result of a walk without a peer.
    pub fn with_nobody(why: String) -> Self {
        Self { walked: Walked::Inconclusive(why), ladder: Vec::new(), is_there: false }
    }
}

/// A peer that walks are played against.
pub trait Ground: Sync {
    /// A step of a walk.
    type Step: Clone + Send;

    /// Plays the steps, with names of their own.
    fn play(&self, variant: Variant, steps: &[Self::Step], pace: Pace) -> Played;

    /// Writes the steps as lines of a story.
    fn write(&self, variant: Variant, steps: &[Self::Step]) -> Vec<String>;

    /// Returns the conversation that this project's own machine would have had: an explanation, and no judgement.
    fn ours(&self, variant: Variant, steps: &[Self::Step]) -> Vec<String>;
}
