//! The transport: a stream is a task for each type that its client asks for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use xds_api::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::AggregatedDiscoveryService;
use xds_api::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};

use crate::Planes;
use crate::subscription::Subscription;

pub struct Ads(pub Arc<Planes>);

#[tonic::async_trait]
impl AggregatedDiscoveryService for Ads {
    type StreamAggregatedResourcesStream = ReceiverStream<Result<DiscoveryResponse, Status>>;
    type DeltaAggregatedResourcesStream = ReceiverStream<Result<DeltaDiscoveryResponse, Status>>;

    async fn stream_aggregated_resources(
        &self,
        _: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        Err(Status::unimplemented("rime has no state of the world"))
    }

    async fn delta_aggregated_resources(
        &self,
        requests: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        let (responses, receiver) = mpsc::channel(16);
        tokio::spawn(read(self.0.clone(), requests.into_inner(), responses));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

type Responses = mpsc::Sender<Result<DeltaDiscoveryResponse, Status>>;

/// Passes each request to the task of its type, until the client ends the stream.
async fn read(planes: Arc<Planes>, mut requests: Streaming<DeltaDiscoveryRequest>, responses: Responses) {
    let mut types: HashMap<String, mpsc::UnboundedSender<DeltaDiscoveryRequest>> = HashMap::new();
    let nonces = Arc::new(AtomicU64::new(1));
    while let Some(Ok(request)) = requests.next().await {
        let of = request.type_url.clone();
        if of.is_empty() {
            _ = responses.send(Err(Status::invalid_argument("a request has no type"))).await;
            return;
        }
        let task = types.entry(of.clone()).or_insert_with(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            if let Some(subscription) = Subscription::new(&planes, of) {
                tokio::spawn(serve(subscription, receiver, responses.clone(), nonces.clone()));
            }
            sender
        });
        // A type that is not served gets no response.
        _ = task.send(request);
    }
}

async fn serve(
    mut subscription: Subscription,
    mut requests: mpsc::UnboundedReceiver<DeltaDiscoveryRequest>,
    responses: Responses,
    nonces: Arc<AtomicU64>,
) {
    loop {
        let response = tokio::select! {
            request = requests.recv() => match request {
                Some(request) => subscription.request(request),
                None => return,
            },
            update = subscription.changed() => match update {
                Some(update) => subscription.respond(update, false),
                None => return,
            },
        };
        let Some(mut response) = response else { continue };
        response.nonce = nonces.fetch_add(1, Ordering::Relaxed).to_string();
        subscription.note_sent(&response);
        if responses.send(Ok(response)).await.is_err() {
            return;
        }
    }
}
