//! Plays the stories in `tests/shim` against the program.
//!
//! A story alternates lines of input and the lines of output that they cause. For readability, type URLs are
//! abbreviated (`cds`), and messages use the notation of the crate's own stories (`tests/protocol/scripts/README.md`).

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, thread};

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use serde_json::{Value, json};
use xds_machine::message::{Node, ResourceError, feature};
use xds_machine::{Code, Delta, Sotw, Status, proto, type_url};
use xds_machine_testing::script::notation::{Notation, Symbols, Words, read_type, write_type};

/// Runs the program on an input to its end, and returns the output.
fn shim(input: Vec<u8>) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shim"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let writer = thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("no panic").expect("the program reads all");
    assert_eq!(output.status.code(), Some(0), "the end of the input ends it");
    String::from_utf8(output.stdout).expect("text")
}

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Sotw,
    Delta,
}

impl Variant {
    /// Encodes a message written as `C> ..` or `S> ..`. A request that ends with `ttl` has a node that supports TTLs.
    fn encode(self, line: &str) -> Option<String> {
        let (side, message) = (line.get(..2)?, line.get(3..)?);
        let ttl = message.strip_suffix(" ttl");
        let node = ttl
            .map(|_| Node { client_features: vec![feature::TTL.into(), feature::WRAPPER[0].into()], ..Node::new("n") });
        let message = Words::new(ttl.unwrap_or(message));
        let none = Symbols::default();
        let bytes = match (side, self) {
            ("C>", Self::Sotw) => {
                let mut request = Sotw::read_request(message, &none).expect(line);
                Sotw::give_node(&mut request, node);
                proto::sotw::encode_request(&request)
            }
            ("C>", Self::Delta) => {
                let mut request = Delta::read_request(message, &none).expect(line);
                Delta::give_node(&mut request, node);
                proto::delta::encode_request(&request)
            }
            ("S>", Self::Sotw) => proto::sotw::encode_response(&Sotw::read_response(message).expect(line)),
            ("S>", Self::Delta) => proto::delta::encode_response(&Delta::read_response(message).expect(line)),
            _ => return None,
        };
        Some(BASE64_STANDARD.encode(bytes))
    }

    fn decode(self, pb: &str, by_client: bool) -> String {
        let bytes = Bytes::from(BASE64_STANDARD.decode(pb).expect("base64"));
        let line = |message: String, version: &str, nonce: &str| {
            let known = message.find(" v=").or(message.find(" n=")).expect("a nonce");
            let errors = message.find(" err[").unwrap_or(message.len());
            format!("{}{version} n={nonce}{}", &message[..known], &message[errors..])
        };
        let symbols = &mut Symbols::default();
        match (self, by_client) {
            (Self::Sotw, true) => Sotw::write_request(&proto::sotw::decode_request(bytes).expect("a request")),
            (Self::Delta, true) => Delta::write_request(&proto::delta::decode_request(bytes).expect("a request")),
            (Self::Sotw, false) => {
                let response = proto::sotw::decode_response(bytes).expect("a response");
                let version = format!(" v={}", response.version);
                line(Sotw::write_response(&response, symbols), &version, response.nonce.as_str())
            }
            (Self::Delta, false) => {
                let response = proto::delta::decode_response(bytes).expect("a response");
                line(Delta::write_response(&response, symbols), "", response.nonce.as_str())
            }
        }
    }
}

/// Rewrites the strings of a field, at any depth.
fn rewrite(value: &mut Value, field: &str, by: &dyn Fn(&str) -> Option<String>) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| rewrite(value, field, by)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| match value.as_str() {
            Some(text) if name == field => by(text).into_iter().for_each(|new| *value = new.into()),
            _ => rewrite(value, field, by),
        }),
        _ => {}
    }
}

fn to_machine(line: &str, variant: Variant) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else { return line.into() };
    rewrite(&mut value, "pb", &|pb| variant.encode(pb));
    rewrite(&mut value, "type_url", &|short| Some(read_type(short).as_str().into()));
    value.to_string()
}

fn from_machine(line: &str, variant: Variant, by_client: bool) -> String {
    let mut value: Value = serde_json::from_str(line).expect("an answer is JSON");
    rewrite(&mut value, "pb", &|pb| Some(variant.decode(pb, by_client)));
    rewrite(&mut value, "type_url", &|url| Some(write_type(&url.into()).into()));
    value.to_string()
}

fn is_input(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#') && !is_answer(line)
}

fn is_answer(line: &str) -> bool {
    line.starts_with("  ")
}

