//! What CI checks besides the tests.

use crate::nostd;
use crate::run::{Result, cargo, run};

/// The workspaces beside the main one.
const OTHERS: [&str; 2] = ["fuzz", "nostd"];

pub fn check() -> Result {
    format()?;
    lints()?;
    docs()?;
    nostd::check()?;
    corpus()
}

fn format() -> Result {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    for other in OTHERS {
        run(&mut cargo(&["fmt", "--all", "--check", "--manifest-path", &manifest(other)]))?;
    }
    Ok(())
}

fn lints() -> Result {
    run(&mut cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    run(&mut cargo(&["clippy", "--quiet", "--all-targets", "--manifest-path", &manifest("fuzz"), "--", "-D", "warnings"]))
}

fn docs() -> Result {
    run(cargo(&["doc", "--quiet", "--no-deps", "--workspace"]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Builds every fuzz target and plays the committed corpus, without a sanitizer, on the toolchain that is here.
fn corpus() -> Result {
    run(&mut cargo(&["build", "--quiet", "--release", "--bins", "--manifest-path", &manifest("fuzz")]))?;
    run(&mut cargo(&["test", "--quiet", "--release", "--manifest-path", &manifest("fuzz")]))
}

fn manifest(of: &str) -> String {
    format!("{of}/Cargo.toml")
}
