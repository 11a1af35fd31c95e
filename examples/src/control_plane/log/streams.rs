//! The events of streams.

use xds_machine::server::{Action, DropReason};
use xds_machine::{ResourceName, TypeUrl, WILDCARD};
use xds_machine_tonic::server::{Observer, Sent, StreamInfo};

use super::{Event, List, Log};

/// Logs the events of all streams.
pub struct Logged(pub Log);

impl Logged {
    fn log(&self, stream: &StreamInfo, event: Event<'_>) {
        let (id, node) = (Some(stream.id().0), stream.node().map(|node| (&node.id).into()));
        self.0.event(Event { stream: id, peer: stream.peer(), node, ..event });
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
