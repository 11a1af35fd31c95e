//! Polls over REST-JSON, on the port of the gRPC services.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic::transport::server::TcpConnectInfo;
use tower::Service;
use xds_machine::message::sotw;
use xds_machine::poll::{self, Reply};
use xds_machine::{Code, ResourceName, service};
use xds_machine_tonic::server::{ControlPlane, Store, XdsService};

use super::about::About;
use super::log::{Event, List, Log};
use crate::json;

/// The longest body of a request. An Envoy's has 77 kB.
const LIMIT: usize = 8 << 20;

/// The time within which a body has to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest hold of a poll.
const LONGEST_HOLD: Duration = Duration::from_secs(3600);

/// The header that states how long a client waits for the answer, in milliseconds.
const EXPECTED: &str = "x-envoy-expected-rq-timeout-ms";

/// The services of a control plane: gRPC, and polls over REST.
pub struct Front<S: Store> {
    grpc: XdsService<S>,
    about: About,
    rest: Rest<S>,
}

/// Answers polls.
struct Rest<S: Store> {
    plane: ControlPlane<S>,
    log: Log,
    left_out: Arc<LeftOut>,
}

/// The resources that were left out of answers, each of which is said once.
#[derive(Default)]
struct LeftOut(Mutex<BTreeSet<String>>);

impl LeftOut {
    /// The number of lines that are remembered.
    const LIMIT: usize = 1000;

    fn say(&self, line: String) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.contains(&line) {
            return;
        }
        if said.len() == Self::LIMIT {
            said.clear();
        }
        tracing::warn!("{line} (it is left out of answers over REST)");
        said.insert(line);
    }
}

/// What a poll asks for, for the log.
#[derive(Default)]
struct Asked {
    names: Vec<ResourceName>,
    node: String,
    version: String,
}

/// An answer without a message.
struct Refused(StatusCode, String);

impl<S: Store> Front<S> {
    pub fn new(plane: ControlPlane<S>, log: Log, about: About) -> Self {
        Self { grpc: plane.service(), about, rest: Rest { plane, log, left_out: Arc::default() } }
    }
}

impl<S: Store> Service<Request<Body>> for Front<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        if is_method(path) {
            if let Some(refusal) = no_call(&request) {
                return Box::pin(async { Ok(refusal) });
            }
            if About::has(path) {
                let about = self.about.clone();
                return Box::pin(async move { Ok(about.answer(request).await) });
            }
            return Box::pin(self.grpc.call(request));
        }
        let rest = self.rest.clone();
        Box::pin(async move { Ok(rest.answer(request).await) })
    }
}

impl<S: Store> Rest<S> {
    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let Some(type_url) = service::type_of_rest_path(request.uri().path()) else {
            return text(StatusCode::NOT_FOUND, format!("no such path: {}", request.uri().path()));
        };
        let peer = request.extensions().get::<TcpConnectInfo>().and_then(TcpConnectInfo::remote_addr);
        let mut asked = Asked::default();
        let response = match self.poll(type_url, request, &mut asked).await {
            Ok(response) => response,
            Err(Refused(status, why)) => {
                let mut response = text(status, why);
                if status == StatusCode::SERVICE_UNAVAILABLE {
                    response.headers_mut().insert(RETRY_AFTER, http::HeaderValue::from_static("1"));
                }
                response
            }
        };
        self.log(peer, type_url, &asked, response.status());
        response
    }

    async fn poll(&self, type_url: &str, request: Request<Body>, asked: &mut Asked) -> Result<Response<Body>, Refused> {
        if request.method() != Method::POST {
            return Err(Refused(StatusCode::METHOD_NOT_ALLOWED, "polls are posted".into()));
        }
        let (head, body) = request.into_parts();
        let hold = hold(&head.headers)?;
        let body = read(&head.headers, body).await?;
        let bad = |why: String| Refused(StatusCode::BAD_REQUEST, format!("no DiscoveryRequest: {why}"));
        let mut message: sotw::Request = json::read_request(&body).map_err(bad)?;
        message.names.sort_unstable();
        asked.names.clone_from(&message.names);
        asked.node = message.node.as_ref().map(|node| node.id.clone()).unwrap_or_default();
        asked.version = message.version.as_str().to_owned();
        // R-REST-30: the type is that of the path.
        let said = message.type_url.as_str();
        if !said.is_empty() && said != type_url {
            return Err(bad(format!("its type is {said}, that of the path is {type_url}")));
        }
        message.type_url = type_url.into();
        let call = tonic::Request::from_parts(MetadataMap::from_headers(head.headers), head.extensions, ());
        let reply = self.plane.poll(call, message, hold).await;
        match reply.map_err(refused)? {
            Reply::Response(response) => {
                let written = json::write_response(&response).map_err(|why| {
                    tracing::warn!("a response for {type_url} can't be written as JSON: {why}");
                    Refused(StatusCode::INTERNAL_SERVER_ERROR, why)
                })?;
                written.left_out.into_iter().for_each(|line| self.left_out.say(line));
                let mut response = Response::new(full(written.json));
                response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
                Ok(response)
            }
            Reply::NotModified => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                Ok(response)
            }
            Reply::Unknown => {
                let why = "nothing is known yet of what was asked for";
                Err(Refused(StatusCode::SERVICE_UNAVAILABLE, why.into()))
            }
            Reply::Refused(status) => {
                let too_much = status.is(Code::ResourceExhausted);
                let code = if too_much { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
                Err(Refused(code, status.message))
            }
        }
    }

    fn log(&self, peer: Option<SocketAddr>, type_url: &str, asked: &Asked, status: StatusCode) {
        self.log.event(Event {
            peer,
            node: Some((&asked.node).into()),
            type_url: Some(type_url.into()),
            version: Some((&asked.version).into()),
            names: Some(List::of(asked.names.len(), asked.names.iter().map(ResourceName::as_str))),
            status: Some(status.as_u16()),
            ..Event::new("poll")
        });
    }
}