/// Returns a story with the output that the program gives.
fn play(story: &str) -> String {
    let variant = if story.contains(r#""variant":"delta""#) { Variant::Delta } else { Variant::Sotw };
    let by_client = story.contains(r#""role":"client""#);
    let input: String =
        story.lines().filter(|line| is_input(line)).map(|line| to_machine(line, variant) + "\n").collect();
    let output = shim(input.into_bytes());
    let mut answers = output.lines();
    let mut told = String::new();
    for line in story.lines().filter(|line| !is_answer(line)) {
        told += &format!("{line}\n");
        if is_input(line) {
            let answer = answers.next().expect("every line is answered");
            told += &format!("  {}\n", from_machine(answer, variant, by_client));
        }
    }
    assert_eq!(answers.next(), None, "one answer a line");
    told
}

/// `BLESS=1` writes the program's output to the stories. Read the difference.
#[test]
fn every_story_gives_its_recorded_output() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shim");
    let entries = fs::read_dir(folder).expect("a folder of stories");
    let mut stories: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    stories.sort();
    for path in stories {
        let story = fs::read_to_string(&path).expect("a story");
        let told = play(&story);
        if env::var_os("BLESS").is_some() {
            fs::write(&path, &told).expect("room on the disk");
            continue;
        }
        for (number, (expected, actual)) in story.lines().zip(told.lines()).enumerate() {
            assert_eq!(actual, expected, "{}:{}", path.display(), number + 1);
        }
        assert_eq!(told, story, "{}", path.display());
    }
}

/// Compares the raw lines, without any abbreviation.
#[test]
fn lines_are_json_and_messages_are_base64() {
    let input: [&[u8]; 4] = [
        br#"{"op":"new","role":"client","variant":"sotw"}"#,
        b"\r\n\n\xff\n", // an empty line, and one that is no text
        br#"{"op":"subscribe","type_url":"t","names":["a"]}"#,
        b"\n{\"op\":\"open\"}", // the last line needs no end
    ];
    let bad = |why: &str| {
        format!(
            "{{\"out\":[{{\"error\":{{\"code\":\"INVALID_ARGUMENT\",\"culprit\":\"caller\",\"message\":\"not a JSON \
             object: {why}\"}}}}],\"timeout_ms\":null}}"
        )
    };
    let expected = [
        r#"{"out":[],"timeout_ms":null}"#,
        &bad("EOF while parsing a value at line 1 column 0"),
        &bad("expected value at line 1 column 1"),
        r#"{"out":[],"timeout_ms":null}"#,
        r#"{"out":[{"send":{"intent":"initial","pb":"Ej9SG3hkcy5jb25maWcucmVzb3VyY2UtaW4tc290d1IgeGRzLmNvbmZpZy5zdXBwb3J0cy1yZXNvdXJjZS10dGwaAWEiAXQ="}}],"timeout_ms":15000}"#,
    ];
    assert_eq!(shim(input.concat()).lines().collect::<Vec<_>>(), expected);
}

/// The stories show only the codes of errors.
#[test]
fn the_message_of_a_resource_error_is_sent_unchanged() {
    let lines = r#"{"op":"new","role":"server","variant":"sotw"}
{"op":"error","type_url":"eds","name":"a","code":14,"message":"the registry is away"}
{"op":"open","stream":1}
{"op":"request","stream":1,"pb":"C> eds [a]"}"#;
    let input: Vec<String> = lines.lines().map(|line| to_machine(line, Variant::Sotw)).collect();
    let output = shim(input.join("\n").into_bytes());
    let answer: Value = serde_json::from_str(output.lines().last().expect("an answer")).expect("JSON");
    let pb = answer["out"][1]["send"]["pb"].as_str().expect("a response");
    let response = proto::sotw::decode_response(BASE64_STANDARD.decode(pb).expect("base64").into());
    let status = Some(Status::new(Code::Unavailable, "the registry is away"));
    assert_eq!(response.expect("a response").errors, [ResourceError { name: "a".into(), status }]);
}

/// The machine itself closes a stream, without an error of one request.
#[test]
fn a_stream_is_closed_after_more_than_1000_stale_requests() {
    let new = r#"{"op":"new","role":"server","variant":"sotw"}
{"op":"open","stream":9}
"#;
    let request = |line| {
        to_machine(&format!(r#"{{"op":"request","stream":9,"pb":"C> cds [a] n={line}"}}"#), Variant::Sotw) + "\n"
    };
    let output = shim([new, &request(""), &request("old").repeat(1002)].concat().into_bytes());
    let answers: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let dropped = json!({ "drop_stale": { "stream": 9, "type_url": type_url::CLUSTER, "nonce": "old", "reason": "other_nonce" } });
    let close = json!({ "close": { "stream": 9, "code": "RESOURCE_EXHAUSTED", "message": "more than 1000 stale requests in a row" } });
    let expected = [vec![dropped.clone()], vec![dropped, close], vec![]];
    let last: Vec<&Value> = answers.iter().rev().take(3).rev().map(|answer| &answer["out"]).collect();
    assert_eq!(last, expected.each_ref().map(|out| json!(out)).iter().collect::<Vec<_>>());
}
