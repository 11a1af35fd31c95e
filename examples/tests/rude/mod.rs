//! A server that a test controls in every detail, however rude.

mod codec;

use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};
use tower::Service;
use xds_machine::proto::Wire;

use self::codec::{Chunks, ServerCodec};
use crate::program::soon;

/// A server; the test sends and receives on its streams.
pub struct Rude<V: Wire> {
    pub address: SocketAddr,
    streams: mpsc::UnboundedReceiver<Peer<V>>,
    task: JoinHandle<()>,
}

/// The server's end of a stream.
pub struct Peer<V: Wire> {
    requests: Streaming<V::Request>,
    pub responses: mpsc::Sender<Result<Chunks, Status>>,
    headers: Option<oneshot::Sender<Result<(), Status>>>,
}

impl<V: Wire> Rude<V> {
    pub async fn start() -> Self {
        Self::at(([127, 0, 0, 1], 0).into()).await
    }

    pub async fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, streams) = mpsc::unbounded_channel();
        let service = Ads::<V>(sender, PhantomData);
        let server = Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener));
        let task = tokio::spawn(async move { server.await.expect("serves") });
        Self { address, streams, task }
    }

    /// Stops listening.
    pub async fn stop(mut self) {
        self.task.abort();
        assert!((&mut self.task).await.expect_err("it was aborted").is_cancelled());
    }

    /// Returns the next stream, without sending its headers.
    pub async fn stream(&mut self) -> Peer<V> {
        soon("a stream", self.streams.recv()).await.expect("the server runs")
    }

    /// Returns the next stream, and sends its headers.
    pub async fn accept(&mut self) -> Peer<V> {
        let mut peer = self.stream().await;
        peer.send_headers(Ok(()));
        peer
    }
}

impl<V: Wire> Drop for Rude<V> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<V: Wire> Peer<V> {
    pub fn send_headers(&mut self, headers: Result<(), Status>) {
        _ = self.headers.take().expect("not sent yet").send(headers);
    }

    pub async fn request(&mut self) -> V::Request {
        soon("a request", self.requests.message()).await.expect("a message").expect("one more request")
    }

    pub async fn send(&self, response: impl Into<Bytes>) {
        self.responses.send(Ok(vec![response.into()])).await.expect("the stream lives");
    }
}

struct Ads<V: Wire>(mpsc::UnboundedSender<Peer<V>>, PhantomData<V>);

impl<V: Wire> Clone for Ads<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<V: Wire> NamedService for Ads<V> {
    const NAME: &'static str = "envoy.service.discovery.v3.AggregatedDiscoveryService";
}

type BoxFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl<V: Wire> Service<http::Request<Body>> for Ads<V> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(Grpc::new(ServerCodec::<V>::default()).streaming(service, request).await) })
    }
}

impl<V: Wire> StreamingService<V::Request> for Ads<V> {
    type Response = Chunks;
    type ResponseStream = ReceiverStream<Result<Chunks, Status>>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    fn call(&mut self, request: Request<Streaming<V::Request>>) -> Self::Future {
        let (headers, sent) = oneshot::channel();
        let (responses, outbound) = mpsc::channel(16);
        let peer = Peer { requests: request.into_inner(), responses, headers: Some(headers) };
        let handed_over = self.0.send(peer).is_ok();
        Box::pin(async move {
            assert!(handed_over, "the test waits for streams");
            sent.await.unwrap_or(Ok(()))?;
            Ok(Response::new(ReceiverStream::new(outbound)))
        })
    }
}
