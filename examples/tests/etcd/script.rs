//! An etcd that sends the messages of a test.

use std::future::Future;
use std::time::Duration;

use axum::extract::Request as HttpRequest;
use examples::control_plane::etcd::generated::{
    AuthenticateRequest, AuthenticateResponse, Event, KeyValue, RangeRequest, RangeResponse, ResponseHeader,
    WatchCreateRequest, WatchRequest, WatchResponse, watch_request::RequestUnion,
};
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic::server::Grpc;
use tonic::service::Routes;
use tonic::transport::{Server, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

/// The time limit for any step.
const LIMIT: Duration = Duration::from_secs(40);

pub async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, event).await.unwrap_or_else(|_| panic!("{what} did not come"))
}

/// A call that waits for the test's answer.
pub enum Call {
    Range(RangeRequest, Answer<RangeResponse>),
    Watch(Streaming<WatchRequest>, Answer<ReceiverStream<Result<WatchResponse, Status>>>),
    Authenticate(AuthenticateRequest, Answer<AuthenticateResponse>),
}

type Answer<T> = oneshot::Sender<Result<T, Status>>;
type Calls = mpsc::UnboundedSender<(MetadataMap, Call)>;

/// The server.
pub struct Etcd {
    pub url: String,
    calls: mpsc::UnboundedReceiver<(MetadataMap, Call)>,
    task: JoinHandle<()>,
    /// The identity, the revision and the term in all headers.
    pub header: ResponseHeader,
}

/// The server's end of a watch.
pub struct Watch {
    pub create: WatchCreateRequest,
    _requests: Streaming<WatchRequest>,
    responses: mpsc::Sender<Result<WatchResponse, Status>>,
}

impl Etcd {
    pub async fn start() -> Self {
        Self::start_with(None).await
    }

    pub async fn start_with(tls: Option<ServerTlsConfig>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().expect("an address"));
        let (sender, calls) = mpsc::unbounded_channel();
        let router = axum::Router::new().fallback(move |request: HttpRequest| serve(sender.clone(), request));
        let mut server = Server::builder();
        if let Some(tls) = tls {
            server = server.tls_config(tls).expect("good files");
        }
        let serving = server.add_routes(Routes::from(router)).serve_with_incoming(TcpListenerStream::new(listener));
        let task = tokio::spawn(async move { serving.await.expect("serves") });
        let header = ResponseHeader { cluster_id: 7, revision: 1, raft_term: 2, member_id: 1 };
        Self { url, calls, task, header }
    }

    /// Waits for the next call.
    pub async fn call(&mut self) -> (MetadataMap, Call) {
        soon("a call", self.calls.recv()).await.expect("the server runs")
    }

    /// Waits for a call of Range.
    pub async fn range(&mut self) -> (RangeRequest, Answer<RangeResponse>) {
        match self.call().await.1 {
            Call::Range(request, answer) => (request, answer),
            Call::Watch(..) => panic!("a watch instead of a range"),
            Call::Authenticate(..) => panic!("a login instead of a range"),
        }
    }

    /// Answers a listing of one page at a revision.
    pub async fn list(&mut self, revision: i64, kvs: Vec<KeyValue>) -> RangeRequest {
        self.header.revision = revision;
        let (request, answer) = self.range().await;
        let _ = answer.send(Ok(RangeResponse { header: Some(self.header), kvs, more: false }));
        request
    }

    /// Answers the request for the agreed revision, which precedes a watch that continues.
    pub async fn look(&mut self, revision: i64) {
        let request = self.list(revision, Vec::new()).await;
        assert!(request.keys_only && request.limit == 1, "{request:?}");
    }

    /// Accepts a watch, and reports that it has begun.
    pub async fn watch(&mut self) -> Watch {
        let (metadata, call) = self.call().await;
        let Call::Watch(mut requests, answer) = call else { panic!("a range or a login instead of a watch") };
        assert_eq!(metadata.get("hasleader").map(|value| value.as_bytes()), Some(&b"true"[..]));
        let request = soon("a request", requests.message()).await.expect("a message").expect("one request");
        let Some(RequestUnion::CreateRequest(create)) = request.request_union else { panic!("{request:?}") };
        let (responses, outbound) = mpsc::channel(16);
        let _ = answer.send(Ok(ReceiverStream::new(outbound)));
        let watch = Watch { create, _requests: requests, responses };
        watch.say(WatchResponse { created: true, header: Some(self.header), ..WatchResponse::default() }).await;
        watch
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watch {
    pub async fn say(&self, response: WatchResponse) {
        self.responses.send(Ok(response)).await.expect("the watch lives");
    }

    pub async fn events(&self, events: Vec<Event>) {
        self.say(WatchResponse { events, ..WatchResponse::default() }).await;
    }

    /// Ends the watch with an error.
    pub async fn fail(self, status: Status) {
        self.responses.send(Err(status)).await.expect("the watch lives");
    }
}

async fn serve(calls: Calls, request: HttpRequest) -> http::Response<Body> {
    match request.uri().path() {
        "/etcdserverpb.KV/Range" => unary(request, calls, Call::Range).await,
        "/etcdserverpb.Auth/Authenticate" => unary(request, calls, Call::Authenticate).await,
        "/etcdserverpb.Watch/Watch" => {
            let watch = service_fn(move |request: Request<Streaming<WatchRequest>>| {
                hand_over(request, calls.clone(), Call::Watch)
            });
            Grpc::new(ProstCodec::<WatchResponse, WatchRequest>::default()).streaming(watch, request).await
        }
        path => panic!("etcd has no {path} here"),
    }
}

async fn unary<Q, A>(request: HttpRequest, calls: Calls, call: fn(Q, Answer<A>) -> Call) -> http::Response<Body>
where
    Q: Message + Default + Send + 'static,
    A: Message + Default + Send + 'static,
{
    let service = service_fn(move |request: Request<Q>| hand_over(request, calls.clone(), call));
    Grpc::new(ProstCodec::<A, Q>::default()).unary(service, request).await
}

async fn hand_over<Q, A>(
    request: Request<Q>,
    calls: Calls,
    call: fn(Q, Answer<A>) -> Call,
) -> Result<Response<A>, Status> {
    let (answer, answered) = oneshot::channel();
    let (metadata, _, message) = request.into_parts();
    calls.send((metadata, call(message, answer))).expect("the test waits for calls");
    answered.await.unwrap_or_else(|_| Err(Status::unavailable("the test has no answer"))).map(Response::new)
}
