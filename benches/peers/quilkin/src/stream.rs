//! A stream of the control plane, from the client's end.

use std::pin::Pin;
use std::time::Duration;

use futures_util::FutureExt;
use harness::Sent;
use harness::data::TYPE_URL;
use prost::Message;
use quilkin_xds::core::Node;
use quilkin_xds::discovery::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
use quilkin_xds::server::ControlPlane;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_stream::{Stream as Responses, StreamExt};
use tonic::Status;

use crate::config::Config;

/// Returns a request that answers no response. Without names, it subscribes to all resources.
pub fn subscribe(names: &[&str]) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(Node { id: "n".into(), ..Node::default() }),
        type_url: TYPE_URL.into(),
        resource_names_subscribe: names.iter().map(ToString::to_string).collect(),
        ..DeltaDiscoveryRequest::default()
    }
}

pub fn ack(nonce: &str) -> DeltaDiscoveryRequest {
    let (type_url, response_nonce) = (TYPE_URL.into(), nonce.into());
    DeltaDiscoveryRequest { type_url, response_nonce, ..DeltaDiscoveryRequest::default() }
}

pub struct Stream {
    requests: mpsc::UnboundedSender<Result<DeltaDiscoveryRequest, Status>>,
    responses: Pin<Box<dyn Responses<Item = Result<DeltaDiscoveryResponse, Status>> + Send>>,
}

impl Stream {
    pub async fn open(plane: &ControlPlane<Config>, first: DeltaDiscoveryRequest) -> Result<Self, String> {
        let (requests, inbound) = mpsc::unbounded_channel();
        let _ = requests.send(Ok(first));
        let responses = plane.delta_aggregated_resources(UnboundedReceiverStream::new(inbound)).await;
        Ok(Self { requests, responses: Box::pin(responses.map_err(|status| status.to_string())?) })
    }

    pub fn say(&self, request: DeltaDiscoveryRequest) {
        let _ = self.requests.send(Ok(request));
    }

    /// Encodes the next response, and acknowledges it. Returns once the ACK is processed.
    pub async fn take(&mut self) -> Result<Sent, String> {
        let response = self.responses.next().await.ok_or("the stream ended")?.map_err(|status| status.to_string())?;
        let bytes = std::hint::black_box(response.encode_to_vec()).len();
        self.say(ack(&response.nonce));
        // The stream reads requests while it is polled for the next response, of which there is none.
        match self.responses.next().now_or_never() {
            None => Ok(Sent { bytes, resources: response.resources.len() }),
            Some(_) => Err("a response that nothing called for".into()),
        }
    }

    /// Returns the response that arrives within a time.
    pub async fn next(&mut self, within: Duration) -> Option<DeltaDiscoveryResponse> {
        timeout(within, self.responses.next()).await.ok()??.ok()
    }
}
