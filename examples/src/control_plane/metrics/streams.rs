//! The metrics of streams.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use xds_machine::TypeUrl;
use xds_machine::server::{Action, Revision, StreamId};
use xds_machine_tonic::server::{Observer, Sent, StreamInfo};

use super::Metrics;
use crate::control_plane::groups::Groups;

/// Measures the events of all streams.
pub struct Measured {
    metrics: Arc<Metrics>,
    groups: Arc<Groups>,
    answered: Mutex<HashMap<StreamId, Vec<Answered>>>,
}

/// The progress of a client's answers for one type.
struct Answered {
    type_url: TypeUrl,
    /// The revision up to which the client has answered, and the time of its last subscription: the client did not wait
    /// for changes before that time.
    after: (Revision, Instant),
}

impl Measured {
    pub fn new(metrics: Arc<Metrics>, groups: Arc<Groups>) -> Self {
        Self { metrics, groups, answered: Mutex::default() }
    }

    fn note_subscribed(&self, stream: &StreamInfo, type_url: &TypeUrl) {
        let (mut answered, now) = (self.lock(), Instant::now());
        let types = answered.entry(stream.id()).or_default();
        match types.iter_mut().find(|of| of.type_url == *type_url) {
            Some(of) => of.after.1 = now,
            None => types.push(Answered { type_url: type_url.clone(), after: (Revision::default(), now) }),
        }
    }

    /// Notes that a client has answered all changes up to a revision, and returns its progress before.
    fn note_answered(&self, stream: &StreamInfo, type_url: &TypeUrl, to: Revision) -> Option<(Revision, Instant)> {
        let mut answered = self.lock();
        let of = answered.get_mut(&stream.id())?.iter_mut().find(|of| of.type_url == *type_url)?;
        let before = of.after;
        of.after.0 = to;
        Some(before)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StreamId, Vec<Answered>>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Measured {
    fn opened(&self, stream: &StreamInfo) {
        self.metrics.streams(stream.method()).increment(1);
    }

    fn refused(&self, _: &str, _: Option<SocketAddr>, _: &tonic::Status) {
        self.metrics.refused.increment(1);
    }

    fn request(&self, _: &StreamInfo) {
        self.metrics.requests.increment(1);
    }

    fn action(&self, stream: &StreamInfo, action: &Action) {
        match action {
            Action::Subscribed { type_url, .. } => self.note_subscribed(stream, type_url),
            Action::Ack { type_url, revision, .. } => {
                self.metrics.acks(type_url.as_str()).increment(1);
                let Some(before) = self.note_answered(stream, type_url, *revision) else { return };
                let view = self.groups.view(stream.group().unwrap_or_default());
                if let Some(changed) = view.read(|held| held.changed(type_url, before, *revision)) {
                    self.metrics.change_to_ack.record(changed.elapsed());
                }
            }
            Action::Nack { type_url, revision, .. } => {
                self.metrics.nacks(type_url.as_str()).increment(1);
                self.note_answered(stream, type_url, *revision);
            }
            _ => {}
        }
    }

    fn sent(&self, _: &StreamInfo, response: &dyn Sent) {
        self.metrics.responses.increment(1);
        self.metrics.sent_bytes.increment(response.encoded_len() as u64);
    }

    fn closed(&self, stream: &StreamInfo, _: &tonic::Status) {
        self.metrics.streams(stream.method()).decrement(1);
        self.lock().remove(&stream.id());
    }
}
