//! The program as its users run it.

use std::path::PathBuf;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xds-conformance")).args(arguments).output().expect("the program")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The adapter of this project's control plane, an example of this package, which `cargo test` builds.
fn adapter() -> String {
    let test = std::env::current_exe().expect("this test");
    let path: PathBuf = test.parent().and_then(|deps| deps.parent()).expect("the target").join("examples/adapter");
    assert!(path.exists(), "cargo build --release -p xds-conformance --example adapter");
    path.to_string_lossy().into_owned()
}

#[test]
fn wrong_usage_ends_with_2() {
    let missing = run(&["server"]);
    assert_eq!((missing.status.code(), stderr(&missing)), (Some(2), "xds-conformance: --address is missing\n".into()));
    let control = run(&["server", "--address", "127.0.0.1:1", "--control", "magic"]);
    assert_eq!(control.status.code(), Some(2));
    assert_eq!(stderr(&control), "xds-conformance: --control magic: it is none, stdio, dir:DIR or exec\n");
    let nobody = run(&["server", "--address", "127.0.0.1:1"]);
    assert_eq!(nobody.status.code(), Some(2));
    assert!(stderr(&nobody).starts_with("xds-conformance: no connection to 127.0.0.1:1: "), "{}", stderr(&nobody));
    let ended = run(&["--control", "stdio", "server", "--", "sh", "-c", "echo no licence >&2"]);
    let why = "xds-conformance: the adapter has ended:\nno licence\n".to_owned();
    assert_eq!((ended.status.code(), stderr(&ended)), (Some(2), why));
}

#[test]
fn every_case_passes_against_this_projects_control_plane() {
    let output = run(&["server", "--control", "stdio", "--json", "-", "--strict", "--", &adapter()]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone on standard output");
    let cases = report["cases"].as_array().expect("cases");
    let wrong: Vec<_> = cases.iter().filter(|case| case["verdict"] != "pass").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((output.status.code(), cases.len()), (Some(0), 104));
}
