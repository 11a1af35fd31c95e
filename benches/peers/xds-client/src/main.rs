//! `xds-client`, of tonic, with its own transport and codec.

mod probes;

use std::process::ExitCode;

use benches::alloc;
use bytes::Bytes;
use harness::Probe;
use harness::data::TYPE_URL;
use tokio::sync::mpsc;
use transport::codec::LARGEST;
use transport::serve;
use xds_client::resource::TypeUrl;
use xds_client::{
    ClientConfig, Node, ProstCodec, Resource, ResourceEvent, ResourceWatcher, TokioRuntime, TonicTransportBuilder,
    XdsClient,
};

#[global_allocator]
static COUNTING: alloc::Counting = alloc::Counting;

fn main() -> ExitCode {
    serve::<Peer>()
}

/// A resource, of which only the name is decoded.
#[derive(Debug)]
pub struct Cluster(Bytes);

impl Resource for Cluster {
    type Message = Bytes;
    const TYPE_URL: TypeUrl = TypeUrl::new(TYPE_URL);

    fn deserialize(bytes: Bytes) -> xds_client::Result<Bytes> {
        Ok(bytes)
    }

    fn name(body: &Bytes) -> &str {
        let length = body.get(1).map_or(0, |length| usize::from(*length));
        body.get(2..2 + length).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
    }

    fn validate(body: Bytes) -> xds_client::Result<Self> {
        Ok(Self(body))
    }
}

pub fn client(config: ClientConfig, transport: TonicTransportBuilder) -> XdsClient {
    XdsClient::builder(config, transport, ProstCodec, TokioRuntime).build()
}

struct Peer {
    client: XdsClient,
    seen: mpsc::UnboundedSender<Result<u8, String>>,
    events: mpsc::UnboundedReceiver<Result<u8, String>>,
}

impl transport::Client for Peer {
    const DRIVE: &'static str =
        "tonic over loopback: its own transport (limit of a message raised), a task for each watcher";

    async fn new(address: &str) -> Result<Self, String> {
        let transport = TonicTransportBuilder::new().with_max_decoding_message_size(LARGEST);
        let (seen, events) = mpsc::unbounded_channel();
        Ok(Self { client: client(ClientConfig::new(Node::new("peers", "1"), address), transport), seen, events })
    }

    async fn watch(&mut self, name: String) {
        let watcher = self.client.watch::<Cluster>(name).await;
        tokio::spawn(look(watcher, self.seen.clone()));
    }

    async fn applied(&mut self, resources: usize) -> Result<u8, String> {
        let mut newest = 0;
        for _ in 0..resources {
            newest = newest.max(self.events.recv().await.ok_or("nobody watches")??);
        }
        Ok(newest)
    }

    async fn probes() -> Vec<Probe> {
        probes::all().await
    }
}

/// Receives events, and reports the round of each.
async fn look(mut watcher: ResourceWatcher<Cluster>, seen: mpsc::UnboundedSender<Result<u8, String>>) {
    while let Some(event) = watcher.next().await {
        let round = match event {
            ResourceEvent::ResourceChanged { result: Ok(cluster), .. } => Ok(cluster.0.last().copied().unwrap_or(0)),
            ResourceEvent::ResourceChanged { result: Err(error), .. } | ResourceEvent::AmbientError { error, .. } => {
                Err(error.to_string())
            }
        };
        if seen.send(round).is_err() {
            return;
        }
    }
}
