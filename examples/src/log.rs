//! What a program says on standard output, a line for each thing that happened, without ever waiting for whoever reads
//! it.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use serde::Serialize;

/// How a line looks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// A JSON object.
    Json,
    /// For people.
    Text,
}

/// A line.
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

/// The way to standard output. Cheap to clone.
#[derive(Clone)]
pub struct Log {
    format: Format,
    lines: mpsc::Sender<String>,
    /// Bytes that nobody has read yet.
    waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
}

/// If nobody reads, so much is kept. The lines after that are lost, and counted.
const WAITING: usize = 64 << 20;

impl Log {
    /// Starts the thread that writes.
    pub fn new(format: Format) -> Self {
        let (lines, queue) = mpsc::channel::<String>();
        let log = Self { format, lines, waiting: Arc::default(), lost: Arc::default() };
        let (waiting, lost) = (log.waiting.clone(), log.lost.clone());
        thread::spawn(move || {
            for line in queue {
                waiting.fetch_sub(line.len(), Ordering::Relaxed);
                let mut out = io::stdout().lock();
                // Whoever read this may be gone, and the clients are not.
                let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
                match lost.swap(0, Ordering::Relaxed) {
                    0 => {}
                    lost => eprintln!("{lost} lines of the log are lost: nobody read them"),
                }
            }
        });
        log
    }

    /// Says a line as it is.
    pub fn line(&self, mut line: String) {
        line.push('\n');
        if self.waiting.fetch_add(line.len(), Ordering::Relaxed) > WAITING {
            self.waiting.fetch_sub(line.len(), Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
        } else {
            let _ = self.lines.send(line);
        }
    }

    /// Says what happened.
    pub fn event(&self, event: &Event<'_>) {
        self.line(match self.format {
            Format::Json => serde_json::to_string(event).unwrap_or_default(),
            Format::Text => event.text(),
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
