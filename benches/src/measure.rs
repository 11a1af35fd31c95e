//! Measures work beside its floor, in one run.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

use crate::alloc;

/// How often work and floor take turns, and how often the floor is measured in each.
const TURNS: usize = 8;
const FLOORS: usize = 2;

/// Work that can be done again and again.
pub trait Work {
    type Input;
    type Output;

    /// What the next round needs. Not measured.
    fn prepare(&mut self) -> Self::Input;

    /// The round. What it returns is dropped when the clock stands.
    fn run(&mut self, input: Self::Input) -> Self::Output;
}

/// No floor.
pub struct Nothing;

impl Work for Nothing {
    type Input = ();
    type Output = ();

    fn prepare(&mut self) {}

    fn run(&mut self, (): ()) {}
}

/// Work that finds nothing in the processor's caches, whatever its preparation left there.
pub struct Cold<W> {
    work: W,
    other: Vec<u64>,
}

impl<W> Cold<W> {
    /// Of bytes: more than any cache has.
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

/// What was measured: a line of `bench-json`.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub workload: &'static str,
    pub n: usize,
    pub s: usize,
    pub changed: usize,
    pub ns: f64,
    /// Memory, or the size of what is encoded; zero where it says nothing.
    pub bytes: f64,
    pub allocs: f64,
    pub floor_ns: f64,
    /// Of the time to the floor's; of the bytes to those of the floor where memory is measured.
    pub ratio: f64,
}

impl Row {
    pub fn new(workload: &'static str, n: usize, s: usize, changed: usize) -> Self {
        Self { workload, n, s, changed, ..Self::default() }
    }

    /// Fills in the time of some work beside that of its floor.
    pub fn timed(self, rounds: usize, work: &mut impl Work, floor: &mut impl Work) -> Self {
        self.timed_each(rounds, 1, work, floor)
    }

    /// The same of work that is done for each of so many.
    pub fn timed_each(self, rounds: usize, each: usize, work: &mut impl Work, floor: &mut impl Work) -> Self {
        let (mut times, mut floors, mut allocs) = (Vec::new(), Vec::new(), 0);
        // In turns, for what is true of the machine now need not be in a minute.
        for _ in 0..TURNS {
            round(work); // the first finds the caches full of the other
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

/// The time that this thread had on a processor, in nanoseconds: what others do on the machine does not count, but for
/// what they do to the caches.
pub fn clock() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The time of one round, and its allocations.
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
