//! A control plane and its clients, over HTTP/2 in one process. The clock is tokio's, paused: no test waits.

#![allow(dead_code)] // each test uses its part

use std::marker::PhantomData;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Status, Streaming};
use xds_machine::message::{Node, delta, sotw};
use xds_machine::proto::Wire;
use xds_machine::server::{Action, Resource};
use xds_machine::service::{Method, Variant};
use xds_machine::{Nonce, TypeUrl, type_url};
use xds_machine_tonic::server::{Observer, Sent, StreamInfo};

/// The limit of any step. Under the paused clock, it has passed as soon as nothing else can happen.
const LONG: Duration = Duration::from_secs(3600);

pub(crate) fn clusters() -> TypeUrl {
    type_url::CLUSTER.into()
}

pub(crate) fn endpoints() -> TypeUrl {
    type_url::ENDPOINT.into()
}

pub(crate) fn resource(name: &str, body: &'static str) -> Resource {
    Resource::new(name, body.as_bytes())
}

pub(crate) fn path(variant: Variant, type_url: Option<&'static str>) -> PathAndQuery {
    let path = Method { variant, type_url }.path().expect("a service");
    path.parse().expect("a path")
}

/// Connects a client to a service, with this window for each stream that the client reads.
pub(crate) async fn connect<S>(service: S, window: u32) -> Channel
where
    S: tower::Service<http::Request<Body>, Response = http::Response<Body>, Error = std::convert::Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
{
    let (near, far) = tokio::io::duplex(64 << 10);
    let incoming = tokio_stream::once(Ok::<_, std::io::Error>(far));
    tokio::spawn(async move { Server::builder().serve_with_incoming(service, incoming).await });
    channel(near, window).await
}

/// Makes a channel of one connection.
pub(crate) async fn channel(near: tokio::io::DuplexStream, window: u32) -> Channel {
    let mut near = Some(TokioIo::new(near));
    let connector = tower::service_fn(move |_| {
        let near = near.take().ok_or_else(|| std::io::Error::other("there is one connection"));
        async { near }
    });
    let endpoint = Endpoint::from_static("http://test").initial_stream_window_size(window);
    endpoint.connect_with_connector(connector).await.expect("a connection")
}

/// The client's end of a stream.
pub(crate) struct Peer<V: Wire> {
    requests: mpsc::Sender<Vec<u8>>,
    responses: Streaming<V::Response>,
}

impl<V: Wire> Peer<V> {
    /// Opens an aggregated stream.
    pub(crate) async fn ads(channel: &Channel) -> Self {
        Self::open(channel, path(V::VARIANT, None)).await.expect("a stream")
    }

    pub(crate) async fn open(channel: &Channel, path: PathAndQuery) -> Result<Self, Status> {
        let (requests, queue) = mpsc::channel(64);
        let mut grpc = Grpc::new(channel.clone());
        grpc.ready().await.expect("a connection");
        let request = Request::new(ReceiverStream::new(queue));
        let responses = grpc.streaming(request, path, Raw::<V>(PhantomData)).await?;
        Ok(Self { requests, responses: responses.into_inner() })
    }

    pub(crate) async fn send(&self, request: V::Request) {
        self.send_bytes(V::encode_request(&request)).await;
    }

    pub(crate) async fn send_bytes(&self, bytes: Vec<u8>) {
        self.requests.send(bytes).await.expect("the stream is open");
    }

    pub(crate) async fn next(&mut self) -> V::Response {
        self.message().await.expect("no error").expect("not the end")
    }

    pub(crate) async fn status(&mut self) -> (tonic::Code, String) {
        let status = self.message().await.map(|_| ()).expect_err("an error");
        (status.code(), status.message().into())
    }

    pub(crate) async fn message(&mut self) -> Result<Option<V::Response>, Status> {
        timeout(LONG, self.responses.message()).await.expect("something comes")
    }

    /// Closes the client's half of the stream.
    pub(crate) fn end(self) -> Streaming<V::Response> {
        self.responses
    }
}

impl Peer<xds_machine::Delta> {
    /// Subscribes as a node.
    pub(crate) async fn subscribe(&self, node: Node, type_url: &str, names: &[&str]) {
        let subscribe = names.iter().map(|name| (*name).into()).collect();
        self.send(delta::Request { node: Some(Arc::new(node)), subscribe, ..delta::Request::new(type_url) }).await;
    }

