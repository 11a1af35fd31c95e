//! The program as its users run it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use xds_conformance::message::{Item, Node, Request, Response, Variant};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xds-conformance")).args(arguments).output().expect("the program")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the path of the adapter of this project's control plane or client, an example of this package, which
/// `cargo test` builds.
fn example(name: &str) -> String {
    let test = std::env::current_exe().expect("this test");
    let examples = test.parent().and_then(|deps| deps.parent()).expect("the target").join("examples");
    let path: PathBuf = examples.join(name);
    assert!(path.exists(), "cargo build --release -p xds-conformance --example {name}");
    path.to_string_lossy().into_owned()
}

#[test]
fn wrong_usage_exits_with_code_2() {
    let missing = run(&["server"]);
    assert_eq!((missing.status.code(), stderr(&missing)), (Some(2), "xds-conformance: --address is missing\n".into()));
    let control = run(&["server", "--address", "127.0.0.1:1", "--control", "magic"]);
    assert_eq!(control.status.code(), Some(2));
    assert_eq!(
        stderr(&control),
        "xds-conformance: --control magic: it is none, stdio, dir:DIR, exec or grpc:HOST:PORT\n"
    );
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
    assert_eq!((output.status.code(), cases.len()), (Some(0), 115));
}

#[test]
fn wrong_usage_of_the_client_mode_exits_with_code_2() {
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
    // All cases of the group for both variants, except those of one variant alone.
    assert_eq!((output.status.code(), report["mode"].as_str(), cases.len()), (Some(0), Some("client"), 12));
}

#[test]
fn the_judge_mode_passes_fails_or_refuses_a_recording() {
    let eds = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
    let ads = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
    let node = Some(Node { id: "n".into(), ..Node::default() });
    let first = Request { type_url: eds.into(), names: vec!["a".into()], node, ..Request::default() };
    let line = |kind: &str, message: Vec<u8>| {
        let pb = STANDARD.encode(message);
        serde_json::json!({"kind": kind, "stream": 1, "pb": pb}).to_string()
    };
    let body = Some(xds_conformance::resource::body(eds, "a", 1).into());
    let item = Item { name: "a".into(), any_type: eds.into(), body, ..Item::default() };
    let response = |nonce: &str| Response {
        type_url: eds.into(),
        version: "1".into(),
        nonce: nonce.into(),
        resources: vec![item.clone()],
        ..Response::default()
    };
    let mut lines = vec![
        serde_json::json!({"kind": "stream_open", "stream": 1, "method": ads}).to_string(),
        line("request", first.encode(Variant::Sotw)),
        line("response", response("n1").encode(Variant::Sotw)),
    ];
    let file = std::env::temp_dir().join(format!("xds-conformance-judge-{}.jsonl", std::process::id()));
    let path = file.to_string_lossy().into_owned();
    let judge = |lines: &[String]| {
        std::fs::write(&file, lines.join("\n")).expect("the recording");
        let output = run(&["judge", &path]);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, report) = judge(&lines);
    assert_eq!(code, Some(0), "{report}");
    assert!(report.contains("judge: 1 passed, 0 failed"), "{report}");
    lines.push(line("response", response("n1").encode(Variant::Sotw)));
    let (code, report) = judge(&lines);
    assert_eq!(code, Some(1), "{report}");
    assert!(report.contains("nonce-again: eds nonce \"n1\" for a second time on the stream"), "{report}");
    std::fs::write(&file, "{}").expect("the recording");
    let wrong = run(&["judge", &path]);
    assert_eq!(
        (wrong.status.code(), stderr(&wrong)),
        (Some(2), format!("xds-conformance: {path}: line 1: kind is missing\n"))
    );
    std::fs::remove_file(file).expect("the recording");
}

#[test]
fn the_watch_mode_judges_the_responses_of_both_variants() {
    let mut adapter =
        Command::new(example("adapter")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the adapter");
    let mut lines = BufReader::new(adapter.stdout.take().expect("its output")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    let ready: serde_json::Value = serde_json::from_str(&line()).expect("JSON");
    let address = ready["ready"]["address"].as_str().expect("the address").to_owned();
    let mut input = adapter.stdin.take().expect("its input");
    let put = r#"{"op":"put","type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"a","any":"CgFh"}"#;
    writeln!(input, "{put}").expect("its input");
    assert_eq!(line(), "{}");
    let output = run(&["watch", "--address", &address, "--for", "1s", "--json", "-"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone on standard output");
    assert_eq!((output.status.code(), report["mode"].as_str()), (Some(0), Some("watch")));
    let cases = report["cases"].as_array().expect("cases");
    let of = |case: &serde_json::Value| (case["id"].clone(), case["variant"].clone(), case["verdict"].clone());
    let all: Vec<_> = cases.iter().map(of).collect();
    let pass = |variant: &str| ("watch/all".into(), variant.into(), "pass".into());
    assert_eq!(all, [pass("sotw"), pass("delta")]);
    // An answer for each of the two types of the wildcard.
    assert_eq!((&cases[0]["why"], &cases[1]["why"]), (&"2 responses of sotw".into(), &"2 responses of delta".into()));
    drop(input);
    assert!(adapter.wait().expect("the adapter").success());
}
