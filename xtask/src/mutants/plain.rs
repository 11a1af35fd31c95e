//! What can't be switched on, the plain way: put into the sources, one at a time.

use std::fs;
use std::process::Stdio;

use super::list::Mutant;
use super::results::{Outcome, Results};
use super::tree::{cargo_in, copy, write};
use crate::run::{Result, root};

/// The tests that it faces: what is soon built and run.
const TESTS: [&str; 2] = ["scripts", "wire"];

pub fn run(mutants: &[&Mutant], results: &Results) -> Result {
    let tree = copy("plain", true)?;
    for mutant in mutants {
        let source = fs::read_to_string(root().join(&mutant.file))?;
        let mut text = source.clone();
        text.replace_range(mutant.span.clone(), &mutant.replacement);
        write(&tree.join(&mutant.file), text.as_bytes())?;
        let tests: Vec<&str> = TESTS.iter().flat_map(|test| ["--test", test]).collect();
        let package = ["--quiet", "--package", "xds-machine", "--all-features", "--lib"];
        let passes = |first: &[&str]| -> Result<bool> {
            let arguments = [first, &package].concat();
            let mut command = cargo_in(&tree, &arguments);
            Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success())
        };
        let outcome = if !passes(&["check"])? {
            Outcome::Unviable
        } else if passes(&[&["test", "--release"], &tests[..]].concat())? {
            Outcome::Survived
        } else {
            Outcome::Caught
        };
        println!("{outcome}: {}", mutant.name);
        results.keep(mutant, outcome, "plain")?;
        write(&tree.join(&mutant.file), source.as_bytes())?;
    }
    Ok(())
}
