//! Non-interference: a world beside its twin, which takes the same steps without those of other types or names. What
//! is kept takes no notice of the rest.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use xds_machine::ResourceName;

use super::{Application, Both, Budget, Made, Pair, Step, World};
use crate::random::Random;
use crate::search::{Model, catch};
use crate::shrink::fewest;

/// What a twin keeps.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kept {
    /// One type: the twins put the same messages of that type on the wire. No other type may come before it in the push
    /// order.
    Type(usize),
    /// One resource of one type: the application ends with the same state of it. The names of other resources are left
    /// out, and the wildcard is not.
    Name(usize),
}

/// A step of both twins.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Turn {
    /// An event of the environment, which only the first twin meets if it concerns what is left out.
    Event(Step),
    /// The client opens a stream if it wants one, and sends all that it has to send.
    Send,
    /// The server reads all requests.
    Hear,
    /// The server sends all that it has to send.
    Answer,
    /// The client reads all responses.
    Read,
    /// The application accepts an update of a type.
    Accept(usize),
    /// Half of the time passes that a server waits for an answer.
    Pass,
    /// The protocol takes all steps but verdicts.
    Flow,
    /// The protocol comes to rest.
    Rest,
}

/// A world, and its twin.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Apart<V: Both> {
    kept: Kept,
    whole: World<V>,
    twin: World<V>,
}

impl<V: Both> Apart<V> {
    /// Makes twins without history.
    pub fn new(setup: &Arc<Made>, kept: Kept) -> Self {
        Self { kept, whole: World::new(setup.clone()), twin: World::new(setup.clone()) }
    }

    fn concerns(&self, step: Step) -> bool {
        use Step::{Delete, Forget, Put, Refetch, Reject, RejectOne, Silence, Subscribe, Unsubscribe};
        let (t, n) = match step {
            Put { t, n } | Delete { t, n } => (t, n),
            Subscribe { t, n, .. } | Unsubscribe { t, n, .. } | Refetch { t, n, .. } | Forget { t, n, .. } => (t, n),
            RejectOne { t, n, .. } => (t, n),
            Step::Pause { t, .. } | Reject { t, .. } | Silence { t, .. } => (t, usize::MAX),
            _ => return true,
        };
        match self.kept {
            Kept::Type(kept) => t == kept,
            Kept::Name(kept) => n == kept || self.whole.setup.names.get(n).is_some_and(ResourceName::is_wildcard),
        }
    }

    /// Returns whether an event can be left out of the twin, or happens in both.
    fn is_comparable(&self, event: Step) -> bool {
        match (self.kept, event) {
            // Time has its own turns, and a doubt makes a type known.
            (_, Step::Beat | Step::Wait | Step::Pass | Step::Doubt { .. } | Step::Know { .. } | Step::Fail { .. }) => {
                false
            }
            // A rejection of one resource is one of the whole response to the server, and needs another resource.
            (Kept::Name(_), Step::Reject { .. } | Step::Pause { .. } | Step::Silence { .. }) => false,
            (Kept::Name(kept), Step::RejectOne { n, .. }) => n != kept,
            (Kept::Type(kept), Step::RejectOne { t, .. }) => t != kept,
            _ => true,
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let types = 0..self.whole.setup.types.len();
        match self.kept {
            Kept::Type(_) => {
                let own = [Turn::Send, Turn::Hear, Turn::Answer, Turn::Read];
                let pass = (self.whole.budget.passes > 0).then_some(Turn::Pass);
                types.map(Turn::Accept).chain(own).chain(pass).collect()
            }
            Kept::Name(_) => vec![Turn::Flow, Turn::Rest],
        }
    }

    fn play(world: &mut World<V>, turn: Turn) {
        let all = |world: &mut World<V>, step| {
            while world.can(step) {
                world.take(step);
            }
        };
        match turn {
            Turn::Event(step) => world.take(step),
            Turn::Send => {
                [Step::Open { c: 0 }, Step::ClientSends { c: 0 }].into_iter().for_each(|step| all(world, step))
            }
            Turn::Hear => all(world, Step::ServerReads { c: 0 }),
            Turn::Answer => all(world, Step::ServerSends { c: 0 }),
            Turn::Read => all(world, Step::ClientReads { c: 0 }),
            Turn::Accept(t) if world.can(Step::Accept { c: 0, t }) => world.take(Step::Accept { c: 0, t }),
            Turn::Accept(_) => {}
            Turn::Pass => {
                world.budget.passes -= 1;
                world.pass_until(world.now + world.setup.answer_wait / 2);
            }
            Turn::Flow => {
                while world
                    .steps_of(0)
                    .filter(|step| !matches!(step, Step::Accept { .. }))
                    .any(|step| attempt(world, step))
                {}
            }
            Turn::Rest => while world.steps_of(0).chain([Step::Tick]).any(|step| attempt(world, step)) {},
        }
    }

    /// Compares the twins, as far as they are comparable after a turn.
    fn compare(&self, turn: Turn) {
        let [whole, twin] = [&self.whole, &self.twin].map(|world| &world.pairs[0]);
        match self.kept {
            Kept::Type(t) => {
                let url = &self.whole.setup.types[t];
                same(self.kept, "requests", requests(whole, url), requests(twin, url));
                same(self.kept, "responses", responses(whole, url), responses(twin, url));
                same(self.kept, "state", state(&whole.apps[t]), state(&twin.apps[t]));
            }
            Kept::Name(n) if turn == Turn::Rest => {
                let name = &self.whole.setup.names[n];
                for (whole, twin) in whole.apps.iter().zip(&twin.apps) {
                    same(self.kept, "state", state_of(whole, name), state_of(twin, name));
                }
            }
            Kept::Name(_) => {}
        }
    }
}

fn same<T: Debug + PartialEq>(kept: Kept, of: &str, whole: T, twin: T) {
    assert!(whole == twin, "{kept:?} is disturbed, its {of}: {whole:?}, and {twin:?} without the rest");
}

fn attempt<V: Both>(world: &mut World<V>, step: Step) -> bool {
    let can = world.can(step);
    if can {
        world.take(step);
    }
    can
}

/// Returns the requests of a type on the wire, without nonces and versions, which may count what other types do.
fn requests<V: Both>(pair: &Pair<V>, url: &xds_machine::TypeUrl) -> Vec<impl Debug + PartialEq + use<V>> {
    let all = pair.up.iter().map(V::request).filter(|request| request.type_url == url);
    all.map(|request| {
        let claims = request.version.is_some_and(|version| !version.is_empty());
        let names = (request.names.to_vec(), request.unsubscribe.to_vec());
        let initial: Vec<ResourceName> = request.initial.into_keys().collect();
        (request.nonce.is_empty(), request.error.is_some(), claims, names, initial)
    })
    .collect()
}

/// Returns the responses of a type on the wire, without nonces and versions.
fn responses<V: Both>(pair: &Pair<V>, url: &xds_machine::TypeUrl) -> Vec<impl Debug + PartialEq + use<V>> {
    let all = pair.down.iter().map(V::response).filter(|response| response.type_url == *url);
    all.map(|response| {
        let beats: Vec<ResourceName> = response.beats.into_keys().collect();
        (response.resources, beats, response.removed, response.errors)
    })
    .collect()
}

type Names = BTreeSet<ResourceName>;

/// Returns what an application has and knows.
fn state(app: &Application) -> impl Debug + PartialEq + use<> {
    let missing: Names = app.missing.keys().cloned().collect();
    let judged = app.judging.as_ref().map(|update| update.resources().count());
    (app.applied.clone(), app.rejected.clone(), missing, app.failed.clone(), app.expired.clone(), judged)
}

/// Returns what an application has and knows of one resource.
fn state_of(app: &Application, name: &ResourceName) -> impl Debug + PartialEq + use<> {
    let is_in = [app.missing.contains_key(name), app.failed.contains(name), app.expired.contains(name)];
    (app.applied.get(name).copied(), is_in)
}

impl<V: Both> Model for Apart<V> {
    type Step = Turn;

