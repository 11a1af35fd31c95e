//! Plays every script in `tests/protocol/scripts`.

use std::path::{Path, PathBuf};
use std::{env, fs};

use xds_machine_testing::script;

fn scripts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of scripts").map(|entry| entry.expect("an entry").path());
    let mut scripts: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    scripts.sort();
    scripts
}

/// `SCRIPT=part-of-a-name` selects scripts; `BLESS=1` writes the output of the machines into the scripts.
#[test]
fn every_script_replays_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocol/scripts");
    let only = env::var("SCRIPT").unwrap_or_default();
    let all = ["server", "client", "servers"].into_iter().flat_map(|side| scripts(&folder.join(side)));
    let (mut played, mut failed) = (0, Vec::new());
    for path in all.filter(|path| path.to_string_lossy().contains(&only)) {
        played += 1;
        if let Err(error) = script::run(&path) {
            failed.push(format!("{}: {error}", path.strip_prefix(&folder).expect("in the folder").display()));
        }
    }
    assert!(played > 0, "no script is named like {only}");
    assert!(failed.is_empty(), "{} of {played} scripts failed\n\n{}", failed.len(), failed.join("\n\n"));
}
