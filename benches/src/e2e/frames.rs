//! The responses of the bare server: those of the machine, composed once for all streams.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use xds_machine::server::{Cache, Config, Response, Server, StreamId};

use crate::data::{NOW, cache, clusters, resource};
use crate::stream::Wire;

/// The frames of a response.
pub(super) type Frames = Arc<[Bytes]>;

/// Makes the responses to one client.
pub(super) struct Template<V: Wire> {
    cache: Cache,
    server: Server<V>,
    rounds: u8,
}

impl<V: Wire + xds_machine::proto::Wire> Template<V> {
    /// Creates a template, and its first response, of N resources.
    pub(super) fn new(n: usize) -> (Self, Frames) {
        let mut server = Server::new(Config::ads(), StreamId(1));
        server.handle_request(NOW, V::subscribe(&clusters(), &[])).expect("a good request");
        let mut template = Self { cache: cache(&clusters(), n), server, rounds: 0 };
        let first = template.response();
        (template, first)
    }

    /// Changes a resource, and returns the response.
    pub(super) fn change(&mut self) -> Frames {
        self.rounds = self.rounds.wrapping_add(1);
        self.cache.insert(&clusters(), resource(0, self.rounds));
        self.response()
    }

    fn response(&mut self) -> Frames {
        self.cache.publish::<V>();
        while self.server.poll_action().is_some() {}
        let response = self.server.poll_transmit(NOW, &self.cache).expect("something new");
        let ack = V::ack(&clusters(), &[], response.nonce().clone());
        self.server.handle_request(NOW, ack).expect("a good request");
        frames(&response)
    }
}

fn frames<V: Wire + xds_machine::proto::Wire>(response: &Response<V>) -> Frames {
    let chunks: Vec<Bytes> = response.chunks().collect();
    let (mut frames, mut small) = (Vec::new(), BytesMut::new());
    small.put_u8(0);
    small.put_u32(chunks.iter().map(Bytes::len).sum::<usize>() as u32);
    for chunk in chunks {
        if chunk.len() < 1024 {
            small.extend_from_slice(&chunk);
        } else {
            if !small.is_empty() {
                frames.push(small.split().freeze());
            }
            frames.push(chunk);
        }
    }
    if !small.is_empty() {
        frames.push(small.freeze());
    }
    frames.into()
}
