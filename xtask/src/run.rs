//! Other programs, from the project's root.

use std::error::Error;
use std::path::Path;
use std::process::Command;

pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the project")
}

/// A cargo of this toolchain, or of another: `+nightly` as the first argument.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new("cargo");
    // What cargo told us about this package must not reach another.
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("CARGO_PKG_") || key == "CARGO_MANIFEST_DIR" {
            cargo.env_remove(key);
        }
    }
    if arguments.first().is_some_and(|first| first.starts_with('+')) {
        cargo.env_remove("RUSTUP_TOOLCHAIN");
    }
    cargo.args(arguments).current_dir(root());
    cargo
}

/// Runs it with our own output, and fails if it does.
pub fn run(command: &mut Command) -> Result {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}
