//! Proves that the library needs no std, and that the proof can fail.

use std::process::Command;

use crate::run::{Result, cargo, run};

/// The error of rustc for two crates that bring a panic handler.
const TWICE: &str = "E0152";

pub fn check() -> Result {
    run(&mut build(&[]))?;
    let with_std = build(&["--features", "std"]).output()?;
    let said = String::from_utf8_lossy(&with_std.stderr);
    if with_std.status.success() {
        return Err("it builds with std as well: the build without it proves nothing".into());
    }
    if !said.contains(TWICE) {
        return Err(format!("with std the build is to fail with {TWICE}, and said\n{said}").into());
    }
    println!("no_std: builds on alloc alone, and fails with bytes/std ({TWICE}), as it should");
    Ok(())
}

fn build(more: &[&str]) -> Command {
    let mut command = cargo(&["build", "--quiet", "--manifest-path", "nostd/Cargo.toml"]);
    command.args(more);
    command
}
