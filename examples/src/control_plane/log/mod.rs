//! The log: one line per event, on standard output.
//!
//! `tracing` carries the diagnostics, on standard error. The events of this log are a contract with the programs that
//! read them, and have lists of names, which the fields of `tracing` can't hold; so `serde_json` writes them.

mod event;
mod streams;

use std::io::{self, Write};

use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

use super::arguments::Format;

pub use self::event::{ClusterLoad, Event, List, LocalityLoad, grouped, short};
pub use self::streams::Logged;

/// The number of lines that wait for the reader of the output. Further lines are dropped, and counted.
const WAITING: usize = 16_384;

/// Writes events to standard output, and never waits for its reader. Cheap to clone.
#[derive(Clone)]
pub struct Log {
    format: Format,
    out: NonBlocking,
}

impl Log {
    /// Starts the thread that writes. Dropping the guard writes the waiting lines.
    pub fn new(format: Format) -> (Self, WorkerGuard) {
        let (out, guard) = writer(io::stdout());
        (Self { format, out }, guard)
    }

    /// Logs an event.
    pub fn event(&self, event: Event<'_>) {
        let event = event.cut();
        let line = match self.format {
            Format::Json => serde_json::to_string(&event).unwrap_or_default(),
            Format::Text => event.text(),
        };
        self.line(line);
    }

    /// Logs where the program listens, on standard error if events are JSON: then standard output has nothing else.
    pub fn listening(&self, address: std::net::SocketAddr) {
        let line = format!("listening on {address}");
        match self.format {
            Format::Json => tracing::info!("{line}"),
            Format::Text => self.line(line),
        }
    }

    /// Returns the count of lines that were dropped because no program read the output.
    pub fn lost(&self) -> ErrorCounter {
        self.out.error_counter()
    }

    fn line(&self, mut line: String) {
        line.push('\n');
        let _ = self.out.clone().write_all(line.as_bytes()); // a full queue counts the line as lost
    }
}

/// Sends the diagnostics of `tracing` to standard error, as lines without decoration: each is a sentence for people.
pub fn diagnostics() -> WorkerGuard {
    let (err, guard) = writer(io::stderr());
    let plain = tracing_subscriber::fmt().without_time().with_level(false).with_target(false).with_ansi(false);
    let _ = plain.with_writer(err).with_max_level(tracing::Level::INFO).try_init();
    guard
}

fn writer(to: impl Write + Send + 'static) -> (NonBlocking, WorkerGuard) {
    NonBlockingBuilder::default().lossy(true).buffered_lines_limit(WAITING).finish(to)
}
