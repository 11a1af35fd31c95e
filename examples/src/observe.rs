//! The log of a control plane: an event for each thing that happens on a stream.

use tonic::Status;
use xds_machine::server::{Action, DropReason};
use xds_machine::{ResourceName, TypeUrl, WILDCARD};
use xds_machine_tonic::server::{Observer, Sent, StreamInfo};

use crate::log::{Event, Log};

/// Logs the events of all streams.
pub struct Logged(pub Log);

impl Logged {
    fn log(&self, stream: &StreamInfo, event: Event<'_>) {
        let node = stream.node().map(|node| node.id.as_str());
        self.0.event(&Event { stream: stream.id().0, node, ..event });
    }

    fn about(&self, stream: &StreamInfo, event: &str, type_url: &TypeUrl, rest: Event<'_>) {
        self.log(stream, Event { event, type_url: Some(type_url.as_str()), ..rest });
    }
}

impl Observer for Logged {
    fn opened(&self, stream: &StreamInfo) {
        self.log(stream, Event { event: "open", ..Event::default() });
    }

    fn action(&self, stream: &StreamInfo, action: &Action) {
        match action {
            Action::Subscribed { type_url, .. } => {
                let interest = stream.interest(type_url);
                let wildcard = interest.as_ref().filter(|interest| interest.wildcard()).map(|_| WILDCARD);
                let names = interest.iter().flat_map(|interest| interest.names()).map(ResourceName::as_str);
                let names = Some(wildcard.into_iter().chain(names).collect());
                self.about(stream, "subscribed", type_url, Event { names, ..Event::default() });
            }
            Action::Ack { type_url, version, nonce, .. } => {
                let (version, nonce) = (Some(version.as_str()), Some(nonce.as_str()));
                self.about(stream, "ack", type_url, Event { version, nonce, ..Event::default() });
            }
            Action::Nack { type_url, version, nonce, error, .. } => {
                let (version, nonce) = (Some(version.as_str()), Some(nonce.as_str()));
                let (code, message) = (Some(error.code), Some(error.message.as_str()));
                self.about(stream, "nack", type_url, Event { version, nonce, code, message, ..Event::default() });
            }
            Action::DropStale { type_url, nonce, reason, .. } => {
                let message = match reason {
                    DropReason::NoNonce => "no nonce",
                    _ => "the nonce of no response that waits for an answer",
                };
                let (nonce, message) = (Some(nonce.as_str()), Some(message));
                self.about(stream, "drop_stale", type_url, Event { nonce, message, ..Event::default() });
            }
            _ => {}
        }
    }

    fn sent(&self, stream: &StreamInfo, response: &dyn Sent) {
        let event = Event {
            version: Some(response.version().as_str()),
            nonce: Some(response.nonce().as_str()),
            resources: Some(response.resources().map(|resource| resource.name().as_str()).collect()),
            removed: Some(response.removed().iter().map(ResourceName::as_str).collect()),
            ..Event::default()
        };
        self.about(stream, "send", response.type_url(), event);
    }

    fn closed(&self, stream: &StreamInfo, status: &Status) {
        let (code, message) = (status.code() as i32, status.message());
        self.log(stream, Event { event: "close", code: Some(code), message: Some(message), ..Event::default() });
    }
}
