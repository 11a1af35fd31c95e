//! The program as its users run it.

use std::path::PathBuf;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xds-conformance")).args(arguments).output().expect("the program")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The adapter of this project's control plane or client, an example of this package, which `cargo test` builds.
fn example(name: &str) -> String {
    let test = std::env::current_exe().expect("this test");
    let examples = test.parent().and_then(|deps| deps.parent()).expect("the target").join("examples");
    let path: PathBuf = examples.join(name);
    assert!(path.exists(), "cargo build --release -p xds-conformance --example {name}");
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
    let output = run(&["server", "--control", "stdio", "--json", "-", "--strict", "--", &example("adapter")]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone on standard output");
    let cases = report["cases"].as_array().expect("cases");
    let wrong: Vec<_> = cases.iter().filter(|case| case["verdict"] != "pass").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((output.status.code(), cases.len()), (Some(0), 104));
}

#[test]
fn wrong_usage_of_the_client_mode_ends_with_2() {
    let envoy = run(&["client", "--induced", "reference", "--envoy", "v2", "--", "true"]);
    let known = "ads-sotw, ads-delta, sotw, delta, ads-sotw-unified, ads-delta-unified";
    assert_eq!(stderr(&envoy), format!("xds-conformance: --envoy v2: it is one of {known}\n"));
    assert_eq!(envoy.status.code(), Some(2));
    let induced = run(&["client", "--induced", "magic", "--", "true"]);
    assert_eq!(stderr(&induced), "xds-conformance: --induced magic: it is stdio or reference\n");
    let ended = run(&["client", "--variants", "sotw", "--", "sh", "-c", "echo no licence {variant} >&2"]);
    let why = "xds-conformance: the adapter has ended:\nno licence sotw\n".to_owned();
    assert_eq!((ended.status.code(), stderr(&ended)), (Some(2), why));
    let silent = run(&["client", "--variants", "delta", "--", "sh", "-c", "echo '{\"ready\":{}}'; cat >&2"]);
    let report = String::from_utf8_lossy(&silent.stdout).into_owned();
    assert_eq!(silent.status.code(), Some(3), "{report}");
    assert!(report.contains("(the client does not name delta)"), "{report}");
}

#[test]
fn cases_pass_with_this_projects_client_over_sockets() {
    let words = ["client", "--json", "-", "--strict", "--filter", "c/na*"];
    let adapter = example("client_adapter");
    let output = run(&[&words[..], &["--", &adapter, "{port}", "{variant}"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone on standard output");
    let cases = report["cases"].as_array().expect("cases");
    let wrong: Vec<_> = cases.iter().filter(|case| case["verdict"] != "pass").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    // All of the group for both variants, but for what is of one alone.
    assert_eq!((output.status.code(), report["mode"].as_str(), cases.len()), (Some(0), Some("client"), 12));
}
