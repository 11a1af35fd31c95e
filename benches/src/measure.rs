//! Measures work beside its floor, in one run.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

use crate::alloc;

/// The number of turns that work and floor take, and the number of floor measurements per turn.
const TURNS: usize = 8;
const FLOORS: usize = 2;

/// Repeatable work.
pub trait Work {
    type Input;
    type Output;

    /// Prepares the input of the next round. Not measured.
    fn prepare(&mut self) -> Self::Input;

    /// Runs a round. The output is dropped after the clock has stopped.
    fn run(&mut self, input: Self::Input) -> Self::Output;
}

/// The absence of a floor.
pub struct Nothing;

impl Work for Nothing {
    type Input = ();
    type Output = ();

    fn prepare(&mut self) {}

    fn run(&mut self, (): ()) {}
}

/// Work that starts with cold processor caches, whatever its preparation left in them.
pub struct Cold<W> {
    work: W,
    other: Vec<u64>,
}

impl<W> Cold<W> {
    /// In bytes: more than any cache holds.
    const ALL: usize = 128 << 20;

    pub fn new(work: W) -> Self {
        Self { work, other: vec![1; Self::ALL / size_of::<u64>()] }
    }
}

impl<W: Work> Work for Cold<W> {
    type Input = W::Input;
    type Output = W::Output;

    fn prepare(&mut self) -> W::Input {
        let input = self.work.prepare();
        self.other.iter_mut().for_each(|other| *other = other.wrapping_mul(3));
        black_box(&self.other);
        input
    }

    fn run(&mut self, input: W::Input) -> W::Output {
        self.work.run(input)
    }
}

/// A measurement: a line of `bench-json`.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub workload: &'static str,
    pub n: usize,
    pub s: usize,
    pub changed: usize,
    pub ns: f64,
    /// Memory, or the size of the encoding; zero if neither is relevant.
    pub bytes: f64,
    pub allocs: f64,
    pub floor_ns: f64,
    /// The time relative to the floor's; where memory is measured, the bytes relative to the floor's.
    pub ratio: f64,
}

impl Row {
    pub fn new(workload: &'static str, n: usize, s: usize, changed: usize) -> Self {
        Self { workload, n, s, changed, ..Self::default() }
    }

    /// Fills in the time of work and of its floor.
    pub fn timed(self, rounds: usize, work: &mut impl Work, floor: &mut impl Work) -> Self {
        self.timed_each(rounds, 1, work, floor)
    }

    /// Does the same for a round that does the work `each` times.
    pub fn timed_each(self, rounds: usize, each: usize, work: &mut impl Work, floor: &mut impl Work) -> Self {
        let (mut times, mut floors, mut allocs) = (Vec::new(), Vec::new(), 0);
        // Work and floor take turns, because the state of the machine may change within a minute.
        for _ in 0..TURNS {
            round(work); // the first round finds the caches full of the other's data
            for _ in 0..rounds.div_ceil(TURNS) {
                let (time, allocated) = round(work);
                times.push(time);
                allocs += allocated;
            }
            round(floor);
            (0..FLOORS).for_each(|_| floors.push(round(floor).0));
        }
        let rounds = times.len();
        let each = each as f64;
        let (ns, floor_ns) = (median(&mut times) / each, median(&mut floors));
        Self { ns, floor_ns, ratio: ns / floor_ns, allocs: allocs as f64 / (rounds as f64 * each), ..self }
    }

    pub fn json(&self) -> String {
        let Self { workload, n, s, changed, ns, bytes, allocs, floor_ns, ratio } = self;
        format!(
            "{{\"workload\":\"{workload}\",\"n\":{n},\"s\":{s},\"changed\":{changed},\"ns\":{ns:.0},\"bytes\":{bytes:.1},\
             \"allocs\":{allocs:.1},\"floor_ns\":{floor_ns:.0},\"ratio\":{ratio:.7}}}"
        )
    }
}

/// Returns the processor time of this thread, in nanoseconds: other load on the machine does not count, except for its
/// effect on the caches.
pub fn clock() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the median time of this many rounds.
pub fn median_time(rounds: usize, work: &mut impl Work) -> f64 {
    median(&mut (0..rounds).map(|_| round(work).0).collect::<Vec<f64>>())
}

/// Returns the time and the allocations of one round.
fn round<W: Work>(work: &mut W) -> (f64, u64) {
    let input = work.prepare();
    let (allocations, start) = (alloc::allocations(), clock());
    let output = work.run(input);
    let (time, allocated) = (clock() - start, alloc::allocations() - allocations);
    drop(black_box(output));
    (time as f64, allocated)
}

pub fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
