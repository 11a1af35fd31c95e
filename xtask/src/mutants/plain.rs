//! Tests mutants that can't have a switch: inserts them into the sources, one at a time.

use std::fs;
use std::process::Stdio;

use super::list::Mutant;
use super::results::{Outcome, Results};
use super::subject::Subject;
use super::tree::{cargo_in, copy, write};
use crate::run::{Result, root};

pub fn run(subject: &Subject, mutants: &[&Mutant], results: &Results) -> Result {
    let tree = copy(subject, "plain", true)?;
    let package = ["--quiet", "--package", subject.package, "--all-features", "--lib"];
    let (program, tests) = subject.quick;
    let test = [&["test", "--release", "--test", program], &package[..], &["--"], tests].concat();
    for mutant in mutants {
        let source = fs::read_to_string(root().join(&mutant.file))?;
        let mut text = source.clone();
        text.replace_range(mutant.span.clone(), &mutant.replacement);
        write(&tree.join(&mutant.file), text.as_bytes())?;
        let passes = |arguments: &[&str]| -> Result<bool> {
            let mut command = cargo_in(subject, &tree, arguments);
            Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success())
        };
        let outcome = if !passes(&[&["check"], &package[..]].concat())? {
            Outcome::Unviable
        } else if passes(&test)? {
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
