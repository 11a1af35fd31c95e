//! A model checker for any model. The search is breadth first, so that the trace to a fault is a shortest one, and
//! detects livelock.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};

/// A model to explore: a state and its steps.
pub trait Model: Clone + Hash {
    /// A transition between two states.
    type Step: Copy + Debug;

    /// Adds the steps that can be taken.
    fn steps(&self, steps: &mut Vec<Self::Step>);
    /// Returns whether the step happens without the environment.
    fn is_own(step: Self::Step) -> bool;
    /// Returns whether the step may be repeated forever, such as a retry of an unreachable server.
    fn may_repeat(_: Self::Step) -> bool {
        false
    }
    /// Takes a step. Panics if a check fails.
    fn take(&mut self, step: Self::Step);
    /// Checks a state with no own steps except repeatable ones.
    fn check_settled(&self);
    /// Makes the state canonical for comparison.
    fn canonicalize(&mut self);
    /// Returns the goals that were reached, a bit each. Default: none.
    fn goals(&self) -> u128 {
        0
    }
}

/// The result of an exploration.
#[derive(Debug)]
pub struct Report<S> {
    /// The number of canonical states.
    pub states: usize,
    /// The number of states without own steps.
    pub settled: usize,
    /// The number of steps taken.
    pub transitions: usize,
    /// The goals that were reached.
    pub goals: u128,
    /// Whether every state was visited, and not only as many as the limit.
    pub complete: bool,
    /// The first fault, with a shortest trace.
    pub fault: Option<Fault<S>>,
}

impl<S> Default for Report<S> {
    fn default() -> Self {
        Self { states: 0, settled: 0, transitions: 0, goals: 0, complete: false, fault: None }
    }
}

/// A failed check, and the trace to it.
#[derive(Debug)]
pub struct Fault<S> {
    /// The message of the check that failed.
    pub what: String,
    /// The steps from the first state.
    pub trace: Vec<S>,
}

/// The combined results of a variant's explorations.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// The number of canonical states.
    pub states: usize,
    /// The number of states without own steps.
    pub settled: usize,
    /// The number of steps taken.
    pub transitions: usize,
    /// The goals that were reached, a bit each.
    pub goals: u128,
    /// Whether every state of every exploration was visited.
    pub complete: bool,
}

/// Explores each budget of each variant, on as many threads as there are processors. Returns the sums, indexed by
/// variant. Panics at a fault.
pub fn explore_all<B: Copy + Debug + Sync, S: Debug>(
    variants: &[(&str, &[B])],
    explore: impl Fn(usize, B) -> Report<S> + Sync,
) -> Vec<Sum> {
    let each =
        |(at, (_, budgets)): (usize, &(&str, &'_ [B]))| budgets.iter().map(move |&b| (at, b)).collect::<Vec<_>>();
    let jobs: Vec<(usize, B)> = variants.iter().enumerate().flat_map(each).collect();
    let next = AtomicUsize::new(0);
    let none = Sum { states: 0, settled: 0, transitions: 0, goals: 0, complete: true };
    let sums = Mutex::new(vec![none; variants.len()]);
    let work = || {
        while let Some(&(at, budget)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let report = explore(at, budget);
            if let Some(fault) = report.fault {
                panic!("{}: {}\n{:?}\n{budget:?}", variants[at].0, fault.what, fault.trace);
            }
            let sum = &mut sums.lock().expect("no other panicked")[at];
            sum.states += report.states;
            sum.settled += report.settled;
            sum.transitions += report.transitions;
            sum.goals |= report.goals;
            sum.complete &= report.complete;
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| _ = scope.spawn(work));
    });
    sums.into_inner().expect("no thread panicked")
}

/// A hasher for fingerprints, which are hashes already.
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

/// The number of a state, and the step that first reached it.
struct Seen<S> {
    parent: u64,
    step: Option<S>,
    number: u32,
}

type States<S> = HashMap<u64, Seen<S>, BuildHasherDefault<Same>>;

/// Collects all bytes, to hash them at once.
struct Bytes<'a>(&'a mut Vec<u8>);

impl Hasher for Bytes<'_> {
    fn finish(&self) -> u64 {
        twox_hash::XxHash3_64::oneshot(self.0)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// Returns the hash of a canonical state.
fn fingerprint(state: &impl Hash) -> u64 {
    thread_local!(static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        let mut hasher = Bytes(buffer);
        state.hash(&mut hasher);
        hasher.finish()
    })
}

