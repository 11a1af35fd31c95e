//! The long simulation: `simulate MILLIONS SEED [THREADS]` takes random steps in worlds of many clients, types and
//! resources at full speed. After each step what must hold is checked (`tests/world`); every so often all comes to rest,
//! and has to be as it should. The same seed makes the same runs, whatever the threads.
//!
//! `simulate explain SEED RUN` plays one run again and takes all out of it that it fails without.

mod run;
mod shrink;
#[path = "../../tests/world/mod.rs"]
mod world;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use std::{env, panic, thread};

use xds_machine::{Delta, Sotw};

use self::run::{Random, Run, Tally};

/// Steps of one run, which has a world and a seed of its own.
const RUN: u64 = 10_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|argument| argument.parse::<u64>().ok());
    if let (Some("explain"), Some(seed), Some(run)) = (arguments.first().map(String::as_str), number(1), number(2)) {
        explain(seed, run);
        return ExitCode::SUCCESS;
    }
    let (Some(millions), Some(seed)) = (number(0), number(1)) else {
        eprintln!("usage: simulate MILLIONS SEED [THREADS] | simulate explain SEED RUN");
        return ExitCode::from(2);
    };
    let threads = number(2).unwrap_or(2);
    let runs = (millions * 1_000_000).div_ceil(RUN);
    let (next, start) = (AtomicU64::new(0), Instant::now());
    let work = || {
        let mut tally = Tally::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= runs {
                return Ok(tally);
            }
            let played = panic::catch_unwind(|| play(seed, number));
            tally += played.map_err(|_| number)?;
        }
    };
    let tallies: Result<Vec<Tally>, u64> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("panics are caught")).collect()
    });
    match tallies {
        Ok(tallies) => {
            let tally = tallies.into_iter().fold(Tally::default(), |mut all, tally| {
                all += tally;
                all
            });
            let seconds = start.elapsed().as_secs_f64();
            let speed = tally.steps as f64 / seconds * 60.0 / 1e6;
            println!("{runs} runs, {tally}, {seconds:.1} s, {speed:.1} million steps a minute");
            ExitCode::SUCCESS
        }
        Err(number) => {
            eprintln!("run {number} of seed {seed} failed: `simulate explain {seed} {number}` makes it small");
            ExitCode::FAILURE
        }
    }
}

fn play(seed: u64, number: u64) -> Tally {
    let mut random = random(seed, number);
    if random.below(2) == 0 { Run::<Sotw>::new(random).play(RUN) } else { Run::<Delta>::new(random).play(RUN) }
}

fn explain(seed: u64, number: u64) {
    let mut random = random(seed, number);
    if random.below(2) == 0 { Run::<Sotw>::new(random).explain(RUN) } else { Run::<Delta>::new(random).explain(RUN) }
}

fn random(seed: u64, number: u64) -> Random {
    Random(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
