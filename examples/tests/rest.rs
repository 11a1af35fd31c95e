//! Polls over REST and files, by the programs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// The time limit for any step.
const LIMIT: Duration = Duration::from_secs(20);

/// A program that is killed at the end, and its lines.
struct Program {
    child: Child,
    lines: Receiver<Value>,
}

impl Program {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}")));
            }
        });
        Self { child, lines }
    }

    fn next(&self) -> Value {
        self.lines.recv_timeout(LIMIT).expect("a line")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Moves a file into place.
fn put(folder: &Path, name: &str, content: &str) {
    let new = folder.with_extension("new");
    fs::write(&new, content).expect("a file");
    fs::rename(new, folder.join(name)).expect("a move");
}

fn clusters(version: &str, names: &[&str]) -> String {
    let cluster = |name: &&str| json!({ "@type": CDS, "name": name, "unheard_of": 1, "connect_timeout": "1s" });
    json!({ "version_info": version, "resources": names.iter().map(cluster).collect::<Vec<_>>() }).to_string()
}

fn apply(version: &str, names: &[&str], removed: &[&str]) -> Value {
    let resource = |name: &&str| json!({ "name": name, "version": version, "size": 6 + name.len() });
    json!({ "apply": {
        "type_url": CDS, "version": version,
        "resources": names.iter().map(resource).collect::<Vec<_>>(), "removed": removed,
    } })
}

fn reject(message: &str) -> Value {
    json!({ "reject": { "type_url": CDS, "errors": [{ "name": null, "message": message }] } })
}

/// Sends a request, and returns the head and the body of the answer.
fn exchange(port: u16, head: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(LIMIT)).expect("a time-out");
    let request = format!("{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_ascii_lowercase(), body.to_owned())
}

fn post(port: u16, api: &str, body: &str) -> (u16, String) {
    let (head, body) = exchange(port, &format!("POST /v3/discovery:{api} HTTP/1.1"), body);
    (head[9..12].parse().expect("a status"), body)
}

/// Starts a control plane of a folder, and returns its port.
fn control_plane(folder: &Path) -> (Program, u16) {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let listen = format!("127.0.0.1:{port}");
    let resources = folder.to_string_lossy();
    let arguments = ["--listen", &listen, "--resources", &resources, "--log", "json"];
    let program = Program::start(env!("CARGO_BIN_EXE_control_plane"), &arguments);
    while program.next()["event"] != "loaded" {}
    (program, port)
}

#[test]
fn a_poll_is_answered_according_to_its_names_and_version() {
    let folder = folder("rest-answers");
    fs::write(folder.join("a.json"), clusters("", &["a", "b"]).replace(",\"unheard_of\":1", "")).expect("a file");
    let (program, port) = control_plane(&folder);
    let (status, body) = post(port, "clusters", r#"{"node":{"id":"n"},"resourceNames":["b"]}"#);
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &body["resources"][0]["name"]), (200, &"b".into()));
    let version = body["versionInfo"].as_str().expect("a version");
    let ask =
        |names: &str| post(port, "clusters", &format!(r#"{{"version_info":"{version}","resource_names":[{names}]}}"#));
    assert_eq!(ask(r#""b""#), (304, String::new()));
    assert_eq!(ask(r#""b","a""#).0, 200, "one name more");
    let poll = program.next();
    let rest = (&poll["event"], &poll["type_url"], &poll["names"], &poll["node"], &poll["version"], &poll["status"]);
    let expected = json!(["poll", CDS, ["b"], "n", "", 200]);
    assert_eq!(json!([rest.0, rest.1, rest.2, rest.3, rest.4, rest.5]), expected);
    assert_eq!(program.next()["status"], 304);
    assert_eq!(program.next()["names"], json!(["a", "b"]));
    assert!(poll["peer"].as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")));

    let none = post(port, "endpoints", r#"{"resourceNames":["e"]}"#);
    assert_eq!((none.0, none.1.contains("resources")), (200, false));
    for (api, body, status, message) in [
        ("clusters", "", 400, "no DiscoveryRequest: the body is empty\n"),
        ("clusters", "{} {}", 400, "no DiscoveryRequest: trailing characters at line 1 column 4\n"),
        ("clusters", r#"{"typeUrl":"x"}"#, 400, "no DiscoveryRequest: its type is x, that of the path is "),
        ("endpoints", "{}", 400, "a poll for "),
        ("nothing", "{}", 404, "no such path: /v3/discovery:nothing\n"),
    ] {
        let (got, text) = post(port, api, body);
        assert_eq!((got, text.starts_with(message)), (status, true), "{text}");
    }
    let (head, _) = exchange(port, "GET /v3/discovery:clusters HTTP/1.1", "");
    assert!(head.starts_with("http/1.1 405") && head.contains("allow: post"), "{head}");
    let long = "POST /v3/discovery:clusters HTTP/1.1\r\nx-envoy-expected-rq-timeout-ms: 400";
    let (head, _) = exchange(port, long, &format!(r#"{{"versionInfo":"{version}","resourceNames":["b"]}}"#));
    assert!(head.starts_with("http/1.1 304") && !head.contains("content-type"), "{head}");
}

#[test]
fn a_held_poll_is_answered_when_a_resource_changes() {
    let folder = folder("rest-hold");
    let good = |names: &[&str]| clusters("", names).replace(",\"unheard_of\":1", "");
    put(&folder, "a.json", &good(&["a"]));
    let (_program, port) = control_plane(&folder);
    let (_, body) = post(port, "clusters", "{}");
    let version = serde_json::from_str::<Value>(&body).expect("JSON")["versionInfo"].clone();
    let held = thread::spawn(move || {
        let head = "POST /v3/discovery:clusters HTTP/1.1\r\nx-envoy-expected-rq-timeout-ms: 60000";
        exchange(port, head, &json!({ "versionInfo": version }).to_string())
    });
    put(&folder, "a.json", &good(&["a", "b"]));
    let (head, body) = held.join().expect("an answer");
    assert!(head.starts_with("http/1.1 200") && body.contains(r#""name":"b""#), "{head} {body}");
}

#[test]
fn files_are_read_when_they_are_moved() {
    let folder = folder("file-moves");
    let server = folder.to_string_lossy().into_owned();
    put(&folder, "cds.json", &clusters("1", &["a"]));
    let arguments = ["--server", &server, "--variant", "file", "--subscribe", "cds", "--for", "60"];
    let client = Program::start(env!("CARGO_BIN_EXE_xds_client"), &arguments);
    assert_eq!(client.next(), json!({ "open": { "stream": 1, "server": server } }));
    assert_eq!(client.next(), apply("1", &["a"], &[]));
    // The client does not read a file that is written in place before an entry is moved.
    File::create(folder.join("cds.json")).and_then(|mut file| file.write_all(b"{")).expect("a file");
    put(&folder, "cds.yaml", &clusters("2", &["a", "b"]));
    assert_eq!(client.next(), apply("2", &["a", "b"], &[]));
    put(&folder, "cds.yaml", &clusters("2", &["a", "b"]));
    fs::remove_file(folder.join("cds.json")).expect("it is there");
    put(&folder, "cds.yaml", "");
    assert_eq!(client.next(), reject("the file is empty"));
    put(&folder, "unrelated", "");
    put(&folder, "cds.json", &clusters("3", &["b", "b"]));
    assert_eq!(client.next(), reject("resource b is in the response twice"));
    put(&folder, "cds.pb_text", "version_info: \"4\"");
    assert_eq!(client.next(), apply("4", &[], &["a", "b"]));
}

/// Starts a server that sends these answers in order, and then 304. Returns its port and the bodies of the requests.
fn scripted(answers: Vec<String>) -> (u16, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (sender, asked) = channel();
    thread::spawn(move || {
        let mut answers = answers.into_iter();
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                let lower = line.to_ascii_lowercase();
                length = lower.strip_prefix("content-length: ").map_or(length, |n| n.trim().parse().expect("a number"));
                line.clear();
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                continue;
            }
            let _ = sender.send(serde_json::from_slice(&body).expect("JSON"));
            let answer = answers.next().unwrap_or_else(|| "304 Not Modified\r\nconnection: close\r\n\r\n".into());
            let _ = stream.write_all(format!("HTTP/1.1 {answer}").as_bytes());
        }
    });
    (port, asked)
}

fn ok(body: &str) -> String {
    format!("200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn a_polling_client_continues_after_errors_and_invalid_responses() {
    let (port, asked) = scripted(vec![
        "304 Not Modified\r\nconnection: close\r\n\r\n".into(),
        ok(&clusters("1", &["a"])),
        ok(""),
        "500 No\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno".into(),
        ok("{} x"),
        ok(r#"{"versionInfo":"2","version_info":"2"}"#),
        ok(&clusters("1", &["a"])),
        ok("{}"),
    ]);
    let server = format!("http://127.0.0.1:{port}");
    let arguments = ["--server", &server, "--variant", "rest", "--subscribe", "cds", "--refresh", "10ms"];
    let more = ["--request-timeout", "10s", "--for", "60", "--node", "n"];
    let client = Program::start(env!("CARGO_BIN_EXE_xds_client"), &[&arguments[..], &more].concat());
    let open = |stream: u64| json!({ "open": { "stream": stream, "server": format!("{server}/") } });
    assert_eq!(client.next(), open(1));
    assert_eq!(client.next(), apply("1", &["a"], &[]));
    assert_eq!(client.next(), reject("the body is empty"));
    let close = client.next();
    assert_eq!(close["close"]["reason"], "500 Internal Server Error: no");
    assert_eq!(client.next(), open(2));
    assert_eq!(client.next(), reject("trailing characters at line 1 column 4"));
    assert_eq!(client.next(), reject("versionInfo and version_info are the same field"));
    assert_eq!(client.next(), apply("", &[], &["a"]));
    let said = |asked: &Value| (asked["versionInfo"].clone(), asked["errorDetail"]["message"].clone());
    let all: Vec<_> = (0..9).map(|_| said(&asked.recv_timeout(LIMIT).expect("a request"))).collect();
    let (empty, trailing) = ("the body is empty", "trailing characters at line 1 column 4");
    let both = "versionInfo and version_info are the same field";
    let expected = [
        (Value::Null, Value::Null),
        (Value::Null, Value::Null),
        ("1".into(), Value::Null),
        ("1".into(), empty.into()),
        ("1".into(), empty.into()),
        ("1".into(), trailing.into()),
        ("1".into(), both.into()),
        ("1".into(), Value::Null),
        (Value::Null, Value::Null),
    ];
    assert_eq!(all, expected);
}

#[test]
fn missing_resources_of_a_poll_are_reported_at_once() {
    let (port, _asked) =
        scripted(vec![ok(&json!({ "resources": [{ "@type": EDS, "clusterName": "e1" }] }).to_string()), ok("{}")]);
    let server = format!("http://127.0.0.1:{port}");
    let arguments = ["--server", &server, "--variant", "rest", "--subscribe", "eds=e1,e2", "--refresh", "10ms"];
    let client = Program::start(env!("CARGO_BIN_EXE_xds_client"), &[&arguments[..], &["--for", "60"]].concat());
    let missing = |name: &str| json!({ "missing": { "type_url": EDS, "name": name } });
    assert!(client.next()["open"].is_object());
    assert_eq!(client.next()["apply"]["resources"][0]["name"], "e1");
    assert_eq!(client.next(), missing("e2"));
    assert_eq!(client.next()["apply"]["removed"], json!(["e1"]));
    assert_eq!(client.next(), missing("e1"));
}

#[test]
fn a_resource_without_a_json_form_takes_no_other_with_it() {
    let folder = folder("rest-unknown");
    put(&folder, "a.json", &clusters("", &["a"]).replace(",\"unheard_of\":1", ""));
    // A cluster whose extension nobody knows here.
    let field = |number: u8, content: &[u8]| {
        let key = u32::from(number) << 3 | 2;
        let key = if key < 128 { vec![key as u8] } else { vec![key as u8 | 128, (key >> 7) as u8] };
        [&key[..], &[content.len() as u8], content].concat()
    };
    let extension = [field(1, b"k"), field(2, &field(1, b"type.googleapis.com/un.Known"))].concat();
    let odd = [field(1, b"odd"), field(36, &extension)].concat();
    let file = field(2, &[field(1, CDS.as_bytes()), field(2, &odd)].concat());
    let long = [&[0x12, 0x80 | (file.len() - 2) as u8 & 0x7f, 0x01][..], &file[2..]].concat();
    let response = if file.len() - 2 < 128 { file } else { long };
    fs::write(folder.join(".x"), response).expect("a file");
    fs::rename(folder.join(".x"), folder.join("odd.pb")).expect("a move");
    let (program, port) = control_plane(&folder);
    while program.next()["source"] != folder.join("odd.pb").to_string_lossy().as_ref() {}
    let (status, body) = post(port, "clusters", r#"{"node":{"id":"n"}}"#);
    let body: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("no JSON: {body}"));
    assert_eq!(status, 200);
    let resources = body["resources"].as_array().expect("a list");
    assert_eq!(resources.len(), 1, "{resources:?}");
    assert_eq!(resources[0]["name"], "a");
}
