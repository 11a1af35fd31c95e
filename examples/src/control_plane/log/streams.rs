//! The events of streams.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use xds_machine::server::{Action, DropReason};
use xds_machine::{ResourceName, TypeUrl, WILDCARD};
use xds_machine_tonic::server::{Observer, Sent, StreamInfo};

use super::{Event, List, Log, Name, grouped, short};

/// Logs the events of all streams.
pub struct Logged {
    log: Log,
    /// The types of which a response was larger than clients take, which is said once.
    too_large: Mutex<BTreeSet<TypeUrl>>,
}

/// The largest message that gRPC clients take, in bytes, unless they are configured otherwise.
const GRPC_DEFAULT: usize = 4 << 20;

impl Logged {
    pub fn new(log: Log) -> Self {
        Self { log, too_large: Mutex::default() }
    }

    /// Says what a client with gRPC's default limit sees of a large response, once for each type.
    fn warn_of_size(&self, type_url: &TypeUrl, bytes: usize) {
        let is_new = |said: &mut BTreeSet<TypeUrl>| said.insert(type_url.clone());
        if bytes > GRPC_DEFAULT && is_new(&mut self.too_large.lock().unwrap_or_else(PoisonError::into_inner)) {
            tracing::warn!(
                "a response of {} has {} bytes: a gRPC client with the default limit of 4 MiB ends the stream with \
                 RESOURCE_EXHAUSTED and gets none of it (--max-response-bytes sends delta responses in portions)",
                Name::from(short(type_url.as_str())),
                grouped(bytes),
            );
        }
    }

    fn log(&self, stream: &StreamInfo, event: Event<'_>) {
        let (id, node) = (Some(stream.id().0), stream.node().map(|node| (&node.id).into()));
        self.log.event(Event { stream: id, peer: stream.peer(), node, ..event });
    }

    fn about(&self, stream: &StreamInfo, type_url: &TypeUrl, event: Event<'_>) {
        self.log(stream, Event { type_url: Some(type_url.as_str().into()), ..event });
    }
}

impl Observer for Logged {
    fn opened(&self, stream: &StreamInfo) {
        self.log(stream, Event::new("open"));
    }

    fn action(&self, stream: &StreamInfo, action: &Action) {
        match action {
            Action::Subscribed { type_url, .. } => {
                let interest = stream.interest(type_url);
                let wildcard = interest.as_ref().filter(|interest| interest.wildcard()).map(|_| WILDCARD);
                let names = interest.iter().flat_map(|interest| interest.names()).map(ResourceName::as_str);
                let names = Some(List::new(wildcard.into_iter().chain(names)));
                self.about(stream, type_url, Event { names, ..Event::new("subscribed") });
            }
            Action::Ack { type_url, version, nonce, .. } => {
                let (version, nonce) = (Some(version.as_str().into()), Some(nonce.as_str().into()));
                self.about(stream, type_url, Event { version, nonce, ..Event::new("ack") });
            }
            Action::Nack { type_url, version, nonce, error, .. } => {
                let (version, nonce) = (Some(version.as_str().into()), Some(nonce.as_str().into()));
                let (code, message) = (Some(error.code), Some(error.message.as_str()));
                self.about(stream, type_url, Event { version, nonce, code, message, ..Event::new("nack") });
            }
            Action::DropStale { type_url, nonce, reason, .. } => {
                let message = match reason {
                    DropReason::NoNonce => "no nonce",
                    _ => "the nonce of no response that waits for an answer",
                };
                let (nonce, message) = (Some(nonce.as_str().into()), Some(message));
                self.about(stream, type_url, Event { nonce, message, ..Event::new("drop_stale") });
            }
            _ => {}
        }
    }

    fn sent(&self, stream: &StreamInfo, response: &dyn Sent) {
        self.warn_of_size(response.type_url(), response.encoded_len());
        let resources = response.resources().map(|resource| resource.name().as_str());
        let removed = response.removed();
        let event = Event {
            version: Some(response.version().as_str().into()),
            nonce: Some(response.nonce().as_str().into()),
            resources: Some(List::of(response.resource_count(), resources)),
            removed: Some(List::of(removed.len(), removed.iter().map(ResourceName::as_str))),
            ..Event::new("send")
        };
        self.about(stream, response.type_url(), event);
    }

    fn closed(&self, stream: &StreamInfo, status: &tonic::Status) {
        let (code, message) = (Some(status.code() as i32), Some(status.message()));
        self.log(stream, Event { code, message, ..Event::new("close") });
    }
}
