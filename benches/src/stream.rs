//! Drives a server's streams, in either variant.

use std::hint::black_box;

use xds_machine::message::{delta, sotw};
use xds_machine::server::{self, Cache, Server, StreamId};
use xds_machine::{Delta, Nonce, ResourceName, Sotw, TypeUrl};

use crate::data::NOW;

pub trait Wire: server::Variant {
    fn subscribe(type_url: &TypeUrl, names: &[&str]) -> Self::Request;
    fn ack(type_url: &TypeUrl, names: &[ResourceName], nonce: Nonce) -> Self::Request;
    /// Returns the names that a client lists in a request, decoded: separate strings.
    fn said(names: &[ResourceName]) -> Vec<ResourceName>;
    /// Returns a request that adds one name, the last of these.
    fn more(type_url: &TypeUrl, names: &[ResourceName]) -> Self::Request;
    /// Turns the request into the one that follows the response with this nonce.
    fn answer(request: &mut Self::Request, nonce: &Nonce);
}

impl Wire for Delta {
    fn subscribe(type_url: &TypeUrl, names: &[&str]) -> delta::Request {
        let subscribe = names.iter().map(|&name| name.into()).collect();
        delta::Request { subscribe, ..delta::Request::new(type_url.clone()) }
    }

    fn ack(type_url: &TypeUrl, _: &[ResourceName], nonce: Nonce) -> delta::Request {
        delta::Request { nonce, ..delta::Request::new(type_url.clone()) }
    }

    fn said(names: &[ResourceName]) -> Vec<ResourceName> {
        names.last().map(|name| name.as_str().into()).into_iter().collect()
    }

    fn more(type_url: &TypeUrl, names: &[ResourceName]) -> delta::Request {
        Self::subscribe(type_url, &[names[names.len() - 1].as_str()])
    }

    fn answer(_: &mut delta::Request, _: &Nonce) {}
}

impl Wire for Sotw {
    fn subscribe(type_url: &TypeUrl, names: &[&str]) -> sotw::Request {
        let names = names.iter().map(|&name| name.into()).collect();
        sotw::Request { names, ..sotw::Request::new(type_url.clone()) }
    }

    fn ack(type_url: &TypeUrl, names: &[ResourceName], nonce: Nonce) -> sotw::Request {
        sotw::Request { names: names.to_vec(), nonce, ..sotw::Request::new(type_url.clone()) }
    }

    fn said(names: &[ResourceName]) -> Vec<ResourceName> {
        names.iter().map(|name| name.as_str().into()).collect()
    }

    fn more(type_url: &TypeUrl, names: &[ResourceName]) -> sotw::Request {
        Self::ack(type_url, names, Nonce::default())
    }

    fn answer(request: &mut sotw::Request, nonce: &Nonce) {
        request.nonce = nonce.clone();
    }
}

/// Returns a subscribed stream that is up to date.
pub fn stream<V: Wire>(
    config: &server::Config,
    id: u64,
    cache: &Cache,
    requests: &[V::Request],
    names: &[ResourceName],
) -> Server<V> {
    let mut server = Server::<V>::new(config.clone(), StreamId(id));
    for request in requests {
        server.handle_request(NOW, request.clone()).expect("a good request");
        settle(&mut server, cache, names);
    }
    server
}

/// Returns `s` such streams.
pub fn streams<V: Wire>(s: usize, cache: &Cache, requests: &[V::Request]) -> Vec<Server<V>> {
    let config = server::Config::ads();
    (0..s).map(|id| stream::<V>(&config, id as u64, cache, requests, &[])).collect()
}

/// Acknowledges all pending responses.
fn settle<V: Wire>(server: &mut Server<V>, cache: &Cache, names: &[ResourceName]) {
    while server.poll_action().is_some() {}
    while let Some(response) = server.poll_transmit(NOW, cache) {
        let ack = V::ack(response.type_url(), names, response.nonce().clone());
        server.handle_request(NOW, ack).expect("a good request");
        while server.poll_action().is_some() {}
    }
}

/// Sends a change on a stream: encodes the response and processes the ACK.
pub fn push<V: Wire>(
    server: &mut Server<V>,
    cache: &Cache,
    type_url: &TypeUrl,
    names: &[ResourceName],
) -> (usize, Nonce) {
    let response = server.poll_transmit(NOW, cache).expect("something new");
    let bytes: usize = response.chunks().map(|chunk| black_box(chunk).len()).sum();
    let nonce = response.nonce().clone();
    server.handle_request(NOW, V::ack(type_url, names, nonce.clone())).expect("a good request");
    while server.poll_action().is_some() {}
    assert!(server.poll_transmit(NOW, cache).is_none());
    (bytes, nonce)
}
