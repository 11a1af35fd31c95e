//! The checks of CI besides the tests.

use crate::run::{Result, cargo, run};
use crate::{bench, circles, docs, fuzz, nostd, package};

/// The workspaces besides the main one.
const OTHERS: [&str; 4] = ["fuzz", "nostd", "benches/counts", "benches/peers"];

pub fn check() -> Result {
    format()?;
    circles::check()?;
    lints()?;
    docs::check()?;
    package::check()?;
    unstable()?;
    nostd::check()?;
    fuzz::corpus()?;
    bench::counts(None)
}

fn format() -> Result {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    for other in OTHERS {
        run(&mut cargo(&["fmt", "--all", "--check", "--manifest-path", &manifest(other)]))?;
    }
    Ok(())
}

fn lints() -> Result {
    run(&mut cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))?;
    run(&mut cargo(&[
        "clippy",
        "--quiet",
        "--all-targets",
        "--manifest-path",
        &manifest("fuzz"),
        "--",
        "-D",
        "warnings",
    ]))
}

/// Tests the feature `unstable`, which the tests of the workspace leave out. With `--release` the build of those tests
/// is used again.
fn unstable() -> Result {
    let tests = ["test", "--quiet", "--release", "--features", "unstable", "--lib", "--test", "machines", "unstable"];
    run(&mut cargo(&tests))
}

fn manifest(of: &str) -> String {
    format!("{of}/Cargo.toml")
}
