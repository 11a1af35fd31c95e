//! Walks with a client: each walk starts a client of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use xds_machine::client::Config;
use xds_machine::message::Node;
use xds_machine::{Delta, Sotw};

use super::ground::{Ground, Pace, Played};
use super::legal::legal;
use crate::client::ClientPeer;
use crate::client::memory::{Faultless, Memory};
use crate::client::player::Player;
use crate::client::session::{Session, Timing};
use crate::client::story::{self, ClientStory, Step};
use crate::message::Variant;
use crate::referee::{Complaint, Rule};
use crate::resource;
use crate::run::{Trouble, Verdict, Walked};

/// The limits of the patience.
const LEAST_PATIENCE: Duration = Duration::from_secs(2);
const LEAST_HASTE: Duration = Duration::from_millis(500);
const MOST_PATIENCE: Duration = Duration::from_secs(30);
/// The limits of the time after which silence is believed.
const LEAST_QUIET: Duration = Duration::from_millis(60);
const MOST_QUIET: Duration = Duration::from_secs(2);
/// How long a client may take to open its next stream.
const AGAIN: Duration = Duration::from_secs(20);
/// The name of the resource by which a client shows that it has read everything before.
const BARRIER: &str = "kit-barrier";

/// A function that starts a client of a variant.
type Start<'a> = dyn Fn(Variant) -> Result<Box<dyn ClientPeer>, Trouble> + Sync + 'a;

/// A client to walk with.
pub struct ClientArena<'a> {
    start: &'a Start<'a>,
    /// The type of the barrier, which no walk uses.
    barrier: String,
    played: AtomicUsize,
}

impl<'a> ClientArena<'a> {
    /// Makes an arena. `barrier` is the short name of a type that no walk uses.
    pub fn new(start: &'a Start<'a>, barrier: impl Into<String>) -> Self {
        Self { start, barrier: barrier.into(), played: AtomicUsize::new(0) }
    }

    fn walk(&self, peer: &mut dyn ClientPeer, variant: Variant, steps: &[Step], pace: Pace) -> Played {
        let timing = Timing { answer: LEAST_PATIENCE, quiet: LEAST_QUIET, again: AGAIN };
        let mut session = Session::new(peer, variant, timing);
        match session.calibrate(resource::type_url(&self.barrier), BARRIER) {
            Ok(true) => {}
            Ok(false) => return inconclusive("the client asks for nothing".into()),
            Err(trouble) => return inconclusive(trouble.0),
        }
        let slowest = session.slowest();
        let least = if pace == Pace::Hasty { LEAST_HASTE } else { LEAST_PATIENCE };
        let answer = (slowest * 20).clamp(least, MOST_PATIENCE);
        session.set_timing(Timing { answer, quiet: (slowest * 4).clamp(LEAST_QUIET, MOST_QUIET), again: AGAIN });
        let number = self.played.fetch_add(1, Ordering::Relaxed);
        let story = Arc::new(ClientStory::of_walk(variant, &legal(steps)));
        let player = Player::new(story, resource::type_url("cds"), &format!("kit-w{number}-"));
        let played = player.play(&mut session);
        let told = |rule, what: &str| Complaint { rule, type_url: String::new(), what: what.to_owned() };
        let walked = match (played.complaints.into_iter().next(), played.outcome.verdict) {
            (Some(complaint), _) => Walked::Complaint(complaint),
            // The client does not ask for the names that it is told to want.
            (None, Verdict::Fail) if played.late => Walked::Complaint(told(Rule::Names, &played.outcome.why)),
            (None, Verdict::Fail) => Walked::Complaint(told(Rule::Gone, &played.outcome.why)),
            (None, Verdict::Inconclusive) => Walked::Inconclusive(played.outcome.why),
            (None, _) => Walked::Silent,
        };
        Played { walked, ladder: played.outcome.ladder, is_there: true }
    }
}

fn inconclusive(why: String) -> Played {
    Played { walked: Walked::Inconclusive(why), ladder: Vec::new(), is_there: true }
}

impl Ground for ClientArena<'_> {
    type Step = Step;

    fn play(&self, variant: Variant, steps: &[Step], pace: Pace) -> Played {
        match (self.start)(variant) {
            Ok(mut peer) => self.walk(peer.as_mut(), variant, steps, pace),
            Err(why) => Played::with_nobody(why.0),
        }
    }

    fn write(&self, _: Variant, steps: &[Step]) -> Vec<String> {
        legal(steps).iter().filter_map(story::write_step).collect()
    }

    fn ours(&self, variant: Variant, steps: &[Step]) -> Vec<String> {
        let start = |variant| {
            let config = Config::new(Node::new("ours"));
            Ok(match variant {
                Variant::Sotw => Box::new(Memory::<Sotw, _>::new(config, Faultless)) as Box<dyn ClientPeer>,
                Variant::Delta => Box::new(Memory::<Delta, _>::new(config, Faultless)),
            })
        };
        ClientArena::new(&start, self.barrier.as_str()).play(variant, steps, Pace::Patient).ladder
    }
}
