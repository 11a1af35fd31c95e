//! The calls of one stream: to a client, or to one client among several servers.

use xds_machine::client::{Client, Sent, Transmit, Variant};
use xds_machine::servers::{Servers, Stream};
use xds_machine::{Error, Instant};

/// What a [`Link`](super::Link) calls: a client, or one stream [of several servers](OfServers).
pub trait Machine<V: Variant> {
    /// Returns whether [`poll_transmit`](Self::poll_transmit) would return a request.
    fn wants_transmit(&self) -> bool;

    /// Composes the next request: see [`Client::poll_transmit`].
    fn poll_transmit(&mut self) -> Option<Transmit<V::Request>>;

    /// Records that the transport took a request: see [`Client::handle_sent`].
    fn handle_sent(&mut self, now: Instant, sent: Sent);

    /// Returns whether the stream may be read: see [`Client::wants_response`].
    fn wants_response(&self) -> bool;

    /// Handles a response: see [`Client::handle_response`].
    ///
    /// # Errors
    ///
    /// As for [`Client::handle_response`]: the stream must end.
    fn handle_response(&mut self, now: Instant, response: V::Response) -> Result<(), Error>;
}

impl<V: Variant> Machine<V> for Client<V> {
    fn wants_transmit(&self) -> bool {
        self.wants_transmit()
    }

    fn poll_transmit(&mut self) -> Option<Transmit<V::Request>> {
        self.poll_transmit()
    }

    fn handle_sent(&mut self, now: Instant, sent: Sent) {
        self.handle_sent(now, sent);
    }

    fn wants_response(&self) -> bool {
        self.wants_response()
    }

    fn handle_response(&mut self, now: Instant, response: V::Response) -> Result<(), Error> {
        self.handle_response(now, response)
    }
}

/// One stream of several servers.
#[derive(Debug)]
pub struct OfServers<'a, V: Variant> {
    /// The clients of all servers.
    pub servers: &'a mut Servers<V>,
    /// The stream that the calls are about.
    pub stream: Stream,
}

impl<V: Variant> Machine<V> for OfServers<'_, V> {
    fn wants_transmit(&self) -> bool {
        self.servers.wants_transmit(self.stream)
    }

    fn poll_transmit(&mut self) -> Option<Transmit<V::Request>> {
        self.servers.poll_transmit(self.stream)
    }

    fn handle_sent(&mut self, now: Instant, sent: Sent) {
        self.servers.handle_sent(now, self.stream, sent);
    }

    fn wants_response(&self) -> bool {
        self.servers.wants_response(self.stream)
    }

    fn handle_response(&mut self, now: Instant, response: V::Response) -> Result<(), Error> {
        self.servers.handle_response(now, self.stream, response)
    }
}
