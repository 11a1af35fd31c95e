//! A recorded conversation, a JSON object a line: what `tap --record` writes, and what `judge` reads.
//!
//! `{"kind":"stream_open","stream":1,"method":"/PATH"}`, `{"kind":"request","stream":1,"pb":"BASE64"}`, the same with
//! `response`, and `{"kind":"stream_close","stream":1}`. `pb` is the message without the header of gRPC. Other kinds
//! and other fields are ignored.

use std::collections::BTreeMap;
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use xds_machine::service::Method;

use super::judge::Judge;

/// Writes the lines of a recording.
pub(super) struct Recorder(Box<dyn Write + Send>);

impl Recorder {
    pub(super) fn new(to: impl Write + Send + 'static) -> Self {
        Self(Box::new(to))
    }

    pub(super) fn open(&mut self, stream: u64, path: &str) {
        self.line(&json!({"kind": "stream_open", "stream": stream, "method": path}));
    }

    pub(super) fn message(&mut self, kind: &str, stream: u64, message: &[u8]) {
        self.line(&json!({"kind": kind, "stream": stream, "pb": STANDARD.encode(message)}));
    }

    pub(super) fn close(&mut self, stream: u64) {
        self.line(&json!({"kind": "stream_close", "stream": stream}));
    }

    fn line(&mut self, line: &Value) {
        // A full disk ends the recording, and not the conversation: `judge` names the line that is not complete.
        let done: io::Result<()> = writeln!(self.0, "{line}").and_then(|()| self.0.flush());
        if let Err(error) = done {
            eprintln!("xds-conformance: the recording is not complete: {error}");
        }
    }
}

/// Lets the judge read a recording. Lines that are no discovery over gRPC are left out.
///
/// # Errors
///
/// The error names the line that is no part of a recording.
pub(super) fn read(text: &str, judge: &mut Judge) -> Result<(), String> {
    let mut streams: BTreeMap<u64, u64> = BTreeMap::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: &str| format!("line {}: {what}", at + 1);
        let line: Value = serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))?;
        let kind = line["kind"].as_str().ok_or_else(|| wrong("kind is missing"))?;
        if !["stream_open", "request", "response", "stream_close"].contains(&kind) {
            continue;
        }
        let number = line["stream"].as_u64().ok_or_else(|| wrong("stream is no number"))?;
        if kind == "stream_open" {
            let path = line["method"].as_str().ok_or_else(|| wrong("method is missing"))?;
            if let Some(method) = Method::of_path(path) {
                streams.insert(number, judge.open(&method, path));
            }
            continue;
        }
        let Some(&id) = streams.get(&number) else { continue };
        if kind == "stream_close" {
            streams.remove(&number);
            judge.close(id);
            continue;
        }
        let message = line["pb"].as_str().ok_or_else(|| wrong("pb is missing"))?;
        let message = STANDARD.decode(message).map_err(|error| wrong(&format!("pb: {error}")))?;
        if kind == "request" {
            judge.request(id, message.into());
        } else {
            judge.response(id, message.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_line_of_a_recording_is_reported_with_its_number() {
        let judge = |text: &str| read(text, &mut Judge::new("judge", None, |_| {})).expect_err("a wrong line");
        let open = r#"{"kind":"stream_open","stream":1,"method":"/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"}"#;
        assert_eq!(judge("{}"), "line 1: kind is missing");
        assert_eq!(judge("\n{\"kind\":\"request\"}"), "line 2: stream is no number");
        assert_eq!(judge("{\"kind\":\"stream_open\",\"stream\":1}"), "line 1: method is missing");
        assert_eq!(judge(&format!("{open}\n{{\"kind\":\"request\",\"stream\":1}}")), "line 2: pb is missing");
        let bytes = format!("{open}\n{{\"kind\":\"response\",\"stream\":1,\"pb\":\"*\"}}");
        assert!(judge(&bytes).starts_with("line 2: pb: Invalid"), "{}", judge(&bytes));
        // Streams that are no discovery, and notes, are left out.
        let other = "{\"kind\":\"note\"}\n{\"kind\":\"stream_open\",\"stream\":1,\"method\":\"/a/b\"}\n\
                     {\"kind\":\"request\",\"stream\":1}";
        assert_eq!(read(other, &mut Judge::new("judge", None, |_| {})), Ok(()));
    }
}
