//! The pages about the program: its metrics, and whether it lives and is ready.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use jiff::Timestamp;

use super::metrics::Metrics;

/// The name of the source, whether its resources are known, and since when it is away.
pub struct Health {
    source: String,
    state: Mutex<(bool, Option<Timestamp>)>,
}

impl Health {
    /// Creates the health of a program that knows nothing yet.
    pub fn new(source: String) -> Self {
        Self { source, state: Mutex::default() }
    }

    /// Notes whether the source was there at the last look, and whether all of it is known now. A source that was known
    /// once stays known.
    pub fn note(&self, is_there: bool, is_known: bool) {
        let (known, away) = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *known |= is_known;
        *away = (!is_there).then(|| away.unwrap_or_else(Timestamp::now));
    }

    fn ready(&self) -> (StatusCode, String) {
        let source = &self.source;
        match *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            (false, _) => (StatusCode::SERVICE_UNAVAILABLE, format!("not all of {source} could be read yet\n")),
            (true, None) => (StatusCode::OK, "ready\n".into()),
            (true, Some(since)) => {
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
        health.note(true, true);
        assert_eq!(health.ready(), (StatusCode::OK, "ready\n".into()));
        health.note(false, false);
        let (status, body) = health.ready();
        assert_eq!(status, StatusCode::OK);
        assert!(body.starts_with("ready, though dir is away since 20"), "{body}");
        health.note(false, false);
        assert_eq!(health.ready().1, body, "since the first look that missed it");
        health.note(true, false);
        assert_eq!(health.ready(), (StatusCode::OK, "ready\n".into()));
    }
}
