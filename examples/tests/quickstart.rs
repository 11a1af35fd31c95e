//! Compares the output of `quickstart` with `quickstart.txt`.

use std::process::Command;

/// `BLESS=1` writes the output to the file. Read it as a newcomer would.
#[test]
fn quickstart_prints_the_recorded_output() {
    let output = Command::new(env!("CARGO_BIN_EXE_quickstart")).output().expect("the program starts");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/quickstart.txt"), &text).expect("room on the disk");
    }
    assert_eq!(text, include_str!("quickstart.txt"));
}
