//! A stream of its service, without a network: requests are given decoded, and responses are taken as they are.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use prost::Message;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::{DecodeBuf, Decoder};
use tonic::{Request, Status, Streaming};
use xds_server::services::ads::{
    AdsService, AggregatedDiscoveryService, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest,
    DiscoveryResponse,
};
use xds_types::envoy::config::core::v3::Node;

use harness::Sent;
use harness::data::TYPE_URL;

/// The messages of a variant.
pub trait Protocol: Message + Default + Clone + Unpin + 'static {
    type Response: Message + Default + 'static;

    /// Returns a request that answers no response, with a node.
    fn new() -> Self;

    /// Returns the ACK of a response.
    fn ack(response: &Self::Response) -> Self;

    /// Returns a request that a client with the content of this response may send at any time.
    fn again(response: &Self::Response) -> Self;

    fn resources(response: &Self::Response) -> usize;

    #[allow(async_fn_in_trait)]
    async fn call(
        service: &AdsService,
        requests: Streaming<Self>,
    ) -> Result<ReceiverStream<Result<Self::Response, Status>>, Status>;
}

fn node() -> Option<Node> {
    Some(Node { id: crate::NODE.into(), ..Node::default() })
}

impl Protocol for DeltaDiscoveryRequest {
    type Response = DeltaDiscoveryResponse;

    fn new() -> Self {
        Self { node: node(), type_url: TYPE_URL.into(), ..Self::default() }
    }

    fn ack(response: &DeltaDiscoveryResponse) -> Self {
        Self { type_url: TYPE_URL.into(), response_nonce: response.nonce.clone(), ..Self::default() }
    }

    fn again(_: &DeltaDiscoveryResponse) -> Self {
        Self { type_url: TYPE_URL.into(), ..Self::default() }
    }

    fn resources(response: &DeltaDiscoveryResponse) -> usize {
        response.resources.len()
    }

    async fn call(
        service: &AdsService,
        requests: Streaming<Self>,
    ) -> Result<ReceiverStream<Result<DeltaDiscoveryResponse, Status>>, Status> {
        Ok(service.delta_aggregated_resources(Request::new(requests)).await?.into_inner())
    }
}

impl Protocol for DiscoveryRequest {
    type Response = DiscoveryResponse;

    fn new() -> Self {
        Self { node: node(), type_url: TYPE_URL.into(), ..Self::default() }
    }

    fn ack(response: &DiscoveryResponse) -> Self {
        Self {
            version_info: response.version_info.clone(),
            type_url: TYPE_URL.into(),
            response_nonce: response.nonce.clone(),
            ..Self::default()
        }
    }

    fn again(response: &DiscoveryResponse) -> Self {
        Self::ack(response)
    }

    fn resources(response: &DiscoveryResponse) -> usize {
        response.resources.len()
    }

    async fn call(
        service: &AdsService,
        requests: Streaming<Self>,
    ) -> Result<ReceiverStream<Result<DiscoveryResponse, Status>>, Status> {
        Ok(service.stream_aggregated_resources(Request::new(requests)).await?.into_inner())
    }
}

/// A stream, from the client's end.
pub struct Stream<P: Protocol> {
    requests: Arc<Mutex<VecDeque<P>>>,
    bell: mpsc::UnboundedSender<()>,
    responses: ReceiverStream<Result<P::Response, Status>>,
    /// The request that the client may send next.
    again: P,
}

impl<P: Protocol> Stream<P> {
    pub async fn open(service: &AdsService, first: P) -> Result<Self, Status> {
        let requests = Arc::new(Mutex::new(VecDeque::new()));
        let (bell, rings) = mpsc::unbounded_channel();
        let streaming = Streaming::new_request(Ready(requests.clone()), Rings(rings), None, None);
        let responses = P::call(service, streaming).await?;
        let stream = Self { requests, bell, responses, again: first.clone() };
        stream.say(first);
        Ok(stream)
    }

    pub fn say(&self, request: P) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push_back(request);
        let _ = self.bell.send(());
    }

    /// Waits until all requests are processed: once the server has taken a request from the queue, it waits only for
    /// room for a response, of which there is plenty.
    async fn heard(&self) {
        while !self.requests.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            yield_now().await;
        }
    }

    /// Asks whether there is something new.
    pub fn ask(&self) {
        self.say(self.again.clone());
    }

    /// Encodes the next response, and acknowledges it. Returns once the ACK is processed.
    pub async fn take(&mut self) -> Result<Sent, String> {
        let response = self.responses.next().await.ok_or("the stream ended")?.map_err(|status| status.to_string())?;
        let bytes = std::hint::black_box(response.encode_to_vec()).len();
        self.say(P::ack(&response));
        self.heard().await;
        self.again = P::again(&response);
        Ok(Sent { bytes, resources: P::resources(&response) })
    }

    /// Returns the response that arrives within a time.
    pub async fn next(&mut self, within: Duration) -> Option<P::Response> {
        timeout(within, self.responses.next()).await.ok()??.ok()
    }
}

/// Takes requests that are ready; an empty message announces each.
struct Ready<P>(Arc<Mutex<VecDeque<P>>>);

impl<P> Decoder for Ready<P> {
    type Item = P;
    type Error = Status;

    fn decode(&mut self, _: &mut DecodeBuf<'_>) -> Result<Option<P>, Status> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front())
    }
}

/// The body of a call: the header of an empty gRPC message for each ring.
struct Rings(mpsc::UnboundedReceiver<()>);

impl Body for Rings {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|ring| ring.map(|()| Ok(Frame::data(Bytes::from_static(&[0; 5])))))
    }
}
