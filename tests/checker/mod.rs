//! A model checker of our own: breadth first, so that the trace to a fault is a shortest one, and it sees livelock.

#![allow(dead_code, unreachable_pub)]

pub mod walk;

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

use crate::world::{Both, Goals, Made, Step, World};

/// What an exploration found.
#[derive(Debug, Default)]
pub struct Report {
    pub states: usize,
    pub settled: usize,
    pub transitions: usize,
    /// What happened on the way.
    pub goals: Goals,
    /// Whether everything was seen, and not only as much as was asked for.
    pub complete: bool,
    pub fault: Option<Fault>,
}

#[derive(Debug)]
pub struct Fault {
    pub what: String,
    pub trace: Vec<Step>,
}

/// Fingerprints are hashes already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only fingerprints")
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}

/// How a state was first reached, and its number.
struct Seen {
    parent: u64,
    step: Option<Step>,
    number: u32,
}

type States = HashMap<u64, Seen, BuildHasherDefault<Same>>;

/// Takes in all bytes, to be hashed at once.
struct Bytes<'a>(&'a mut Vec<u8>);

impl Hasher for Bytes<'_> {
    fn finish(&self) -> u64 {
        twox_hash::XxHash3_64::oneshot(self.0)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// A hash of a state that is canonical.
pub fn fingerprint<V: Both>(world: &World<V>) -> u64 {
    thread_local!(static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        let mut hasher = Bytes(buffer);
        world.hash(&mut hasher);
        hasher.finish()
    })
}

thread_local! {
    static FAULT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `f`; what it panics with, if it does.
pub fn catch(f: impl FnOnce()) -> Option<String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let message = match (info.payload().downcast_ref::<&str>(), info.payload().downcast_ref::<String>()) {
                (Some(message), _) => message.to_string(),
                (None, Some(message)) => message.clone(),
                (None, None) => "a panic".to_string(),
            };
            let place = info.location().map_or(String::new(), |at| format!(" ({}:{})", at.file(), at.line()));
            let caught = FAULT.with_borrow_mut(|fault| match fault {
                Some(fault) => {
                    *fault = message + &place;
                    true
                }
                None => false,
            });
            if !caught {
                loud(info);
            }
        }));
    });
    FAULT.set(Some(String::new()));
    let failed = panic::catch_unwind(AssertUnwindSafe(f)).is_err();
    let message = FAULT.take();
    message.filter(|_| failed)
}

/// Explores all states, or some more than `limit`. Stops at the first fault.
pub fn explore<V: Both>(setup: &Arc<Made>, limit: usize) -> Report {
    let mut report = Report::default();
    let mut states = States::default();
    let mut first = World::<V>::new(setup.clone());
    first.canonicalize();
    let print = fingerprint(&first);
    states.insert(print, Seen { parent: print, step: None, number: 0 });
    let mut queue = VecDeque::from([(print, first)]);
    let (mut steps, mut edges) = (Vec::new(), Vec::new());
    while let Some((print, world)) = queue.pop_front() {
        let number = states[&print].number;
        steps.clear();
        world.steps(&mut steps);
        if !steps.iter().any(|step| step.is_protocol()) {
            report.settled += 1;
            if let Some(what) = catch(|| world.check_settled()) {
                return Report { fault: Some(fault(&states, print, None, what)), states: states.len(), ..report };
            }
        }
        for &step in &steps {
            report.transitions += 1;
            let mut next = world.clone();
            if let Some(what) = catch(|| next.take(step)) {
                return Report { fault: Some(fault(&states, print, Some(step), what)), states: states.len(), ..report };
            }
            next.pairs.iter().for_each(|pair| report.goals.0 |= pair.goals.0);
            next.canonicalize();
            let next_print = fingerprint(&next);
            let next_number = states.len() as u32;
            let next_number = match states.entry(next_print) {
                Entry::Occupied(seen) => seen.get().number,
                Entry::Vacant(place) => {
                    place.insert(Seen { parent: print, step: Some(step), number: next_number });
                    queue.push_back((next_print, next));
                    next_number
                }
            };
            if step.is_protocol() {
                edges.push((number, next_number));
            }
        }
        if states.len() > limit {
            report.states = states.len();
            return report;
        }
    }
    report.states = states.len();
    report.complete = true;
    if let Some(state) = on_a_cycle(states.len(), &edges) {
        let print = states.iter().find(|(_, seen)| seen.number == state).map(|(&print, _)| print).expect("a state");
        report.fault = Some(fault(&states, print, None, "the protocol goes in a circle from here".into()));
    }
    report
}

/// A state from which the protocol's own steps lead back to it, if there is one: where there is none, the protocol comes to
/// rest whenever it is left alone.
fn on_a_cycle(states: usize, edges: &[(u32, u32)]) -> Option<u32> {
    // What can't be reached from a cycle goes, then what leads to none: what is left is on one, or between two.
    let mut left = vec![true; states];
    peel(&mut left, edges.iter().copied());
    peel(&mut left, edges.iter().map(|&(from, to)| (to, from)));
    (0..states as u32).find(|&state| left[state as usize])
}

/// Takes away what no edge leads to, as long as there is something (Kahn's algorithm).
fn peel(left: &mut [bool], edges: impl Iterator<Item = (u32, u32)> + Clone) {
    let states = left.len();
    let (mut incoming, mut starts) = (vec![0_u32; states], vec![0_usize; states + 1]);
    let alive: Vec<bool> = left.to_vec();
    let edges = edges.filter(|&(from, to)| alive[from as usize] && alive[to as usize]);
    for (from, to) in edges.clone() {
        incoming[to as usize] += 1;
        starts[from as usize + 1] += 1;
    }
    (0..states).for_each(|at| starts[at + 1] += starts[at]);
    let (mut places, mut targets) = (starts.clone(), vec![0_u32; starts[states]]);
    for (from, to) in edges {
        targets[places[from as usize]] = to;
        places[from as usize] += 1;
    }
    let mut free: Vec<u32> =
        (0..states as u32).filter(|&state| left[state as usize] && incoming[state as usize] == 0).collect();
    while let Some(state) = free.pop() {
        left[state as usize] = false;
        for &to in &targets[starts[state as usize]..starts[state as usize + 1]] {
            incoming[to as usize] -= 1;
            if incoming[to as usize] == 0 {
                free.push(to);
            }
        }
    }
}

fn fault(states: &States, mut print: u64, last: Option<Step>, what: String) -> Fault {
    let mut trace: Vec<Step> = last.into_iter().collect();
    while let Some(Seen { parent, step: Some(step), .. }) = states.get(&print) {
        trace.push(*step);
        print = *parent;
    }
    trace.reverse();
    Fault { what, trace }
}
