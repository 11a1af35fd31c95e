//! Requests that HTTP/2 refuses before a service sees them.

use std::fmt::{self, Debug};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::queue::Queue;

/// Where the library of HTTP/2 says why it resets the stream of a request, and nothing else. It tells no one else.
pub const TARGET: &str = "h2::server";

/// Writes a line for each request that HTTP/2 refuses.
pub struct Refusals(pub Queue);

impl<S: Subscriber> Layer<S> for Refusals {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut why = Why(String::new());
        event.record(&mut why);
        self.0.text(&format!("a request is refused, its stream is reset: {}", why.0));
    }
}

/// The message of an event.
struct Why(String);

impl Visit for Why {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let _ = fmt::write(&mut self.0, format_args!("{value:?}"));
        }
    }
}
