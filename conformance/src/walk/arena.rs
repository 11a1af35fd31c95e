//! Where walks are walked: a peer, and what is known of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::message::Variant;
use crate::run::{Peer, Runner, Trouble, Walked};
use crate::story::{Step, Story};

/// How long a walk waits for what must come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pace {
    /// As long as a case does: what counts.
    Patient,
    /// A few times what was measured: what only looks for a shorter walk.
    Hasty,
}

/// Connects to the peer.
type Connect<'a> = dyn Fn(Pace) -> Result<Box<dyn Peer>, Trouble> + Sync + 'a;

/// A peer to walk with.
pub struct Arena<'a> {
    connect: &'a Connect<'a>,
    /// The beginning of all names.
    prefix: String,
    /// Without a control: the names of resources that the server has.
    given: Option<Vec<String>>,
    /// The walks so far: each has names of its own.
    played: AtomicUsize,
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

impl<'a> Arena<'a> {
    /// Makes an arena. `prefix` begins all names; without a control, `given` names resources that the server has.
    pub fn new(connect: &'a Connect<'a>, prefix: impl Into<String>, given: Option<Vec<String>>) -> Self {
        Self { connect, prefix: prefix.into(), given, played: AtomicUsize::new(0) }
    }

    /// Walks the steps, on a connection and with names of its own.
    pub fn play(&self, variant: Variant, steps: &[Step], pace: Pace) -> Played {
        let mut peer = match (self.connect)(pace) {
            Ok(peer) => peer,
            Err(why) => return Played { walked: Walked::Inconclusive(why.0), ladder: Vec::new(), is_there: false },
        };
        let number = self.played.fetch_add(1, Ordering::Relaxed);
        let story = Arc::new(Story::of_walk(variant, steps));
        let runner = Runner::new(story, variant, "cds", &format!("{}w{number}-", self.prefix));
        let mut runner = self.given.iter().fold(runner, |runner, names| runner.with_given(names));
        let walked = runner.walk(peer.as_mut());
        runner.clean(peer.as_mut());
        Played { walked, ladder: runner.ladder().to_vec(), is_there: true }
    }
}
