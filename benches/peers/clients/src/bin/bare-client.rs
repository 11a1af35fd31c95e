//! The transport alone: a client that reads bytes, and acknowledges them without decoding. The time that the other
//! clients take beyond this is their own.

use std::process::ExitCode;

use benches::alloc;
use benches::data::clusters;
use benches::floor::{SotwRequest, SotwResponse};
use bytes::Bytes;
use harness::Probe;
use prost::Message;
use tokio::sync::mpsc;
use transport::{Client, serve};

#[global_allocator]
static COUNTING: alloc::Counting = alloc::Counting;

fn main() -> ExitCode {
    serve::<Bare>()
}

struct Bare {
    names: mpsc::UnboundedSender<String>,
    responses: mpsc::UnboundedReceiver<usize>,
    round: u8,
}

impl Client for Bare {
    const DRIVE: &'static str = "tonic over loopback: bytes in, an ACK out, nothing decoded";

    async fn new(address: &str) -> Result<Self, String> {
        let (names, wanted) = mpsc::unbounded_channel();
        let (seen, responses) = mpsc::unbounded_channel();
        tokio::spawn(run(address.to_string(), wanted, seen));
        Ok(Self { names, responses, round: 0 })
    }

    async fn watch(&mut self, name: String) {
        let _ = self.names.send(name);
    }

    async fn applied(&mut self, _: usize) -> Result<u8, String> {
        self.responses.recv().await.ok_or("the stream ended")?;
        self.round += 1;
        Ok(self.round - 1)
    }

    async fn probes() -> Vec<Probe> {
        Vec::new()
    }
}

async fn run(address: String, mut wanted: mpsc::UnboundedReceiver<String>, seen: mpsc::UnboundedSender<usize>) {
    let mut names: Vec<String> = wanted.recv().await.into_iter().collect();
    let mut request = |nonce: String, wanted: &mut mpsc::UnboundedReceiver<String>| {
        while let Ok(name) = wanted.try_recv() {
            names.push(name);
        }
        let resource_names = names.iter().filter(|name| !name.is_empty()).cloned().collect();
        let type_url = clusters().to_string();
        let request = SotwRequest { resource_names, type_url, response_nonce: nonce, ..SotwRequest::default() };
        Bytes::from(request.encode_to_vec())
    };
    let (requests, outbound) = mpsc::channel(1);
    let _ = requests.send(request(String::new(), &mut wanted)).await;
    let Ok(mut inbound) = clients::open(address, outbound).await else { return };
    let mut nonce = 0;
    while let Ok(Some(response)) = inbound.message().await {
        let _ = requests.send(request(nonce.to_string(), &mut wanted)).await;
        let _ = seen.send(response.len());
        nonce += 1;
    }
}

// The type of the responses that this client does not decode.
const _: fn() -> SotwResponse = SotwResponse::default;
