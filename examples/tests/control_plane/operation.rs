//! The program as its operator sees it: start, events of the folder, metrics, limits, end.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Instant;

use serde_json::json;
use tonic::Code;
use xds_machine::{Delta, type_url};

use crate::messages::*;
use crate::support::{ControlPlane, Dir, LONG, Peer, command};

#[test]
fn the_program_does_not_start_with_bad_arguments_a_missing_folder_or_a_taken_port() {
    let run = |arguments: &[&str]| command().args(arguments).output().expect("started");
    let misused = |arguments: &[&str], line: &str| {
        let output = run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.lines().next(), Some(line));
        assert_eq!((output.stdout.len(), output.status.code()), (0, Some(2)));
    };
    misused(&["--verbose"], "error: unexpected argument '--verbose' found");
    misused(&["--listen"], "error: a value is required for '--listen <ADDR>' but none was supplied");
    misused(&["--log=xml"], "error: invalid value 'xml' for '--log <FORMAT>'");
    misused(&["--tls-cert", "cert.pem"], "error: the following required arguments were not provided:");

    let fails = |arguments: &[&str], line: &str| {
        let output = run(arguments);
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("control_plane: {line}\n"));
        assert_eq!((output.stdout.len(), output.status.code()), (0, Some(1)));
    };
    for path in ["nowhere", "Cargo.toml"] {
        let error = fs::read_dir(path).expect_err("no folder");
        let arguments = ["--listen", "127.0.0.1:0", "--resources", path];
        fails(&arguments, &format!("the folder of resources {path}: {error}"));
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let error = TcpListener::bind(&address).expect_err("taken");
    fails(&["--listen", &address], &format!("can't listen on {address}: {error}"));
    let arguments = ["--listen", "127.0.0.1:0", "--metrics", &address];
    fails(&arguments, &format!("can't serve metrics on {address}: {error}"));
    for flag in ["--help", "--version"] {
        let output = run(&[flag]);
        assert!(output.status.success() && output.stderr.is_empty() && !output.stdout.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn loaded_and_changed_files_are_logged() {
    let dir = Dir::new("cp-events");
    dir.put("clusters.json", clusters(&[("c1", 1), ("c2", 1)]));
    let control_plane = ControlPlane::start(&dir);
    let event = |event: &str, file: &str, type_url: &str, names: &[&str], removed: &[&str]| {
        let source = dir.0.join(file).display().to_string();
        json!({"event": event, "source": source, "type_url": type_url, "names": names, "removed": removed})
    };
    let loaded = event("loaded", "clusters.json", type_url::CLUSTER, &["c1", "c2"], &[]);
    assert_eq!(control_plane.news(1), [loaded]);
    let serving = control_plane.said("serving ");
    assert_eq!(serving, format!("{}: 2 Cluster", dir.0.display()));
    control_plane.complaint(&format!(
        "  cargo run -p examples --bin xds_client -- --server http://{} --variant delta --subscribe cds --follow",
        control_plane.address
    ));

    dir.put("clusters.json", clusters(&[("c1", 2), ("c3", 1)]));
    let changed = event("changed", "clusters.json", type_url::CLUSTER, &["c1", "c3"], &["c2"]);
    assert_eq!(control_plane.news(2)[1], changed);
    dir.put("endpoints.json", endpoints(&["c1"]));
    assert_eq!(control_plane.news(3)[2], event("changed", "endpoints.json", type_url::ENDPOINT, &["c1"], &[]));
    fs::remove_file(dir.0.join("clusters.json")).expect("removed");
    let gone = event("changed", "clusters.json", type_url::CLUSTER, &[], &["c1", "c3"]);
    assert_eq!(control_plane.news(4)[3], gone);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_are_cut_in_the_log_and_whole_on_the_wire() {
    let dir = Dir::new("cp-cut");
    let names: Vec<String> = (0..250).map(|at| format!("c{at}")).collect();
    dir.put("clusters.json", clusters(&names.iter().map(|name| (name.as_str(), 1)).collect::<Vec<_>>()));
    let control_plane = ControlPlane::start(&dir);
    let mut peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
    peer.send(delta_request(type_url::CLUSTER, &[])).await;
    assert_eq!(peer.next().await.resources.len(), 250);
    let send = &control_plane.events(3)[2];
    assert_eq!((send["event"].as_str(), send["more"].as_u64()), (Some("send"), Some(150)));
    assert_eq!(send["resources"].as_array().map(Vec::len), Some(100));
    assert_eq!(control_plane.news(1)[0]["more"], 150);
}

/// Asks for a page by hand, and returns the status line and the body.
fn page(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(LONG)).expect("set");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

/// A port that was free a moment ago.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

/// Asks for the metrics until a line is among them.
fn until_metric(address: &str, line: &str) -> String {
    let end = Instant::now() + LONG;
    loop {
        let (_, metrics) = page(address, "/metrics");
        if metrics.lines().any(|metric| metric == line) {
            return metrics;
        }
        assert!(Instant::now() < end, "{line}\n{metrics}");
        std::thread::yield_now();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_streams_requests_responses_and_verdicts() {
    let dir = Dir::new("cp-metrics");
    dir.put("clusters.json", clusters(&[("c1", 1), ("c2", 1)]));
    let address = free_address();
    let control_plane = ControlPlane::start_with(&dir, &["--metrics", &address]);
    let (cds, listener) = (type_url::CLUSTER, type_url::LISTENER);
    let metrics = until_metric(&address, &format!("xds_resources{{type=\"{cds}\"}} 2"));
    for line in [
        format!("xds_acks_total{{type=\"{listener}\"}} 0"),
        format!("xds_nacks_total{{type=\"{listener}\"}} 0"),
        format!("xds_streams{{type=\"{listener}\",variant=\"sotw\"}} 0"),
        "xds_requests_total 0".into(),
        "xds_change_to_ack_seconds_count 0".into(),
        "xds_refused_streams_total 0".into(),
        "# TYPE xds_sent_bytes_total counter".into(),
        format!("xds_source_up{{source=\"{}\"}} 1", dir.0.display()),
    ] {
        assert!(metrics.lines().any(|metric| metric == line), "{line}\n{metrics}");
    }

    let mut peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
    peer.send(delta_request(cds, &[])).await;
    let first = peer.next().await;
    peer.send(delta_answer(cds, &first.nonce, None)).await;
    until_metric(&address, "xds_streams{type=\"ads\",variant=\"delta\"} 1");
    let metrics = until_metric(&address, &format!("xds_acks_total{{type=\"{cds}\"}} 1"));
    // The first answer is not to a change that the client waited for.
    assert!(metrics.contains("xds_change_to_ack_seconds_count 0\n"), "{metrics}");

    dir.put("clusters.json", clusters(&[("c1", 2), ("c2", 1)]));
    let changed = peer.next().await;
    peer.send(delta_answer(cds, &changed.nonce, None)).await;
    until_metric(&address, "xds_change_to_ack_seconds_count 1");
    dir.put("clusters.json", clusters(&[("c1", 3), ("c2", 1)]));
    let changed = peer.next().await;
    peer.send(delta_answer(cds, &changed.nonce, Some("no"))).await;
    let metrics = until_metric(&address, &format!("xds_nacks_total{{type=\"{cds}\"}} 1"));
    for line in ["xds_requests_total 4", "xds_responses_total 3", "xds_change_to_ack_seconds_count 1"] {
        assert!(metrics.lines().any(|metric| metric == line), "{line}\n{metrics}");
    }
    drop(peer);
    until_metric(&address, "xds_streams{type=\"ads\",variant=\"delta\"} 0");

    assert_eq!(page(&address, "/healthz").0, "HTTP/1.1 200 OK");
    assert_eq!(page(&address, "/readyz").0, "HTTP/1.1 200 OK");
    assert_eq!(page(&address, "/nothing").0, "HTTP/1.1 404 Not Found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_sent_again_without_a_change_is_not_measured() {
    let dir = Dir::new("cp-measured");
    dir.put("clusters.json", clusters(&[("c1", 1)]));
    let address = free_address();
    let control_plane = ControlPlane::start_with(&dir, &["--metrics", &address]);
    control_plane.news(1); // otherwise the first read is a change that the stream is sent
    let (cds, eds) = (type_url::CLUSTER, type_url::ENDPOINT);
    let mut peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
    let accept = async |peer: &mut Peer<Delta>, type_url: &str| {
        let response = peer.next().await;
        assert_eq!(response.type_url, type_url);
        peer.send(delta_answer(type_url, &response.nonce, None)).await;
    };
    peer.send(delta_request(cds, &[])).await;
    accept(&mut peer, cds).await;
    peer.send(delta_request(eds, &["c1"])).await;
    accept(&mut peer, eds).await;
    dir.put("endpoints.json", endpoints(&["c1"]));
    accept(&mut peer, eds).await;
    until_metric(&address, "xds_change_to_ack_seconds_count 1");
    // The endpoints of a changed cluster are sent again.
    dir.put("clusters.json", clusters(&[("c1", 2)]));
    accept(&mut peer, cds).await;
    accept(&mut peer, eds).await;
    let metrics = until_metric(&address, &format!("xds_acks_total{{type=\"{eds}\"}} 3"));
    assert!(metrics.contains("xds_change_to_ack_seconds_count 2\n"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_is_ready_once_all_files_were_read_and_stays_ready_without_the_folder() {
    let dir = Dir::new("cp-ready");
    dir.put("broken.json", "{");
    let address = free_address();
    let control_plane = ControlPlane::start_with(&dir, &["--metrics", &address]);
    let (status, body) = page(&address, "/readyz");
    assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
    let dir_name = dir.0.display();
    assert_eq!(body, format!("not all of {dir_name} could be read yet: {dir_name}/broken.json for all nodes\n"));
    dir.put("broken.json", clusters(&[("c1", 1)]));
    control_plane.news(1);
    until_metric(&address, &format!("xds_resources{{type=\"{}\"}} 1", type_url::CLUSTER));
    assert_eq!(page(&address, "/readyz"), ("HTTP/1.1 200 OK".into(), "ready\n".into()));

    fs::remove_dir_all(&dir.0).expect("removed");
    until_metric(&address, &format!("xds_source_up{{source=\"{}\"}} 0", dir.0.display()));
    let (status, body) = page(&address, "/readyz");
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(body.starts_with(&format!("ready, though {} is away since 2", dir.0.display())), "{body}");
}

fn signal(control_plane: &ControlPlane, name: &str) {
    let id = control_plane.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &id]).status().expect("kill").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_streams_with_unavailable_and_the_program_with_success() {
    for name in ["TERM", "INT"] {
        let dir = Dir::new(&format!("cp-signal-{name}"));
        dir.put("clusters.json", clusters(&[("c1", 1)]));
        let mut control_plane = ControlPlane::start(&dir);
        let mut peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
        peer.send(delta_request(type_url::CLUSTER, &[])).await;
        peer.next().await;
        signal(&control_plane, name);
        let status = peer.status().await;
        assert_eq!((status.code(), status.message()), (Code::Unavailable, "the control plane shuts down"));
        drop(peer);
        assert_eq!(control_plane.ended(), Some(0));
        let events = control_plane.events(4);
        assert_eq!((events[3]["event"].as_str(), events[3]["code"].as_i64()), (Some("close"), Some(14)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_stall_do_not_keep_the_program_from_ending() {
    let dir = Dir::new("cp-stalled");
    let stat_name = "s".repeat(10_000); // more than the windows of HTTP/2
    let cluster = |at| json!({"@type": type_url::CLUSTER, "name": format!("c{at}"), "altStatName": stat_name});
    dir.put("clusters.json", json!({"resources": (0..200).map(cluster).collect::<Vec<_>>()}).to_string());
    let mut control_plane = ControlPlane::start(&dir);
    let stalled = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
    stalled.send(delta_request(type_url::CLUSTER, &[])).await;
    control_plane.events(3);
    let mut silent = TcpStream::connect(&control_plane.address).expect("connected");
    silent.write_all(b"PRI").expect("sent");
    signal(&control_plane, "TERM");
    // The stalled stream would wait for ever.
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || ended.send(control_plane.ended()));
    assert_eq!(end.recv_timeout(LONG).expect("it ends"), Some(0));
    drop(stalled);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_limit_of_open_files_connections_are_refused_with_one_line() {
    let dir = Dir::new("cp-files");
    dir.put("clusters.json", clusters(&[("c1", 1)]));
    let mut limited = Command::new("sh");
    let program = command().get_program().to_owned();
    limited.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""]).arg(program);
    limited.args(["--listen", "127.0.0.1:0", "--log", "json", "--resources"]).arg(&dir.0);
    let control_plane = ControlPlane::run(limited);
    let mut peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
    peer.send(delta_request(type_url::CLUSTER, &[])).await;
    let first = peer.next().await;
    peer.send(delta_answer(type_url::CLUSTER, &first.nonce, None)).await;

    let connect = || TcpStream::connect(&control_plane.address).expect("connected");
    let held: Vec<TcpStream> = (0..31).map(|_| connect()).collect();
    for _ in 0..10 {
        let mut refused = connect();
        refused.set_read_timeout(Some(LONG)).expect("set");
        // The connection ends without a byte: no settings of HTTP/2.
        assert_eq!(refused.read(&mut [0]).map_err(|error| error.kind()).unwrap_or(0), 0);
    }
    let full = "connections are refused: ";
    assert_eq!(control_plane.said(full), "32 connections are open, as many as the limit of open files allows");

    // The program goes on for connected clients and, when there is room, for new ones.
    dir.put("clusters.json", clusters(&[("c1", 2)]));
    assert_eq!(names(&peer.next().await), ["c1"]);
    drop(held);
    let end = Instant::now() + LONG;
    loop {
        let mut stream = connect();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap_or(());
        if matches!(stream.read(&mut [0]), Ok(1)) {
            break;
        }
        assert!(Instant::now() < end, "there is room again");
    }
    let said = || control_plane.complaints().iter().filter(|line| line.starts_with(full)).count();
    assert_eq!(said(), 1);

    // At the limit once more, the program logs one more line.
    let mut held = VecDeque::new();
    while said() == 1 {
        held.push_back(connect());
        if held.len() > 100 {
            held.pop_front();
        }
        assert!(Instant::now() < end, "full again");
    }
}

#[test]
fn the_default_log_is_text() {
    let dir = Dir::new("cp-text");
    dir.put("clusters.json", clusters(&[("c1", 1)]));
    let mut child = command()
        .args(["--listen", "127.0.0.1:0", "--resources"])
        .arg(&dir.0)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("started");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("piped")));
    let mut next = || lines.next().expect("a line").expect("text");
    assert!(next().starts_with("listening on 127.0.0.1:"));
    let loaded = next();
    let end = format!(" loaded     {}: 1 Cluster [c1]", dir.0.join("clusters.json").display());
    assert!(loaded.ends_with(&end), "{loaded}");
    child.kill().expect("it runs");
    child.wait().expect("ended");
}

/// An id that forges a line and clears a terminal, and is longer than any that is logged.
const RUDE: &str = "n\n00:00:00.000 #7 ack\r\u{1b}[2J\u{9b}2J\u{85}\u{202e}";

/// Opens a stream with rude names, which ends when it is dropped.
async fn say_rude(control_plane: &ControlPlane) -> Peer<Delta> {
    let (node, name) = (RUDE.to_owned() + &"i".repeat(1000), RUDE.to_owned() + &"c".repeat(1000));
    let mut peer = Peer::<Delta>::open(control_plane.channel(), ADS_DELTA).await;
    let mut request = delta_request(type_url::CLUSTER, &[&name]);
    request.node = Some(std::sync::Arc::new(xds_machine::message::Node::new(node)));
    peer.send(request).await;
    let first = peer.next().await;
    peer.send(delta_answer(type_url::CLUSTER, &first.nonce, Some(RUDE))).await;
    peer
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_peer_says_forges_no_line_of_the_log() {
    let dir = Dir::new("cp-forged");
    dir.put("clusters.json", clusters(&[("c1", 1)]));
    let control_plane = ControlPlane::start(&dir);
    let _peer = say_rude(&control_plane).await;
    let events = control_plane.events(4);
    let shown = |of: &str| format!("{RUDE}{}", of.repeat(256 - RUDE.len()));
    assert_eq!(events[1]["node"], shown("i"));
    assert_eq!(events[1]["names"], json!([shown("c")]));
    assert_eq!((&events[3]["event"], &events[3]["message"]), (&json!("nack"), &json!(RUDE)));
    let is_rude = |line: &String| line.contains(|char: char| char.is_control() || char == '\u{202e}');
    assert_eq!(control_plane.lines().into_iter().find(is_rude), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_peer_says_forges_no_line_of_the_text_log() {
    let dir = Dir::new("cp-forged-text");
    dir.put("clusters.json", clusters(&[("c1", 1)]));
    let mut text = command();
    text.args(["--listen", "127.0.0.1:0", "--resources"]).arg(&dir.0);
    let control_plane = ControlPlane::run(text);
    let _peer = say_rude(&control_plane).await;
    let nack = control_plane.printed(|line| line.contains(" nack "));
    let said = r"n\n00:00:00.000 #7 ack\r\u{1b}[2J\u{9b}2J\u{85}\u{202e}";
    assert!(nack.contains(&format!(" node {said}{}", "i".repeat(256 - RUDE.len()))), "{nack}");
    assert!(nack.ends_with(&format!(" \"{said}\"")), "{nack}");
    let lines = control_plane.lines();
    assert!(
        lines.iter().all(|line| !line.contains(char::is_control) && !line.starts_with("00:00:00.000")),
        "{lines:?}"
    );
}
