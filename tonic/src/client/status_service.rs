//! The service that shows the status of clients (CSDS).

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use tonic::body::Body;
use tonic::server::NamedService;
use tower_service::Service;
use xds_machine::Status;
use xds_machine::csds::{self, ItemRef, MatcherError};
use xds_machine::message::Node;
use xds_machine::proto::client_status::{TooLong, encode_client};
use xds_machine::service::{self, ClientStatusMethod};

use super::XdsClient;
use crate::client_status::{Answer, RESPONSE_BYTES, call};

/// `ClientStatusDiscoveryService` of the clients of this process: the resources of each, with their status (gRFC A40).
/// A [`tower_service::Service`], for `add_service` of a tonic server or router.
///
/// Contents are shown for clients that [keep](super::Builder::keep_contents) them. A closed client is not shown.
/// Requests with node matchers are refused with INVALID_ARGUMENT, as gRFC A40 says.
///
/// ```no_run
/// use xds_machine::client::Config;
/// use xds_machine::message::Node;
/// use xds_machine_tonic::client::{ClientStatusService, XdsClient, dial};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let server = tonic::transport::Endpoint::from_static("http://127.0.0.1:18000");
/// let client = XdsClient::builder(Config::new(Node::new("n"))).server(dial(server)).keep_contents().start()?;
/// let status = ClientStatusService::new().client("", client.clone());
/// tonic::transport::Server::builder().add_service(status).serve("127.0.0.1:18001".parse()?).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ClientStatusService {
    clients: Arc<Vec<(String, Arc<dyn HasStatus>)>>,
    limit: usize,
}

/// A source of a client's status: an [`XdsClient`], or a program that drives machines itself.
pub trait HasStatus: Send + Sync + 'static {
    /// Returns the status of one moment, as [`StatusRequest::answer`] encodes it; `None` if the client is closed.
    fn status(&self, request: StatusRequest) -> Pin<Box<dyn Future<Output = Option<EncodedStatus>> + Send + '_>>;
}

/// The status of one client, encoded, or why there is none.
pub type EncodedStatus = Result<Bytes, TooLong>;

/// A request for the status of one client.
#[derive(Clone, Debug)]
pub struct StatusRequest {
    pub(super) scope: String,
    pub(super) contents: bool,
    pub(super) limit: usize,
}

impl StatusRequest {
    /// Returns whether the contents of the resources are to be shown.
    pub fn contents(&self) -> bool {
        self.contents
    }

    /// Encodes the status from items that are borrowed from the machine, so that no item of a large client is copied.
    /// `items`: as [`dump`](xds_machine::csds::dump()), [`dump_servers`](xds_machine::csds::dump_servers) or
    /// [`merge`](xds_machine::csds::merge) return them.
    ///
    /// # Errors
    ///
    /// If the status is longer than the limit of the service.
    pub fn answer<'a>(&self, node: Option<&Node>, items: impl IntoIterator<Item = ItemRef<'a>>) -> EncodedStatus {
        encode_client(node, &self.scope, items, self.limit)
    }
}

impl HasStatus for XdsClient {
    fn status(&self, request: StatusRequest) -> Pin<Box<dyn Future<Output = Option<EncodedStatus>> + Send + '_>> {
        Box::pin(self.encoded_status(request))
    }
}

impl ClientStatusService {
    /// Makes a service without clients.
    pub fn new() -> Self {
        Self { clients: Arc::default(), limit: RESPONSE_BYTES }
    }

    /// Adds a client. Its scope distinguishes it from other clients of the same node; in gRPC, the scope is the target
    /// of the channel. A single client may have an empty scope.
    #[must_use]
    pub fn client(mut self, scope: impl Into<String>, client: impl HasStatus) -> Self {
        Arc::make_mut(&mut self.clients).push((scope.into(), Arc::new(client)));
        self
    }

    /// Sets the limit on the size of a response; a longer one ends the call with RESOURCE_EXHAUSTED. Default: 64 MiB.
    #[must_use]
    pub fn max_response_bytes(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    async fn respond(self, request: csds::Request) -> Result<Bytes, Status> {
        if !request.matchers.is_empty() {
            return Err(MatcherError::OfClient.into());
        }
        let (mut parts, mut len, limit) = (Vec::new(), 0, self.limit);
        for (scope, client) in self.clients.iter() {
            let request = StatusRequest { scope: scope.clone(), contents: !request.exclude_contents, limit };
            let Some(part) = client.status(request).await.transpose()? else { continue };
            len += part.len();
            if len > limit {
                return Err(TooLong { len, limit }.into());
            }
            parts.push(part);
        }
        // The response of several clients is the concatenation of the encoded responses of each.
        Ok(if let [only] = &parts[..] { only.clone() } else { parts.concat().into() })
    }
}

impl Answer for ClientStatusService {
    fn answer(&mut self, request: csds::Request) -> Pin<Box<dyn Future<Output = Result<Bytes, Status>> + Send>> {
        Box::pin(self.clone().respond(request))
    }

    fn poll_end(&mut self, _: &mut Context<'_>) -> Poll<Status> {
        Poll::Pending
    }
}

impl Default for ClientStatusService {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ClientStatusService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scopes: Vec<&str> = self.clients.iter().map(|(scope, _)| scope.as_str()).collect();
        f.debug_struct("ClientStatusService").field("scopes", &scopes).field("limit", &self.limit).finish()
    }
}

impl<B> Service<http::Request<B>> for ClientStatusService
where
    B: http_body::Body<Error: Send> + Send + Unpin + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let (head, body) = request.into_parts();
        let served = match ClientStatusMethod::of_path(head.uri.path()) {
            Some(method) => call(method, &head.headers, body, self.clone()),
            None => Err(tonic::Status::unimplemented(format!("no such method: {}", head.uri.path()))),
        };
        ready(Ok(served.unwrap_or_else(|status| status.into_http())))
    }
}

impl NamedService for ClientStatusService {
    const NAME: &'static str = service::CLIENT_STATUS;
}
