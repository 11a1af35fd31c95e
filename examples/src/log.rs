//! A log with one line per event. Logging never waits for the reader of the output.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use serde::Serialize;

/// The format of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// A JSON object.
    Json,
    /// Human-readable text.
    Text,
}

/// One event.
#[derive(Default, Serialize)]
pub struct Event<'a> {
    pub event: &'a str,
    pub stream: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub type_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
}

/// Writes to standard output and standard error. Cheap to clone.
#[derive(Clone)]
pub struct Log {
    format: Format,
    out: Lines,
    err: Lines,
}

/// A queue of lines, written by a separate thread.
#[derive(Clone)]
struct Lines {
    queue: mpsc::Sender<String>,
    /// The number of bytes that are queued but not written yet.
    waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
}

/// The maximum number of queued bytes. Further lines are dropped, and counted.
const WAITING: usize = 64 << 20;

impl Log {
    /// Starts the threads that write.
    pub fn new(format: Format) -> Self {
        let (err, lines) = Lines::new();
        err.clone().write(lines, io::stderr(), |_| {});
        let (out, lines) = Lines::new();
        let complain = err.clone();
        out.clone().write(lines, io::stdout(), move |lost| {
            complain.push(format!("{lost} lines of the log are lost: nobody read them"));
        });
        Self { format, out, err }
    }

    /// Logs a line unchanged.
    pub fn line(&self, line: String) {
        self.out.push(line);
    }

    /// Logs a line on standard error.
    pub fn complain(&self, line: String) {
        self.err.push(line);
    }

    /// Logs an event.
    pub fn event(&self, event: &Event<'_>) {
        self.line(match self.format {
            Format::Json => serde_json::to_string(event).unwrap_or_default(),
            Format::Text => event.text(),
        });
    }
}

impl Lines {
    fn new() -> (Self, mpsc::Receiver<String>) {
        let (queue, lines) = mpsc::channel();
        (Self { queue, waiting: Arc::default(), lost: Arc::default() }, lines)
    }

    fn push(&self, mut line: String) {
        line.push('\n');
        if self.waiting.fetch_add(line.len(), Ordering::Relaxed) > WAITING {
            self.waiting.fetch_sub(line.len(), Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
        } else {
            let _ = self.queue.send(line);
        }
    }

    fn write(
        self,
        lines: mpsc::Receiver<String>,
        mut to: impl Write + Send + 'static,
        lost: impl Fn(u64) + Send + 'static,
    ) {
        thread::spawn(move || {
            for line in lines {
                // The reader may be gone while clients are still connected, so write errors are ignored.
                let _ = to.write_all(line.as_bytes()).and_then(|()| to.flush());
                self.waiting.fetch_sub(line.len(), Ordering::Relaxed);
                match self.lost.swap(0, Ordering::Relaxed) {
                    0 => {}
                    count => lost(count),
                }
            }
        });
    }
}

impl Event<'_> {
    fn text(&self) -> String {
        let mut text = format!("#{} {:10}", self.stream, self.event);
        let words = [
            ("", self.type_url.map(|url| url.rsplit(['.', '/']).next().unwrap_or(url))),
            ("version ", self.version),
            ("nonce ", self.nonce),
            ("node ", self.node),
        ];
        for (label, word) in words {
            text += &word.map(|word| format!(" {label}{word}")).unwrap_or_default();
        }
        for (label, names) in [("names", &self.names), ("resources", &self.resources), ("removed", &self.removed)] {
            text += &names.as_ref().map(|names| format!(" {label} [{}]", names.join(", "))).unwrap_or_default();
        }
        text += &self.code.map(|code| format!(" code {code}")).unwrap_or_default();
        text += &self.message.map(|message| format!(" {message:?}")).unwrap_or_default();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_people_and_one_for_programs() {
        let event = Event {
            event: "send",
            stream: 3,
            node: Some("n"),
            type_url: Some("type.googleapis.com/envoy.config.cluster.v3.Cluster"),
            version: Some("v"),
            nonce: Some("3.1"),
            resources: Some(vec!["c1", "c2"]),
            removed: Some(vec![]),
            ..Event::default()
        };
        assert_eq!(event.text(), "#3 send       Cluster version v nonce 3.1 node n resources [c1, c2] removed []");
        let json = r#"{"event":"send","stream":3,"node":"n",
            "type_url":"type.googleapis.com/envoy.config.cluster.v3.Cluster",
            "version":"v","nonce":"3.1","resources":["c1","c2"],"removed":[]}"#;
        let line = serde_json::to_string(&event).expect("JSON");
        assert_eq!(line, json.split_whitespace().collect::<String>());
    }

    #[test]
    fn what_nobody_reads_is_lost_and_counted() {
        let (log, queue) = Lines::new();
        for _ in 0..3 {
            log.push("x".repeat(WAITING));
        }
        assert_eq!((queue.try_iter().count(), log.lost.load(Ordering::Relaxed)), (1, 2));
    }
}
