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
            let message = info.payload_as_str().unwrap_or("a panic").to_string();
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
