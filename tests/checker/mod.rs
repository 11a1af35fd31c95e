//! A model checker of our own: breadth first, so that the trace to a fault is a shortest one.

#![allow(dead_code, unreachable_pub)]

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

use crate::world::{Both, Setup, Step, World};

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

type Seen = HashMap<u64, (u64, Option<Step>), BuildHasherDefault<Same>>;

#[derive(Debug, Default)]
pub struct Report {
    pub states: usize,
    pub settled: usize,
    pub transitions: usize,
    pub fault: Option<Fault>,
}

#[derive(Debug)]
pub struct Fault {
    pub what: String,
    pub trace: Vec<Step>,
}

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
fn catch(f: impl FnOnce()) -> Option<String> {
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

/// Explores all states, at most `limit`. Stops at the first fault.
pub fn explore<V: Both>(setup: &Arc<Setup>, limit: usize) -> Report {
    let mut report = Report::default();
    let mut seen = Seen::default();
    let first = World::<V>::new(setup.clone());
    let print = fingerprint(&first);
    seen.insert(print, (print, None));
    let mut queue = VecDeque::from([(print, first)]);
    let mut steps = Vec::new();
    while let Some((print, world)) = queue.pop_front() {
        steps.clear();
        world.steps(&mut steps);
        if !steps.iter().any(|step| step.is_protocol()) {
            report.settled += 1;
            if let Some(what) = catch(|| world.check_settled()) {
                report.fault = Some(Fault { what, trace: trace(&seen, print) });
                break;
            }
        }
        for &step in &steps {
            report.transitions += 1;
            let mut next = world.clone();
            if let Some(what) = catch(|| next.take(step)) {
                let mut trace = trace(&seen, print);
                trace.push(step);
                report.fault = Some(Fault { what, trace });
                report.states = seen.len();
                return report;
            }
            let next_print = fingerprint(&next);
            if let std::collections::hash_map::Entry::Vacant(place) = seen.entry(next_print) {
                place.insert((print, Some(step)));
                queue.push_back((next_print, next));
            }
        }
        if seen.len() > limit {
            break;
        }
    }
    report.states = seen.len();
    report
}

fn trace(seen: &Seen, mut print: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    while let Some(&(parent, Some(step))) = seen.get(&print) {
        steps.push(step);
        print = parent;
    }
    steps.reverse();
    steps
}

/// A small random number generator (splitmix64): a seed reproduces a run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Walks at random until nothing is left to do. Returns the steps, and the fault if there is one.
pub fn walk<V: Both>(setup: &Arc<Setup>, seed: u64) -> (Vec<Step>, Option<String>) {
    let mut random = Random(seed);
    let mut world = World::<V>::new(setup.clone());
    let (mut taken, mut steps) = (Vec::new(), Vec::new());
    loop {
        steps.clear();
        world.steps(&mut steps);
        let protocol = steps.iter().filter(|step| step.is_protocol()).count();
        if protocol == 0 {
            if let Some(what) = catch(|| world.check_settled()) {
                return (taken, Some(what));
            }
        }
        if steps.is_empty() {
            return (taken, None);
        }
        // The protocol comes first in the list, and is as likely as all the environment together.
        let step = if protocol > 0 && random.below(2) == 0 {
            steps[random.below(protocol)]
        } else {
            steps[random.below(steps.len())]
        };
        taken.push(step);
        if let Some(what) = catch(|| world.take(step)) {
            return (taken, Some(what));
        }
        assert!(taken.len() < 10_000, "no end: {:?}", &taken[9_900..]);
    }
}

/// Takes steps out of a faulty run as long as it stays faulty.
pub fn shrink<V: Both>(setup: &Arc<Setup>, mut steps: Vec<Step>) -> (Vec<Step>, String) {
    let run = |steps: &[Step]| -> Option<(usize, String)> {
        let mut world = World::<V>::new(setup.clone());
        let mut possible = Vec::new();
        for (at, &step) in steps.iter().enumerate() {
            possible.clear();
            world.steps(&mut possible);
            if !possible.contains(&step) {
                return None;
            }
            if let Some(what) = catch(|| world.take(step)) {
                return Some((at + 1, what));
            }
        }
        // Let it settle in the plainest way.
        for _ in 0..1000 {
            possible.clear();
            world.protocol_steps(&mut possible);
            match possible.first() {
                Some(&step) => {
                    if let Some(what) = catch(|| world.take(step)) {
                        return Some((steps.len(), what));
                    }
                }
                None => return catch(|| world.check_settled()).map(|what| (steps.len(), what)),
            }
        }
        None
    };
    let Some((len, mut what)) = run(&steps) else { return (steps, "not reproduced".into()) };
    steps.truncate(len);
    loop {
        let before = steps.len();
        for size in [8, 4, 3, 2, 1] {
            let mut at = 0;
            while at + size <= steps.len() {
                let mut fewer = steps.clone();
                fewer.drain(at..at + size);
                match run(&fewer) {
                    Some((len, other)) => {
                        fewer.truncate(len);
                        (steps, what) = (fewer, other);
                    }
                    None => at += 1,
                }
            }
        }
        if steps.len() == before {
            return (steps, what);
        }
    }
}