thread_local! {
    static FAULT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `f`, and returns the message of its panic, if any.
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

/// Explores all states, or slightly more than `limit`. Stops at the first fault.
pub fn explore<M: Model>(mut first: M, limit: usize) -> Report<M::Step> {
    let mut report = Report::default();
    let mut states = States::default();
    first.canonicalize();
    let print = fingerprint(&first);
    states.insert(print, Seen { parent: print, step: None, number: 0 });
    let mut queue = VecDeque::from([(print, first)]);
    let (mut steps, mut edges, mut repeats, mut unsettled) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    while let Some((print, world)) = queue.pop_front() {
        let number = states[&print].number;
        steps.clear();
        world.steps(&mut steps);
        let mut own = steps.iter().filter(|step| M::is_own(**step)).peekable();
        let rests = own.peek().is_none();
        report.settled += usize::from(rests);
        if own.all(|step| M::may_repeat(*step)) {
            match catch(|| world.check_settled()) {
                Some(what) if rests => {
                    return Report { fault: Some(fault(&states, print, None, what)), states: states.len(), ..report };
                }
                // Not a fault if the state is only passed through.
                Some(what) => unsettled.push((number, what)),
                None => {}
            }
        }
        for &step in &steps {
            report.transitions += 1;
            let mut next = world.clone();
            if let Some(what) = catch(|| next.take(step)) {
                return Report { fault: Some(fault(&states, print, Some(step), what)), states: states.len(), ..report };
            }
            report.goals |= next.goals();
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
            if M::may_repeat(step) {
                repeats.push((number, next_number));
            } else if M::is_own(step) {
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
    let circles = Circles::new(states.len(), &edges, &repeats);
    report.settled += circles.at_rest;
    let unsettled = unsettled.into_iter().find(|(state, _)| circles.is_at_rest(*state));
    let circle = circles.circle.map(|state| (state, "the protocol goes in a circle from here".into()));
    if let Some((state, what)) = circle.or(unsettled) {
        let print = states.iter().find(|(_, seen)| seen.number == state).map(|(&print, _)| print).expect("a state");
        report.fault = Some(fault(&states, print, None, what));
    }
    report
}

/// The cycles of own steps.
struct Circles {
    /// A state on a cycle with a step that may not repeat.
    circle: Option<u32>,
    /// The cycle of each state, by a number unique to the cycle.
    of: HashMap<u32, u32>,
    /// The cycles that no step leaves.
    last: HashSet<u32>,
    /// The number of states on these.
    at_rest: usize,
}

impl Circles {
    fn new(states: usize, edges: &[(u32, u32)], repeats: &[(u32, u32)]) -> Self {
        // Removes the states that no cycle reaches, then those that reach no cycle: the rest is on a cycle, or between
        // two.
        let all = edges.iter().chain(repeats).copied();
        let mut left = vec![true; states];
        peel(&mut left, all.clone());
        peel(&mut left, all.clone().map(|(from, to)| (to, from)));
        let mut next: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut before: HashMap<u32, Vec<u32>> = HashMap::new();
        for (from, to) in all.clone().filter(|&(from, to)| left[from as usize] && left[to as usize]) {
            next.entry(from).or_default().push(to);
            before.entry(to).or_default().push(from);
        }
        let mut of = HashMap::new();
        let nodes: Vec<u32> = (0..states as u32).filter(|&state| left[state as usize]).collect();
        for state in finished(&nodes, &next) {
            let mut stack = vec![state];
            while let Some(at) = stack.pop() {
                if let Entry::Vacant(place) = of.entry(at) {
                    place.insert(state);
                    stack.extend(before.get(&at).into_iter().flatten());
                }
            }
        }
        let same = |&(from, to): &(u32, u32)| of.contains_key(&from) && of.get(&from) == of.get(&to);
        let circle = edges.iter().find(|edge| same(edge)).map(|&(from, _)| from);
        let mut last: HashSet<u32> = all.clone().filter(same).map(|(from, _)| of[&from]).collect();
        all.filter(|edge| !same(edge)).for_each(|(from, _)| _ = of.get(&from).map(|circle| last.remove(circle)));
        let at_rest = of.values().filter(|circle| last.contains(circle)).count();
        Self { circle, of, last, at_rest }
    }

    fn is_at_rest(&self, state: u32) -> bool {
        self.of.get(&state).is_some_and(|circle| self.last.contains(circle))
    }
}

/// Returns the nodes of a graph in reverse order of completion of a depth-first search (Kosaraju's algorithm).
fn finished(nodes: &[u32], next: &HashMap<u32, Vec<u32>>) -> Vec<u32> {
    let (mut seen, mut order) = (HashSet::new(), Vec::new());
    for &node in nodes {
        let mut stack = vec![(node, false)];
        while let Some((at, done)) = stack.pop() {
            if done {
                order.push(at);
            } else if seen.insert(at) {
                stack.push((at, true));
                stack.extend(next.get(&at).into_iter().flatten().map(|&to| (to, false)));
            }
        }
    }
    order.reverse();
    order
}

/// Removes nodes without incoming edges until there are none (Kahn's algorithm).
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

fn fault<S: Copy>(states: &States<S>, mut print: u64, last: Option<S>, what: String) -> Fault<S> {
    let mut trace: Vec<S> = last.into_iter().collect();
    while let Some(Seen { parent, step: Some(step), .. }) = states.get(&print) {
        trace.push(*step);
        print = *parent;
    }
    trace.reverse();
    Fault { what, trace }
}
