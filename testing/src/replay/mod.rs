//! Recordings of real clients, and their replay with both machines. The README beside the recordings
//! of `xds-machine` describes the file format.

pub mod client;
pub mod message;
pub mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use xds_machine::client::Dialect;
use xds_machine::proto::DecodeError;
use xds_machine::{Instant, TypeUrl, type_url};

/// One conversation of a real client with the recording server.
pub struct Recording {
    /// The name of the file, which names the client and the subject.
    pub name: String,
    /// The events, in order.
    pub events: Vec<Event>,
}

/// An event on a stream.
pub struct Event {
    /// The line in the file.
    pub line: usize,
    /// The time of the event.
    pub now: Instant,
    /// The number of the stream.
    pub stream: u32,
    /// The kind of event.
    pub what: What,
}

/// The kinds of events on a stream.
pub enum What {
    /// The stream opened.
    Open(Method),
    /// The stream ended.
    Close {
        /// Whether the client ended it.
        by_client: bool,
    },
    /// The client sent this request.
    Request(Bytes),
    /// The server sent this response.
    Response(Bytes),
}

/// The service of a stream: `None` for ADS, otherwise the type.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Method(pub Option<TypeUrl>);

impl Recording {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a recording");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
        let events = lines.map(|(at, line)| {
            Event::read(at + 1, line).unwrap_or_else(|| panic!("{name}:{}: {line} is no event", at + 1))
        });
        let events = events.collect();
        Self { name, events }
    }

    /// Returns the dialect of the client. An Envoy sends its node with every request unless configured otherwise.
    pub fn dialect(&self) -> Dialect {
        match self.name.split_once('-') {
            Some(("ccore", _)) => Dialect::Grpc,
            Some(("envoy", rest)) if !rest.contains("node1") => Dialect::Envoy,
            _ => Dialect::Spec,
        }
    }

    /// Returns whether the client uses the incremental variant.
    pub fn is_delta(&self) -> bool {
        self.name.contains("-delta")
    }
}

impl Event {
    fn read(line: usize, text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let &[ms, verb, stream, rest] = words.as_slice() else { return None };
        let what = match verb {
            "open" => What::Open(Method::read(rest)?),
            "close" => What::Close { by_client: rest == "client" },
            "C>" => What::Request(base64(rest)?),
            "S>" => What::Response(base64(rest)?),
            _ => return None,
        };
        let now = Instant::from_epoch(Duration::from_millis(ms.parse().ok()?));
        Some(Self { line, now, stream: stream.parse().ok()?, what })
    }
}

impl Method {
    fn read(path: &str) -> Option<Self> {
        let types = [
            ("Clusters", type_url::CLUSTER),
            ("Endpoints", type_url::ENDPOINT),
            ("Listeners", type_url::LISTENER),
            ("Routes", type_url::ROUTE),
        ];
        if path.ends_with("AggregatedResources") {
            return Some(Self(None));
        }
        types.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, url)| Self(Some(url.into())))
    }
}

/// Returns all recordings, by name.
pub fn recordings() -> Vec<Recording> {
    let entries = fs::read_dir(folder()).expect("a folder of recordings").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    paths.sort();
    paths.iter().map(|path| Recording::read(path)).collect()
}

/// Returns the folder of the recordings: in the repository, because no package contains them.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/protocol/recordings")
}

fn decode<T>(message: Result<T, DecodeError>) -> T {
    message.unwrap_or_else(|error| panic!("a recording has what can't be read: {error}"))
}

fn base64(text: &str) -> Option<Bytes> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        bits = bits << 6 | u32::from(digit(byte)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes.into())
}
