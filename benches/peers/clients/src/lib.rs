//! A call of the aggregated service, for our own clients.

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Endpoint;
use tonic::{Request, Status, Streaming};
use transport::codec::{LARGEST, METHOD, Raw};

/// Opens a stream. The first request has to be under way, because a server need not answer before it.
pub async fn open(address: String, requests: mpsc::Receiver<Bytes>) -> Result<Streaming<Bytes>, Status> {
    let endpoint = Endpoint::from_shared(address).map_err(|error| Status::unavailable(error.to_string()))?;
    let channel = endpoint.connect().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let mut grpc = Grpc::new(channel).max_decoding_message_size(LARGEST);
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let requests = Request::new(ReceiverStream::new(requests));
    Ok(grpc.streaming(requests, PathAndQuery::from_static(METHOD), Raw).await?.into_inner())
}
