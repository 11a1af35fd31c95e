//! xds-machine as a server, as its own benches drive it.

use std::hint::black_box;
use std::process::ExitCode;

use benches::alloc;
use benches::data::{NOW, cache, clusters, resource};
use benches::stream::Wire;
use harness::{Probe, Sent, Server, Variant, serve};
use xds_machine::server::{self, Cache, StreamId};
use xds_machine::{Delta, Sotw, TypeUrl};

mod probes;

#[global_allocator]
static COUNTING: alloc::Counting = alloc::Counting;

fn main() -> ExitCode {
    serve::<Ours>()
}

struct Ours {
    types: TypeUrl,
    cache: Cache,
    streams: Streams,
}

enum Streams {
    Delta(Vec<server::Server<Delta>>),
    Sotw(Vec<server::Server<Sotw>>),
}

impl Server for Ours {
    const DRIVE: &'static str = "direct: machine and Cache, responses as chunks";

    fn new(n: usize, variant: Variant) -> Result<Self, String> {
        let streams = match variant {
            Variant::Delta => Streams::Delta(Vec::new()),
            Variant::Sotw => Streams::Sotw(Vec::new()),
        };
        let types = clusters();
        Ok(Self { cache: cache(&types, n), types, streams })
    }

    fn open(&mut self) -> Result<Sent, String> {
        let Self { types, cache, streams } = self;
        match streams {
            Streams::Delta(streams) => open(types, cache, streams),
            Streams::Sotw(streams) => open(types, cache, streams),
        }
    }

    fn change(&mut self, at: usize, round: u8, count: bool) -> Result<Sent, String> {
        let Self { types, cache, streams } = self;
        cache.insert(types, resource(at, round));
        match streams {
            Streams::Delta(streams) => push(types, cache, streams, count),
            Streams::Sotw(streams) => {
                cache.publish::<Sotw>();
                push(types, cache, streams, count)
            }
        }
    }

    fn probes() -> Vec<Probe> {
        probes::all()
    }
}

fn open<V: Wire>(types: &TypeUrl, cache: &mut Cache, streams: &mut Vec<server::Server<V>>) -> Result<Sent, String> {
    cache.publish::<V>(); // does nothing if nothing has changed
    let mut server = server::Server::<V>::new(server::Config::ads(), StreamId(streams.len() as u64 + 1));
    server.handle_request(NOW, V::subscribe(types, &[])).map_err(|error| error.to_string())?;
    let sent = send(types, cache, &mut server, true)?;
    streams.push(server);
    Ok(sent)
}

fn push<V: Wire>(
    types: &TypeUrl,
    cache: &Cache,
    streams: &mut [server::Server<V>],
    count: bool,
) -> Result<Sent, String> {
    let mut first = None;
    for stream in streams {
        let sent = send(types, cache, stream, count && first.is_none())?;
        first.get_or_insert(sent);
    }
    first.ok_or_else(|| "no stream".into())
}

fn send<V: Wire>(types: &TypeUrl, cache: &Cache, server: &mut server::Server<V>, count: bool) -> Result<Sent, String> {
    while server.poll_action().is_some() {}
    let response = server.poll_transmit(NOW, cache).ok_or("nothing to send")?;
    let bytes = response.chunks().map(|chunk| black_box(chunk).len()).sum();
    let resources = if count { response.resources().count() } else { 0 };
    let ack = V::ack(types, &[], response.nonce().clone());
    server.handle_request(NOW, ack).map_err(|error| error.to_string())?;
    while server.poll_action().is_some() {}
    Ok(Sent { bytes, resources })
}
