//! The interop package is a separate program, so that other recipes need not build its dependencies.

use crate::run;

/// Runs the interop tests; `part` selects clients and modes.
pub fn run(part: &[&str]) -> run::Result {
    run::run(&mut run::cargo(&[["run", "--quiet", "--package", "interop", "--"].as_slice(), part].concat()))
}
