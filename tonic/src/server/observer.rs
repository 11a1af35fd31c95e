//! The observer of a control plane's streams, for logs and metrics.

use std::net::SocketAddr;

use tonic::Status;
use xds_machine::server::{Action, Resource, Response, Variant};
use xds_machine::{Nonce, ResourceName, TypeUrl, Version};

use super::StreamInfo;

/// Receives the events of a control plane's streams. All methods do nothing by default, and nothing is computed for a
/// control plane without an observer.
///
/// The methods are called on the task of the stream, in the order of the events, with no lock held: a method that
/// waits holds up its stream.
pub trait Observer: Send + Sync + 'static {
    /// A call was accepted.
    fn opened(&self, stream: &StreamInfo) {
        let _ = stream;
    }

    /// A call was not accepted: its method does not exist, its requests are compressed, too many streams or calls of
    /// CSDS are open, or the control plane shuts down. A refused node is not reported here: its stream
    /// [closes](Self::closed).
    fn refused(&self, path: &str, peer: Option<SocketAddr>, status: &Status) {
        let _ = (path, peer, status);
    }

    /// A request has arrived. Its [actions](Self::action) follow.
    fn request(&self, stream: &StreamInfo) {
        let _ = stream;
    }

    /// The machine reports an action: the node, a changed subscription, an ACK, a NACK, a stale request.
    fn action(&self, stream: &StreamInfo, action: &Action) {
        let _ = (stream, action);
    }

    /// A response is passed to the transport.
    fn sent(&self, stream: &StreamInfo, response: &dyn Sent) {
        let _ = (stream, response);
    }

    /// The stream has ended, with the status that was sent to the client. CANCELLED means that the client has left.
    fn closed(&self, stream: &StreamInfo, status: &Status) {
        let _ = (stream, status);
    }
}

/// Both observers receive each event, in this order.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn opened(&self, stream: &StreamInfo) {
        self.0.opened(stream);
        self.1.opened(stream);
    }

    fn refused(&self, path: &str, peer: Option<SocketAddr>, status: &Status) {
        self.0.refused(path, peer, status);
        self.1.refused(path, peer, status);
    }

    fn request(&self, stream: &StreamInfo) {
        self.0.request(stream);
        self.1.request(stream);
    }

    fn action(&self, stream: &StreamInfo, action: &Action) {
        self.0.action(stream, action);
        self.1.action(stream, action);
    }

    fn sent(&self, stream: &StreamInfo, response: &dyn Sent) {
        self.0.sent(stream, response);
        self.1.sent(stream, response);
    }

    fn closed(&self, stream: &StreamInfo, status: &Status) {
        self.0.closed(stream, status);
        self.1.closed(stream, status);
    }
}

/// A response of either variant, as an observer sees it: the methods of [`Response`].
pub trait Sent {
    /// Returns the type of the resources.
    fn type_url(&self) -> &TypeUrl;

    /// Returns the version of the type as a whole.
    fn version(&self) -> &Version;

    /// Returns the nonce.
    fn nonce(&self) -> &Nonce;

    /// Returns the resources. A response may have a hundred thousand.
    fn resources(&self) -> Box<dyn Iterator<Item = &Resource> + '_>;

    /// Returns the number of resources, in time proportional to the number of pages.
    fn resource_count(&self) -> usize;

    /// Returns the names of removed resources (delta only).
    fn removed(&self) -> &[ResourceName];

    /// Returns the length of the encoded message in bytes.
    fn encoded_len(&self) -> usize;
}

impl<V: Variant> Sent for Response<V> {
    fn type_url(&self) -> &TypeUrl {
        self.type_url()
    }

    fn version(&self) -> &Version {
        self.version()
    }

    fn nonce(&self) -> &Nonce {
        self.nonce()
    }

    fn resources(&self) -> Box<dyn Iterator<Item = &Resource> + '_> {
        Box::new(self.resources())
    }

    fn resource_count(&self) -> usize {
        self.resource_count()
    }

    fn removed(&self) -> &[ResourceName] {
        self.removed()
    }

    fn encoded_len(&self) -> usize {
        self.encoded_len()
    }
}
