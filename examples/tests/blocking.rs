//! Runs the blocking drivers to their end.

use std::process::Command;

#[test]
fn the_blocking_example_prints_the_expected_events() {
    let output = Command::new(env!("CARGO_BIN_EXE_blocking")).output().expect("the program starts");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    let text = String::from_utf8(output.stdout).expect("text");
    let expected = [
        "connected",
        "a is one, b is one",
        "a is one, b is bad, b rejected",
        "a is one, b is two",
        "disconnected",
        "connected",
        "no a, b is two",
        "disconnected",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}
