//! nebucloud's `xds-server` and `xds-cache` as a server: its aggregated service is called, as tonic would call it, but
//! without a network. The service only answers requests: a new snapshot is pushed to no stream. So that there is
//! something to measure, each stream sends a request after a change, as a client may at any time.

mod probes;
mod stream;

use std::any::Any;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use benches::alloc;
use harness::data::{TYPE_URL, body, name};
use harness::{Probe, Sent, Server, Variant, serve, wire};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use xds_cache::{Cache, ShardedCache, Snapshot};
use xds_core::{BoxResource, NodeHash, Resource, ResourceRegistry};
use xds_server::services::ads::{AdsService, DeltaDiscoveryRequest, DiscoveryRequest};

use crate::stream::{Protocol, Stream};

#[global_allocator]
static COUNTING: alloc::Counting = alloc::Counting;

/// The node of all streams.
pub const NODE: &str = "n";

fn main() -> ExitCode {
    wire::serve_or(on_a_port, serve::<Nebucloud>)
}

/// The nodes of the load, each of which has to have a snapshot of its own.
const NODES: usize = 100;

/// Serves N resources over HTTP/2, by tonic as its own server does.
fn on_a_port(n: usize) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let port = listener.local_addr()?.port();
    let mut store = Store::of((0..NODES).map(|node| format!("node-{node}")).collect(), n);
    let router = tonic::transport::Server::builder().add_service(store.service.clone().into_service());
    runtime.spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
    wire::obey(port, |round| store.change(0, round));
    Ok(())
}

struct Nebucloud {
    runtime: Runtime,
    store: Store,
    streams: Streams,
}

enum Streams {
    Delta(Vec<Stream<DeltaDiscoveryRequest>>),
    Sotw(Vec<Stream<DiscoveryRequest>>),
}

/// The service, and the resources that its snapshots are made of.
pub struct Store {
    pub service: AdsService,
    pub resources: Vec<BoxResource>,
    nodes: Vec<String>,
    snapshots: usize,
}

/// A resource as the application has it.
#[derive(Debug)]
struct Encoded {
    name: String,
    any: prost_types::Any,
}

impl Encoded {
    fn shared(name: String, round: u8) -> BoxResource {
        let any = prost_types::Any { type_url: TYPE_URL.into(), value: body(&name, round).into() };
        Arc::new(Self { name, any })
    }
}

impl Resource for Encoded {
    fn type_url(&self) -> &str {
        TYPE_URL
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn encode(&self) -> Result<prost_types::Any, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.any.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Store {
    pub fn new(n: usize) -> Self {
        Self::of(vec![NODE.into()], n)
    }

    /// Returns a store of N resources, which all these nodes have.
    fn of(nodes: Vec<String>, n: usize) -> Self {
        let service = AdsService::new(Arc::new(ShardedCache::new()), Arc::new(ResourceRegistry::with_envoy_types()));
        let resources = (0..n).map(|at| Encoded::shared(name(at), 0)).collect();
        let mut store = Self { service, resources, nodes, snapshots: 0 };
        store.publish();
        store
    }

    pub fn change(&mut self, at: usize, round: u8) {
        self.resources[at] = Encoded::shared(name(at), round);
        self.publish();
    }

    /// Gives each node a new snapshot, because a snapshot can't be changed.
    pub fn publish(&mut self) {
        self.snapshots += 1;
        let builder = Snapshot::builder().version(format!("v{}", self.snapshots));
        let snapshot = builder.resources(TYPE_URL.into(), self.resources.iter().cloned()).build();
        for node in &self.nodes {
            self.service.cache().set_snapshot(NodeHash::from_id(node), snapshot.clone());
        }
    }
}

impl Server for Nebucloud {
    const DRIVE: &'static str =
        "in memory: its ADS service, without HTTP/2; it pushes nothing, so each stream asks after a change";

    fn new(n: usize, variant: Variant) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let streams = match variant {
            Variant::Delta => Streams::Delta(Vec::new()),
            Variant::Sotw => Streams::Sotw(Vec::new()),
        };
        Ok(Self { runtime: runtime.map_err(|error| error.to_string())?, store: Store::new(n), streams })
    }

    fn open(&mut self) -> Result<Sent, String> {
        let Self { runtime, store, streams } = self;
        match streams {
            Streams::Delta(streams) => runtime.block_on(open(&store.service, streams)),
            Streams::Sotw(streams) => runtime.block_on(open(&store.service, streams)),
        }
    }

    fn change(&mut self, at: usize, round: u8, _: bool) -> Result<Sent, String> {
        let Self { runtime, store, streams } = self;
        store.change(at, round);
        match streams {
            Streams::Delta(streams) => runtime.block_on(ask(streams)),
            Streams::Sotw(streams) => runtime.block_on(ask(streams)),
        }
    }

    fn probes() -> Vec<Probe> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.map(|runtime| runtime.block_on(probes::all())).unwrap_or_default()
    }
}

async fn open<P: Protocol>(service: &AdsService, streams: &mut Vec<Stream<P>>) -> Result<Sent, String> {
    let mut stream = Stream::open(service, P::new()).await.map_err(|status| status.to_string())?;
    let sent = stream.take().await?;
    streams.push(stream);
    Ok(sent)
}

async fn ask<P: Protocol>(streams: &mut [Stream<P>]) -> Result<Sent, String> {
    let mut first = None;
    for stream in streams {
        stream.ask();
        let sent = stream.take().await?;
        first.get_or_insert(sent);
    }
    first.ok_or_else(|| "no stream".into())
}
