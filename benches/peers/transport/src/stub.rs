//! A server on a thread of its own. It sends the responses that it is given, and reports what arrives.

use std::convert::Infallible;
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::server::Grpc;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::codec::{LARGEST, Raw};

/// An event at the server.
#[derive(Clone, Debug)]
pub enum Report {
    Opened,
    Request(Said),
    Closed,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Said {
    pub names: Vec<String>,
    pub nonce: String,
    pub rejected: bool,
    /// The length of the encoded request.
    pub bytes: usize,
}

#[derive(Clone, PartialEq, Message)]
struct DiscoveryRequest {
    #[prost(string, repeated, tag = "3")]
    names: Vec<String>,
    #[prost(string, tag = "5")]
    nonce: String,
    #[prost(bytes = "bytes", optional, tag = "6")]
    error: Option<Bytes>,
}

/// The client's end of the server.
#[derive(Debug)]
pub struct Stub {
    pub address: String,
    responses: mpsc::UnboundedSender<Bytes>,
    reports: mpsc::UnboundedReceiver<Report>,
}

impl Stub {
    pub async fn start() -> Result<Self, String> {
        let (responses, given) = mpsc::unbounded_channel();
        let (report, reports) = mpsc::unbounded_channel();
        let (bound, address) = oneshot::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(listen(bound, given, report));
        });
        let address = address.await.map_err(|_| "the server does not start")?;
        Ok(Self { address, responses, reports })
    }

    pub fn respond(&self, response: Bytes) {
        let _ = self.responses.send(response);
    }

    pub async fn report(&mut self) -> Report {
        self.reports.recv().await.unwrap_or(Report::Closed)
    }

    /// Waits for the next request, and skips other reports.
    pub async fn request(&mut self) -> Said {
        loop {
            if let Report::Request(said) = self.report().await {
                return said;
            }
        }
    }

    /// Waits until the response with this nonce is acknowledged.
    pub async fn acknowledged(&mut self, nonce: &str) -> Result<(), String> {
        loop {
            match self.report().await {
                Report::Request(said) if said.nonce == nonce && said.rejected => return Err("it rejects".into()),
                Report::Request(said) if said.nonce == nonce => return Ok(()),
                Report::Request(_) | Report::Opened => {}
                Report::Closed => return Err(format!("it breaks off before the ACK of {nonce:?}")),
            }
        }
    }
}

type Given = Arc<Mutex<mpsc::UnboundedReceiver<Bytes>>>;

async fn listen(
    bound: oneshot::Sender<String>,
    given: mpsc::UnboundedReceiver<Bytes>,
    report: mpsc::UnboundedSender<Report>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let _ = bound.send(format!("http://{}", listener.local_addr().expect("an address")));
    let given: Given = Arc::new(Mutex::new(given));
    let service = tower::service_fn(move |request: http::Request<tonic::body::Body>| {
        let (given, report) = (given.clone(), report.clone());
        async move { Ok::<_, Infallible>(call(given, report, request).await) }
    });
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let _ = tonic::transport::Server::builder().serve_with_incoming(service, incoming).await;
}

async fn call(
    given: Given,
    report: mpsc::UnboundedSender<Report>,
    request: http::Request<tonic::body::Body>,
) -> http::Response<tonic::body::Body> {
    let handler = tower::service_fn(move |request: Request<Streaming<Bytes>>| {
        let (responses, stream) = mpsc::channel(1);
        tokio::spawn(converse(given.clone(), report.clone(), request.into_inner(), responses));
        async { Ok::<_, Status>(Response::new(ReceiverStream::new(stream))) }
    });
    Grpc::new(Raw).max_decoding_message_size(LARGEST).streaming(handler, request).await
}

async fn converse(
    given: Given,
    report: mpsc::UnboundedSender<Report>,
    mut requests: Streaming<Bytes>,
    responses: mpsc::Sender<Result<Bytes, Status>>,
) {
    let _ = report.send(Report::Opened);
    let mut given = given.lock().await;
    loop {
        tokio::select! {
            response = given.recv() => match response {
                Some(response) => _ = responses.send(Ok(response)).await,
                None => return,
            },
            request = requests.message() => match request {
                Ok(Some(bytes)) => {
                    let length = bytes.len();
                    let DiscoveryRequest { names, nonce, error } = DiscoveryRequest::decode(bytes).unwrap_or_default();
                    let said = Said { names, nonce, rejected: error.is_some(), bytes: length };
                    let _ = report.send(Report::Request(said));
                }
                Ok(None) | Err(_) => break,
            },
        }
    }
    let _ = report.send(Report::Closed);
}