/// Returns whether a path is that of a gRPC method: `/package.Service/Method`.
fn is_method(path: &str) -> bool {
    let service = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    service.is_some_and(|(service, method)| service.contains('.') && !method.contains('/'))
}

/// Returns the refusal of a request that is no gRPC call.
fn no_call(request: &Request<Body>) -> Option<Response<Body>> {
    if request.method() != Method::POST {
        return Some(text(StatusCode::METHOD_NOT_ALLOWED, "calls are posted".into()));
    }
    let kind = request.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes().strip_prefix(b"application/grpc"));
    match kind {
        Some(Some([] | [b'+' | b';', ..])) => None,
        _ => Some(text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type of a call is application/grpc".into())),
    }
}

/// Returns how long the poll may be held for the client.
fn hold(headers: &HeaderMap) -> Result<Duration, Refused> {
    let Some(expected) = headers.get(EXPECTED) else { return Ok(Duration::ZERO) };
    let millis = expected.to_str().ok().and_then(|millis| millis.trim().parse().ok());
    let bad = || Refused(StatusCode::BAD_REQUEST, format!("{EXPECTED} must be a number of milliseconds"));
    Ok(poll::hold(Duration::from_millis(millis.ok_or_else(bad)?)).min(LONGEST_HOLD))
}

/// Reads a body of limited size.
async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Refused> {
    let too_large = || Refused(StatusCode::PAYLOAD_TOO_LARGE, format!("a body of more than {LIMIT} bytes"));
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > LIMIT) {
        return Err(too_large());
    }
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a body must not be compressed".into()));
    }
    let collected = tokio::time::timeout(PATIENCE, Limited::new(body, LIMIT).collect()).await;
    let late = |_| Refused(StatusCode::REQUEST_TIMEOUT, format!("no body within {PATIENCE:?}"));
    match collected.map_err(late)? {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) => Err(Refused(StatusCode::BAD_REQUEST, format!("the body broke off: {error}"))),
    }
}

fn refused(status: tonic::Status) -> Refused {
    let code = match status.code() {
        tonic::Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        tonic::Code::PermissionDenied => StatusCode::FORBIDDEN,
        tonic::Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        tonic::Code::InvalidArgument => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Refused(code, status.message().into())
}

fn text(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(full(text + "\n"));
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, http::HeaderValue::from_static("POST"));
    }
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn full(body: impl Into<Bytes>) -> Body {
    Body::new(Full::new(body.into()))
}

impl<S: Store> Clone for Front<S> {
    fn clone(&self) -> Self {
        Self { grpc: self.grpc.clone(), about: self.about.clone(), rest: self.rest.clone() }
    }
}

impl<S: Store> Clone for Rest<S> {
    fn clone(&self) -> Self {
        Self { plane: self.plane.clone(), log: self.log.clone(), left_out: self.left_out.clone() }
    }
}