    fn steps(&self, turns: &mut Vec<Turn>) {
        let mut steps = Vec::new();
        self.whole.steps(&mut steps);
        let events = steps.into_iter().filter(|&step| !step.is_protocol() && self.is_comparable(step));
        turns.extend(self.turns());
        turns.extend(events.map(Turn::Event));
    }

    fn is_own(_: Turn) -> bool {
        false // a turn may change nothing
    }

    fn take(&mut self, turn: Turn) {
        Self::play(&mut self.whole, turn);
        let in_both = match turn {
            Turn::Event(Step::Cut { .. }) => self.twin.pairs[0].server.is_some(),
            Turn::Event(step) => self.concerns(step),
            _ => true,
        };
        if in_both {
            Self::play(&mut self.twin, turn);
        }
        self.twin.budget = self.whole.budget;
        self.compare(turn);
    }

    fn check_settled(&self) {}

    fn canonicalize(&mut self) {
        self.whole.canonicalize();
        self.twin.canonicalize();
    }
}

/// Walks at random. Returns the turns before the first difference, and the difference.
pub fn walk<V: Both>(setup: &Arc<Made>, kept: Kept, seed: u64, count: usize) -> Option<(Vec<Turn>, String)> {
    let mut random = Random(seed);
    let (mut twins, mut taken, mut turns) = (Apart::<V>::new(setup, kept), Vec::new(), Vec::new());
    for _ in 0..count {
        turns.clear();
        twins.steps(&mut turns);
        let own = twins.turns().len();
        let choices = if random.one_in(2) { own } else { turns.len() };
        let turn = turns[random.below(choices)];
        taken.push(turn);
        if let Some(what) = catch(|| twins.take(turn)) {
            return Some((taken, what));
        }
    }
    None
}

/// Replays those of the turns that are possible. Returns the first difference, and the turns before it.
pub fn replay<V: Both>(setup: &Arc<Made>, kept: Kept, turns: &[Turn]) -> Option<(Vec<Turn>, String)> {
    let (mut twins, mut taken) = (Apart::<V>::new(setup, kept), Vec::new());
    twins.whole.budget = Budget::PLENTY.silences(9);
    twins.twin.budget = twins.whole.budget;
    for &turn in turns {
        if !matches!(turn, Turn::Event(step) if !twins.whole.can(step)) {
            taken.push(turn);
            if let Some(what) = catch(|| twins.take(turn)) {
                return Some((taken, what));
            }
        }
    }
    None
}

/// Leaves out the turns that a difference does not need.
pub fn shrink<V: Both>(setup: &Arc<Made>, kept: Kept, turns: Vec<Turn>) -> Vec<Turn> {
    fewest(turns, |fewer| replay::<V>(setup, kept, &fewer).map(|(taken, _)| taken))
}
