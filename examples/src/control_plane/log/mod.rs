//! The log: one line per event, on standard output.
//!
//! `tracing` carries the diagnostics, on standard error. The events of this log are a contract with the programs that
//! read them, and have lists of names, which the fields of `tracing` can't hold; so `serde_json` writes them.

mod event;
mod name;
mod queue;
mod refusals;
mod streams;

use std::fmt::Display;
use std::io;

use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use super::arguments::Format;

pub use self::event::{ClusterLoad, Event, List, LocalityLoad, grouped, short};
pub use self::name::Name;
use self::queue::Queue;
use self::refusals::{Refusals, TARGET};
pub use self::streams::Logged;

/// Writes events to standard output, and never waits for its reader. Cheap to clone.
#[derive(Clone)]
pub struct Log {
    format: Format,
    out: Queue,
}

impl Log {
    /// Starts the thread that writes. Dropping the guard writes the waiting lines.
    pub fn new(format: Format) -> (Self, WorkerGuard) {
        let (out, guard) = Queue::new(io::stdout());
        (Self { format, out }, guard)
    }

    /// Logs an event.
    pub fn event(&self, event: Event<'_>) {
        let event = event.cut();
        match self.format {
            Format::Json => self.out.json(&serde_json::to_string(&event).unwrap_or_default()),
            Format::Text => self.out.text(&event.text()),
        }
    }

    /// Logs where the program listens, on standard error if events are JSON: then standard output has nothing else.
    pub fn listening(&self, address: &impl Display) {
        let line = format!("listening on {address}");
        match self.format {
            Format::Json => tracing::info!("{line}"),
            Format::Text => self.out.text(&line),
        }
    }

    /// Returns the count of lines that were dropped because no program read the output.
    pub fn lost(&self) -> usize {
        self.out.lost()
    }
}

/// Sends the diagnostics of `tracing` to standard error, as lines without decoration: each is a sentence for people.
pub fn diagnostics() -> WorkerGuard {
    let (err, guard) = Queue::new(io::stderr());
    let plain = fmt::layer().without_time().with_level(false).with_target(false).with_ansi(false);
    let others = Targets::new().with_default(LevelFilter::INFO).with_target(TARGET, LevelFilter::OFF);
    let plain = plain.with_writer(err.clone()).with_filter(others);
    let refusals = Refusals(err).with_filter(Targets::new().with_target(TARGET, LevelFilter::DEBUG));
    let _ = registry().with(plain).with(refusals).try_init();
    guard
}
