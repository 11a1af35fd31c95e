//! Runs other programs, from the project's root.

use std::error::Error;
use std::path::Path;
use std::process::Command;

pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the project")
}

/// Returns a command for the cargo of this toolchain, or of another one: `+nightly` as the first argument.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new("cargo");
    // Variables that cargo set for this package must not reach another package.
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("CARGO_PKG_") || key == "CARGO_MANIFEST_DIR" {
            cargo.env_remove(key);
        }
    }
    if arguments.first().is_some_and(|first| first.starts_with('+')) {
        cargo.env_remove("RUSTUP_TOOLCHAIN");
    }
    // A recipe builds a program once: the build needs no information for a debugger or for a next build.
    cargo.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo.args(arguments).current_dir(root());
    cargo
}

/// Runs a command with inherited output, and fails if the command does.
pub fn run(command: &mut Command) -> Result {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}
