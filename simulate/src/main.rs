//! The long simulation: `simulate MILLIONS SEED [THREADS]` takes random steps in worlds of many clients, types and
//! resources at full speed. The invariants (`testing/src/world`) are checked after each step, and the final state
//! whenever the world comes to rest, which happens at intervals. The same seed makes the same runs, with any number of
//! threads.
//!
//! One run in eight is one of twins (`twins.rs`), which shows whether a type or a name disturbs another.
//!
//! `simulate explain SEED RUN` plays one run again and reduces it to the steps that its failure needs. `simulate survey
//! SEED RUNS [FIRST]` continues after failures, and prints for each check the number of failed runs and the first of
//! them; with FIRST a survey goes on where an earlier one ended.
//!
//! `simulate letter MILLIONS SEED [THREADS]` runs the machines against peers that take the specification by the letter
//! (`testing/src/letter`), and prints the same table, and for each broken rule the story of the first walk that broke
//! it.
//!
//! `simulate fleet [SEED]` differs: it simulates the costs of a large fleet, from the measured costs of one stream
//! (`fleet/`).

mod fleet;
mod run;
mod shrink;
mod twins;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use std::{env, panic, thread};

use xds_machine::{Delta, Sotw};
use xds_machine_testing::letter;
use xds_machine_testing::random::Random;

use self::run::{Run, Tally};

/// The number of steps of one run. Each run has its own world and seed.
const RUN: u64 = 10_000;
/// One of so many runs is one of twins.
const TWINS: usize = 8;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|argument| argument.parse::<u64>().ok());
    if let (Some("explain"), Some(seed), Some(run)) = (arguments.first().map(String::as_str), number(1), number(2)) {
        explain(seed, run);
        return ExitCode::SUCCESS;
    }
    if let (Some("survey"), Some(seed), Some(runs)) = (arguments.first().map(String::as_str), number(1), number(2)) {
        survey(seed, number(3).unwrap_or_default(), runs);
        return ExitCode::SUCCESS;
    }
    if let (Some("letter"), Some(millions), Some(seed)) = (arguments.first().map(String::as_str), number(1), number(2))
    {
        return by_letter(millions, seed, number(3).unwrap_or(2));
    }
    if arguments.first().map(String::as_str) == Some("fleet") {
        return match fleet::write(number(1).unwrap_or(1)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let (Some(millions), Some(seed)) = (number(0), number(1)) else {
        eprintln!("usage: simulate MILLIONS SEED [THREADS] | simulate explain SEED RUN");
        eprintln!(
            "       simulate survey SEED RUNS [FIRST] | simulate letter MILLIONS SEED [THREADS] | simulate fleet [SEED]"
        );
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
    match random.below(2 * TWINS) {
        0 => twins::play::<Sotw>(random),
        1 => twins::play::<Delta>(random),
        kind if kind % 2 == 0 => return Run::<Sotw>::new(random).play(RUN),
        _ => return Run::<Delta>::new(random).play(RUN),
    }
    Tally::default()
}

fn explain(seed: u64, number: u64) {
    let mut random = random(seed, number);
    match random.below(2 * TWINS) {
        0 => twins::explain::<Sotw>(random),
        1 => twins::explain::<Delta>(random),
        kind if kind % 2 == 0 => Run::<Sotw>::new(random).explain(RUN),
        _ => Run::<Delta>::new(random).explain(RUN),
    }
}

/// Prints for each failing check the number of failed runs and the first of them. Meanwhile reports each check that
/// fails for the first time, and the progress at each tenth.
fn survey(seed: u64, first: u64, runs: u64) {
    type Found = BTreeMap<(String, u32), (u64, u64, String)>;
    let (next, found) = (AtomicU64::new(first), Mutex::new((Tally::default(), Found::new())));
    shrink::note_panics();
    let work = || {
        while let Some(number) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&number| number < first + runs) {
            let played = panic::catch_unwind(|| play(seed, number));
            let mut found = found.lock().expect("no panic here");
            let (tally, checks) = &mut *found;
            match played {
                Ok(played) => *tally += played,
                Err(_) => {
                    let (place, what) = shrink::last_panic().expect("it was noted");
                    if !checks.contains_key(&place) {
                        eprintln!("run {number}: {what} ({}:{})", place.0, place.1);
                    }
                    let row = checks.entry(place).or_insert((0, number, what));
                    row.0 += 1;
                    row.1 = row.1.min(number);
                }
            }
            let played = number - first + 1;
            if played % runs.div_ceil(10) == 0 {
                eprintln!("{played} of {runs} runs, {} failing checks, {tally}", checks.len());
            }
        }
    };
    thread::scope(|scope| (0..2).for_each(|_| _ = scope.spawn(work)));
    let (tally, checks) = found.into_inner().expect("no panic");
    println!("{runs} runs, {} failing checks, {tally}", checks.len());
    for ((file, line), (count, first, what)) in checks {
        println!("{count:5} of {runs} runs, first {first}: {what} ({file}:{line})");
    }
}

/// Takes millions of steps beside peers that take the specification by the letter. Fails if a rule was broken.
fn by_letter(millions: u64, seed: u64, threads: u64) -> ExitCode {
    let (walks, start) = ((millions * 1_000_000).div_ceil(letter::STEPS as u64), Instant::now());
    let seeds = |thread: u64| (thread..walks).step_by(threads as usize).map(move |number| random(seed, number).0);
    let mut found = BTreeMap::new();
    thread::scope(|scope| {
        let work = |thread| scope.spawn(move || letter::survey(seeds(thread)));
        for worker in (0..threads).map(work).collect::<Vec<_>>() {
            for (rule, (count, first)) in worker.join().expect("panics are caught") {
                found.entry(rule).or_insert((0, first)).0 += count;
            }
        }
    });
    println!("{walks} walks, {:.0} a second", walks as f64 / start.elapsed().as_secs_f64());
    for (rule, (count, first)) in &found {
        println!("{count} of them: {rule}\n{}\n", letter::explain(*first));
    }
    if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn random(seed: u64, number: u64) -> Random {
    Random(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
