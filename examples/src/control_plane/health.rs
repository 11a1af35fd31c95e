//! The pages about the program: its metrics, and whether it lives and is ready.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use jiff::Timestamp;
use tokio::sync::watch;

use super::metrics::Metrics;

/// The name of the source, whether its resources are known, and since when it is away.
pub struct Health {
    source: String,
    state: Mutex<Seen>,
    is_ready: watch::Sender<bool>,
}

#[derive(Default)]
struct Seen {
    is_known: bool,
    away: Option<Timestamp>,
    /// What was never read.
    unread: Option<String>,
}

impl Health {
    /// Creates the health of a program that knows nothing yet.
    pub fn new(source: String) -> Self {
        Self { source, state: Mutex::default(), is_ready: watch::Sender::new(false) }
    }

    /// Notes whether the source was there at the last look, and whether all of it is known now, or what is not, if that
    /// is news. A source that was known once stays known.
    pub fn note(&self, is_there: bool, is_known: bool, unread: Option<String>) {
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_known |= is_known;
        state.away = (!is_there).then(|| state.away.unwrap_or_else(Timestamp::now));
        state.unread = unread.or(state.unread.take());
        self.is_ready.send_if_modified(|is_ready| std::mem::replace(is_ready, state.is_known) != state.is_known);
    }

    /// Returns what tells when the program is ready.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.is_ready.subscribe()
    }

    fn ready(&self) -> (StatusCode, String) {
        let source = &self.source;
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            Seen { is_known: false, unread, .. } => {
                let unread = unread.as_ref().map(|unread| format!(": {unread}")).unwrap_or_default();
                (StatusCode::SERVICE_UNAVAILABLE, format!("not all of {source} could be read yet{unread}\n"))
            }
            Seen { away: None, .. } => (StatusCode::OK, "ready\n".into()),
            Seen { away: Some(since), .. } => {
                (StatusCode::OK, format!("ready, though {source} is away since {since:.0}: what it held is served\n"))
            }
        }
    }
}

/// Returns the pages.
pub fn pages(metrics: Arc<Metrics>, health: Arc<Health>) -> Router {
    let text = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Router::new()
        .route("/metrics", get(move |State(metrics): State<Arc<Metrics>>| async move { (text, metrics.render()) }))
        .route("/healthz", get(|| async { "it lives\n" }))
        .route("/readyz", get(move || async move { health.ready().into_response() }))
        .with_state(metrics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_begins_with_the_first_complete_read_and_is_never_lost() {
        let health = Health::new("dir".into());
        assert_eq!(health.ready(), (StatusCode::SERVICE_UNAVAILABLE, "not all of dir could be read yet\n".into()));
        health.note(true, false, Some("b.yaml for all nodes".into()));
        health.note(true, false, None);
        let (status, body) = health.ready();
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(body, "not all of dir could be read yet: b.yaml for all nodes\n");
        health.note(true, true, None);
        assert_eq!(health.ready(), (StatusCode::OK, "ready\n".into()));
        health.note(false, false, None);
        let (status, body) = health.ready();
        assert_eq!(status, StatusCode::OK);
        assert!(body.starts_with("ready, though dir is away since 20"), "{body}");
        health.note(false, false, None);
        assert_eq!(health.ready().1, body, "since the first look that missed it");
        health.note(true, false, None);
        assert_eq!(health.ready(), (StatusCode::OK, "ready\n".into()));
    }
}
