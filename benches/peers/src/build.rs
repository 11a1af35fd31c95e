//! The programs of the peers, and their versions.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::plan::Peer;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Builds the program of a peer, and returns its path, or the first error of the compiler.
pub fn build(peer: &Peer) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.args([
        "build",
        "--release",
        "--message-format=json-render-diagnostics",
        "--workspace",
        "--bin",
        peer.program,
    ]);
    let output = cargo.current_dir(root()).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let error = said.lines().find(|line| line.starts_with("error")).unwrap_or("no reason is given");
        return Err(error.to_string());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = |message: Value| message["executable"].as_str().map(PathBuf::from);
    let mut executables = messages.lines().filter_map(|line| executable(serde_json::from_str(line).ok()?));
    executables.next_back().ok_or_else(|| "there is no program".into())
}

/// Returns the versions of a peer's crates, as locked.
pub fn version(peer: &Peer) -> String {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap_or_default();
    let find = |name: &str| {
        let after = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?.1;
        after.split_once('"').map(|(version, _)| version.to_string())
    };
    let versions: Vec<_> = peer.crates.iter().map(|name| find(name).unwrap_or_else(|| "?".into())).collect();
    versions.join(", ")
}
