//! The soak: the package is a separate program, so that other recipes need not build its dependencies.

use crate::run::{Result, cargo, run};

/// Builds the control plane, as it is released, and holds it under load.
pub fn program(arguments: &[&str]) -> Result {
    run(&mut cargo(&["build", "--quiet", "--release", "--package", "examples", "--bin", "control_plane"]))?;
    run(&mut cargo(&[["run", "--quiet", "--release", "--package", "soak", "--"].as_slice(), arguments].concat()))
}
