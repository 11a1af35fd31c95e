//! The table of dialects (`src/dialects.md`) matches the presets: each row is a knob that its preset turns, and names
//! existing stories; and no preset turns a knob outside the table.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns the dialects and knobs that the table has for one side.
fn table(side: &str) -> BTreeSet<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("src/dialects.md")).expect("a table");
    let presets = text.split(&format!("## Presets of a {side}")).nth(1).expect("a table of presets");
    let presets = presets.split("\n## ").next().expect("its rows");
    let mut rows = BTreeSet::new();
    for line in presets.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [dialect, knob, what, who, stories] = cells[..] else { panic!("{line}: {} cells", cells.len()) };
        assert!(!what.is_empty() && !who.is_empty(), "{line}: what and why?");
        for story in stories.split(", ").map(|story| story.trim_matches('`')) {
            assert!(
                root.join("tests/protocol/scripts").join(format!("{story}.txt")).is_file(),
                "{knob}: no story {story}"
            );
        }
        assert!(rows.insert((dialect.trim_matches('`').into(), knob.trim_matches('`').into())), "{line}: twice");
    }
    rows
}

/// Returns the dialects and knobs of the presets, read from their source.
fn presets(side: &str) -> BTreeSet<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(side).join("config.rs");
    let text = fs::read_to_string(path).expect("a source");
    let body = text.split("pub fn with_dialect").nth(1).expect("presets");
    let body = body.split("\n    }\n").next().expect("their end");
    let mut knobs = BTreeSet::new();
    for arm in body.split("Dialect::").skip(1) {
        let dialect = arm.split(" =>").next().expect("a name");
        for call in arm.split('.').skip(1).filter(|call| call.starts_with("with")) {
            knobs.insert((dialect.into(), call.split('(').next().expect("a name").into()));
        }
    }
    knobs
}

#[test]
fn the_table_of_dialects_matches_the_presets() {
    for side in ["client", "server"] {
        assert_eq!(table(side), presets(side), "{side}");
        assert!(table(side).len() >= 3, "{side}: is anything read?");
    }
}
