//! The tower service: from a call to the body that serves it.

use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::Response;
use http::header::CONTENT_TYPE;
use tonic::body::Body;
use tonic::metadata::{GRPC_CONTENT_TYPE, MetadataMap};
use tonic::server::NamedService;
use tonic::{Request, Status};
use tower_service::Service;
use xds_machine::proto::Wire;
use xds_machine::server::{Server, Variant};
use xds_machine::service::{self, ClientStatusMethod, Method};
use xds_machine::{Delta, Sotw};
use xds_machine_driver::server::{Responses, Shared, Store};

use super::StreamInfo;
use super::body::ResponseBody;
use super::client_status::StatusCall;
use super::control_plane::Plane;
use super::load::LoadBody;
use super::requests::Requests;
use super::session::Session;
use crate::client_status;
use crate::status::to_tonic;

/// The gRPC service of a [`ControlPlane`](super::ControlPlane): all methods that open xDS streams; CSDS, which shows
/// what each connected node was sent, and with what verdict; and LRS, if the control plane serves load reports. Cheap
/// to clone.
///
/// Use the service as a [`tower_service::Service`], or give it to `add_service` of a tonic server or router. There it
/// receives all calls that no other service takes, so it is added once, whatever is added beside it. It answers a
/// method that does not exist with UNIMPLEMENTED.
pub struct XdsService<S: Store = Shared>(Arc<Plane<S>>);

/// The requirements on the body of a call that is served.
trait Inbound: http_body::Body<Error: Send> + Send + Unpin + 'static {}

impl<B: http_body::Body<Error: Send> + Send + Unpin + 'static> Inbound for B {}

impl<S: Store> XdsService<S> {
    pub(super) fn new(plane: Arc<Plane<S>>) -> Self {
        Self(plane)
    }

    fn answer<B: Inbound>(&self, request: http::Request<B>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let call = Request::from_parts(MetadataMap::from_headers(head.headers), head.extensions, ());
        let peer = call.remote_addr();
        let served = match (Method::of_path(&path), ClientStatusMethod::of_path(&path)) {
            (Some(method), _) => self.open(method, call, body),
            (None, Some(method)) => {
                let answer = StatusCall::open(self.0.clone()).map_err(to_tonic);
                answer.and_then(|answer| client_status::call(method, call.metadata().as_ref(), body, answer))
            }
            (None, None) if path == service::LOAD_REPORTS && self.0.loads.is_some() => self.open_loads(call, body),
            (None, None) => Err(Status::unimplemented(format!("no such method: {path}"))),
        };
        served.unwrap_or_else(|status| {
            if let Some(observer) = &self.0.observer {
                observer.refused(&path, peer, &status);
            }
            status.into_http()
        })
    }

    fn open<B: Inbound>(&self, method: Method, call: Request<()>, body: B) -> Result<Response<Body>, Status> {
        client_status::check_encoding(call.metadata().as_ref())?;
        match method.variant {
            service::Variant::Sotw => self.serve::<Sotw, B>(method, call, body),
            service::Variant::Delta => self.serve::<Delta, B>(method, call, body),
        }
    }

    fn open_loads<B: Inbound>(&self, call: Request<()>, body: B) -> Result<Response<Body>, Status> {
        client_status::check_encoding(call.metadata().as_ref())?;
        let stream = LoadBody::open(self.0.clone(), call.remote_addr(), body).map_err(to_tonic)?;
        Ok(grpc(Body::new(stream)))
    }

    fn serve<V, B>(&self, method: Method, call: Request<()>, body: B) -> Result<Response<Body>, Status>
    where
        V: Wire + Variant,
        V::Request: Send,
        Server<V>: Send + 'static,
        B: Inbound,
    {
        let plane = &self.0;
        let (config, peer) = (plane.config(method), call.remote_addr());
        let open = |id| {
            let server = Arc::new(Mutex::new(Server::<V>::new(config, id)));
            (StreamInfo::new(id, method, peer, server.clone()), server)
        };
        let (stream, server) = plane.add(open).map_err(to_tonic)?;
        let session = Session::open(plane.clone(), stream, call);
        let requests = Requests::new(body, plane.limits.request_bytes);
        let responses = Responses::new(server, requests, session, plane.runtime);
        Ok(grpc(Body::new(ResponseBody::new(responses))))
    }
}

fn grpc(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
    response
}

impl<S, B> Service<http::Request<B>> for XdsService<S>
where
    S: Store,
    B: http_body::Body<Error: Send> + Send + Unpin + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        ready(Ok(self.answer(request)))
    }
}

impl<S: Store> NamedService for XdsService<S> {
    /// A pattern for all names: a tonic router matches the services that it knows by name first.
    const NAME: &'static str = "{service}";
}

impl<S: Store> Clone for XdsService<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Store> fmt::Debug for XdsService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XdsService").finish_non_exhaustive()
    }
}