    /// Receives a response, and returns it and its resources by name and content.
    pub(crate) async fn resources(&mut self) -> (delta::Response, Vec<(String, String)>) {
        let response = self.next().await;
        let resources = response.resources.iter().map(|resource| {
            let body = resource.body.as_ref().expect("content");
            (resource.name.to_string(), String::from_utf8_lossy(&body.value).into_owned())
        });
        let resources = resources.collect();
        (response, resources)
    }

    pub(crate) async fn ack(&self, response: &delta::Response) {
        let request = delta::Request::new(response.type_url.clone());
        self.send(delta::Request { nonce: response.nonce.clone(), ..request }).await;
    }

    pub(crate) async fn nack(&self, response: &delta::Response, message: &str) {
        let request = delta::Request::new(response.type_url.clone());
        let error = Some(xds_machine::Status { code: 3, message: message.into() });
        self.send(delta::Request { nonce: response.nonce.clone(), error, ..request }).await;
    }
}

pub(crate) fn sotw_request(type_url: &str, names: &[&str], nonce: &Nonce) -> sotw::Request {
    let names = names.iter().map(|name| (*name).into()).collect();
    sotw::Request { names, nonce: nonce.clone(), ..sotw::Request::new(type_url) }
}

/// A codec of encoded requests and decoded responses.
struct Raw<V>(PhantomData<V>);

impl<V: Wire> Codec for Raw<V> {
    type Encode = Vec<u8>;
    type Decode = V::Response;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self(PhantomData)
    }

    fn decoder(&mut self) -> Self {
        Self(PhantomData)
    }
}

impl<V> Encoder for Raw<V> {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, bytes: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(&*bytes);
        Ok(())
    }
}

impl<V: Wire> Decoder for Raw<V> {
    type Item = V::Response;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<V::Response>, Status> {
        let bytes: Bytes = from.copy_to_bytes(from.remaining());
        V::decode_response(bytes).map(Some).map_err(|error| Status::data_loss(error.to_string()))
    }
}

/// An observer that notes each event in a line. Clones share the notes.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>, Arc<tokio::sync::Notify>);

impl Notes {
    fn note(&self, line: String) {
        self.0.lock().expect("no panic").push(line);
        self.1.notify_waiters();
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }

    /// Waits until at least `count` lines contain a text.
    pub(crate) async fn wait(&self, text: &str, count: usize) {
        let noted = async {
            loop {
                let mut next = pin!(self.1.notified());
                next.as_mut().enable();
                if self.all().iter().filter(|line| line.contains(text)).count() >= count {
                    return;
                }
                next.await;
            }
        };
        timeout(LONG, noted).await.unwrap_or_else(|_| panic!("{count} of {text:?} in {:#?}", self.all()));
    }
}

fn short(type_url: &TypeUrl) -> &str {
    type_url.as_str().rsplit('.').next().unwrap_or_default()
}

impl Observer for Notes {
    fn opened(&self, stream: &StreamInfo) {
        self.note(format!("{} opened", stream.id().0));
    }

    fn refused(&self, path: &str, _: Option<std::net::SocketAddr>, status: &Status) {
        self.note(format!("refused {path}: {:?} {}", status.code(), status.message()));
    }

    fn request(&self, stream: &StreamInfo) {
        self.note(format!("{} request", stream.id().0));
    }

    fn action(&self, stream: &StreamInfo, action: &Action) {
        let action = match action {
            Action::Node(node) => format!("node {}", node.id),
            Action::Subscribed { type_url, wildcard, .. } => {
                let interest = stream.interest(type_url).expect("it was requested");
                let names: Vec<_> = interest.names().map(|name| name.as_str()).collect();
                format!("subscribed {} {names:?} wildcard {wildcard}", short(type_url))
            }
            Action::Ack { type_url, nonce, .. } => format!("ack {} {nonce}", short(type_url)),
            Action::Nack { type_url, nonce, error, .. } => {
                format!("nack {} {nonce} {}", short(type_url), error.message)
            }
            Action::DropStale { type_url, nonce, .. } => format!("stale {} {nonce}", short(type_url)),
            other => format!("{other:?}"),
        };
        let group = stream.group().unwrap_or("-");
        self.note(format!("{} {action} in {group}", stream.id().0));
    }

    fn sent(&self, stream: &StreamInfo, response: &dyn Sent) {
        let names: Vec<_> = response.resources().map(|resource| resource.name().as_str()).collect();
        let (of, nonce, removed) = (short(response.type_url()), response.nonce(), response.removed().len());
        self.note(format!("{} sent {of} {nonce} {names:?} removed {removed}", stream.id().0));
    }

    fn closed(&self, stream: &StreamInfo, status: &Status) {
        self.note(format!("{} closed {:?} {}", stream.id().0, status.code(), status.message()));
    }
}
