//! The bare server behind tonic's transport: what an idle stream costs before anything of this crate runs.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::{Request, Response};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tower_service::Service;

use super::bare::Shared;

#[derive(Clone)]
struct Bare(Shared);

impl Service<Request<Body>> for Bare {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        ready(Ok(self.0.answer(request.into_body()).map(Body::new)))
    }
}

impl NamedService for Bare {
    const NAME: &'static str = "{service}";
}

/// Accepts connections for ever.
pub(super) async fn serve(listener: TcpListener, shared: Shared) -> Result<(), tonic::transport::Error> {
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Server::builder().add_service(Bare(shared)).serve_with_incoming(incoming).await
}
