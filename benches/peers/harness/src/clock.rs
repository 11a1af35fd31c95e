//! Two clocks: the time that this thread had on a processor, which counts, and the time that passed.

use std::hint::black_box;
use std::time::{Duration, Instant};

use benches::measure::{Work, clock, median};

/// After this much time no further round begins.
const PATIENCE: Duration = Duration::from_secs(6);

/// A point on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    processor: u64,
    wall: Instant,
}

/// How long something took, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    pub ns: f64,
    pub wall_ns: f64,
}

impl Start {
    pub fn now() -> Self {
        Self { processor: clock(), wall: Instant::now() }
    }

    pub fn took(self) -> Took {
        let ns = (clock() - self.processor) as f64;
        Took { ns, wall_ns: self.wall.elapsed().as_nanos() as f64 }
    }
}

/// Takes a measurement up to `most` times within `PATIENCE`. Returns the medians and the number of measurements; the
/// first is left out if there are others.
pub fn rounds<E>(most: usize, mut round: impl FnMut(usize) -> Result<Took, E>) -> Result<(Took, usize), E> {
    let (start, mut took) = (Instant::now(), Vec::new());
    while took.len() < most && (took.is_empty() || start.elapsed() < PATIENCE) {
        took.push(round(took.len())?);
    }
    let warm = if took.len() > 1 { &took[1..] } else { &took[..] };
    let middle = |of: fn(&Took) -> f64| median(&mut warm.iter().map(of).collect::<Vec<_>>());
    Ok((Took { ns: middle(|took| took.ns), wall_ns: middle(|took| took.wall_ns) }, warm.len()))
}

/// Returns the time of a floor.
pub fn floor(mut work: impl Work) -> f64 {
    let mut times = Vec::new();
    for _ in 0..7 {
        let input = work.prepare();
        let start = Start::now();
        let output = work.run(input);
        times.push(start.took().ns);
        drop(black_box(output));
    }
    median(&mut times)
}
