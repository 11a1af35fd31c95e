//! Walks with a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::ground::{Ground, Pace, Played};
use crate::memory::{Faultless, Memory};
use crate::message::Variant;
use crate::run::{Peer, Runner, Trouble};
use crate::story::{Step, Story};

/// A function that connects to the peer.
type Connect<'a> = dyn Fn(Pace) -> Result<Box<dyn Peer>, Trouble> + Sync + 'a;

/// A server to walk with.
pub struct Arena<'a> {
    connect: &'a Connect<'a>,
    /// The prefix of all names.
    prefix: String,
    /// Without a control: the names of resources that the server has.
    given: Option<Vec<String>>,
    /// The number of walks so far, which gives each walk names of its own.
    played: AtomicUsize,
}

impl<'a> Arena<'a> {
    /// Makes an arena. `prefix` begins all names; without a control, `given` names resources that the server has.
    pub fn new(connect: &'a Connect<'a>, prefix: impl Into<String>, given: Option<Vec<String>>) -> Self {
        Self { connect, prefix: prefix.into(), given, played: AtomicUsize::new(0) }
    }
}

impl Ground for Arena<'_> {
    type Step = Step;

    fn play(&self, variant: Variant, steps: &[Step], pace: Pace) -> Played {
        let mut peer = match (self.connect)(pace) {
            Ok(peer) => peer,
            Err(why) => return Played::with_nobody(why.0),
        };
        let number = self.played.fetch_add(1, Ordering::Relaxed);
        let story = Arc::new(Story::of_walk(variant, steps));
        let runner = Runner::new(story, variant, "cds", &format!("{}w{number}-", self.prefix));
        let mut runner = self.given.iter().fold(runner, |runner, names| runner.with_given(names));
        let walked = runner.walk(peer.as_mut());
        runner.clean(peer.as_mut());
        Played { walked, ladder: runner.ladder().to_vec(), is_there: true }
    }

    fn write(&self, variant: Variant, steps: &[Step]) -> Vec<String> {
        steps.iter().filter_map(|step| step.write(variant)).collect()
    }

    fn ours(&self, variant: Variant, steps: &[Step]) -> Vec<String> {
        let connect = |_| Ok(Box::new(Memory::new(Faultless)) as Box<dyn Peer>);
        Arena::new(&connect, "ours-", None).play(variant, steps, Pace::Patient).ladder
    }
}
