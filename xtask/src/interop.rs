//! The interop package is a program of its own: the other recipes don't wait for what it needs.

use crate::run;

/// Runs it; `part` selects clients and modes.
pub fn run(part: &[&str]) -> run::Result {
    run::run(&mut run::cargo(&[["run", "--quiet", "--package", "interop", "--"].as_slice(), part].concat()))
}
