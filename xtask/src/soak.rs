//! The soak: the package is a separate program, so that other recipes need not build its dependencies.

use std::process::Command;

use crate::run::{Result, cargo, run};

/// Builds the control plane, as it is released, and holds it under load.
pub fn program(arguments: &[&str]) -> Result {
    // With the features of the whole workspace, so that the build of its tests is used again.
    run(&mut cargo(&["build", "--quiet", "--release", "--workspace", "--bin", "control_plane", "--bin", "soak"]))?;
    run(Command::new("target/release/soak").args(arguments))
}
