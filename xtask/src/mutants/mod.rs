//! Mutation tests. The mutants are those of cargo-mutants, but all of them are compiled at once, each behind a switch
//! that an environment variable turns on. So the tests are built once, and a mutant takes only the time of the test
//! runs.
//!
//! Mutants that can't have a switch (in constants and macros) are tested by rebuilding, as cargo-mutants does:
//! `--plain`.

mod edit;
mod list;
mod plain;
mod results;
mod subject;
mod suite;
mod tree;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::run::Result;
use list::Mutant;
use results::{Outcome, Results};

/// Runs the mutation tests. `--grpc`: of the crate of gRPC's layers; `--kit`: of the conformance kit's referee;
/// `-f PART,PART`: only files whose path contains a part; `-j JOBS`; `-t TEST,TEST`: only these tests; `--last`: slow
/// tests as well; `--survivors`: only survivors of the previous run; `--again`: caught mutants as well; `--list`: only
/// print the results so far; `--plain`: only mutants without a switch.
pub fn run(arguments: &[&str]) -> Result {
    let after = |flag: &str| arguments.iter().position(|&a| a == flag).and_then(|at| arguments.get(at + 1)).copied();
    let has = |flag: &str| arguments.contains(&flag);
    let files: Vec<&str> = after("-f").unwrap_or("").split(',').collect();
    let wanted = |mutant: &Mutant| files.iter().any(|part| mutant.file.contains(part));
    let subject = match (has("--grpc"), has("--kit")) {
        (true, _) => &subject::GRPC,
        (_, true) => &subject::KIT,
        _ => &subject::MACHINES,
    };
    let jobs = after("-j").map_or(Ok(2), str::parse)?;

    let mutants = list::mutants(subject)?;
    let results = Results::load(&mutants)?;
    if has("--list") {
        results.print(mutants.iter().filter(|&mutant| wanted(mutant)));
        return Ok(());
    }
    let tree = tree::switched(subject, &mutants, results.left(&mutants))?;
    for mutant in &mutants {
        if let Some(outcome) = tree.left.get(&mutant.id) {
            results.keep_unless_known(mutant, *outcome)?;
        }
    }
    if has("--plain") {
        let open = |mutant: &&Mutant| wanted(mutant) && results.of(mutant) == Some(Outcome::NoSwitch);
        plain::run(subject, &mutants.iter().filter(open).collect::<Vec<_>>(), &results)?;
    } else {
        let open = |mutant: &&Mutant| {
            let due = match results.of(mutant) {
                Some(Outcome::Survived) => true,
                None => !has("--survivors"),
                Some(_) => has("--again"),
            };
            wanted(mutant) && !tree.left.contains_key(&mutant.id) && due
        };
        let todo: Vec<&Mutant> = mutants.iter().filter(open).collect();
        let faced = |test: &str| match after("-t") {
            Some(tests) => tests.split(',').any(|part| part == test),
            None => has("--last") || !suite::SLOW.contains(&test),
        };
        each(&todo, &suite::Suite::measure(subject, &tree, faced, has("--last"))?, jobs, &results)?;
    }
    results.print(mutants.iter().filter(|&mutant| wanted(mutant)));
    Ok(())
}

fn each(todo: &[&Mutant], suite: &suite::Suite, jobs: usize, results: &Results) -> Result {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let by = Mutex::new(HashMap::<String, usize>::new());
    let work = || {
        while let Some(mutant) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (outcome, stage) = suite.face(mutant.id);
            if let Some(stage) = stage {
                *by.lock().expect("no other panicked").entry(stage.to_owned()).or_default() += 1;
            }
            if outcome == Outcome::Survived {
                println!("{}", mutant.name);
            }
            if let Err(error) = results.keep(mutant, outcome, stage.unwrap_or_default()) {
                *failed.lock().expect("no other panicked") = Some(error.to_string());
                return;
            }
        }
    };
    std::thread::scope(|scope| (0..jobs).for_each(|_| _ = scope.spawn(work)));
    println!("{} ran, caught by {:?}", todo.len(), by.into_inner()?);
    failed.into_inner()?.map_or(Ok(()), |error| Err(error.into()))
}
