//! A channel for `xds:///service` that a tonic client uses like a tonic channel: round robin over the endpoints of the
//! first priority that can be used.
//!
//! The rules of gRPC are not here: `xds-machine-grpc` determines which clusters, endpoints and priorities there are,
//! and which of them count; this module makes connections and sends calls. Other parts of a data path (headers and
//! fractions of routes, retries, TLS to endpoints, outlier detection, ..) are left out.
//!
//! ```no_run
//! # async fn example(text: &str) -> Result<(), Box<dyn std::error::Error>> {
//! use examples::xds_channel::{XdsChannel, supports};
//! use xds_machine_grpc::bootstrap::{Bootstrap, Target};
//!
//! let bootstrap = Bootstrap::parse(text, supports)?;
//! let channel = XdsChannel::connect(bootstrap, &Target::parse("xds:///service")?)?;
//! let client = tonic::client::Grpc::new(channel); // or `EchoClient::new(channel)`, of generated code
//! # drop(client);
//! # Ok(())
//! # }
//! ```

mod backend;
mod balancer;
mod driver;
mod priorities;
mod route;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::{Request, Response, Uri, header, uri};
use hyper::body::Incoming;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::body::Body;
use tower::Service;
use xds_machine::service::Variant;
use xds_machine_grpc::bootstrap::{Agent, Bootstrap, CredentialsKind, Era, Target};
use xds_machine_grpc::chain::Chain;
use xds_machine_tonic::client::XdsClient;

use self::balancer::{Balancer, Pick};
use crate::grpc::connect::connector;
use crate::grpc::dns::Dns;

const AGENT: Agent<'static> = Agent { name: "xds_channel", version: env!("CARGO_PKG_VERSION") };

/// Returns whether these credentials of a bootstrap file can be used.
pub fn supports(kind: CredentialsKind<'_>) -> bool {
    matches!(kind, CredentialsKind::Channel("insecure" | "tls"))
}

/// A channel to the endpoints that a control plane names. Clones share all state.
#[derive(Clone)]
pub struct XdsChannel {
    inner: Arc<Inner>,
}

struct Inner {
    authority: uri::Authority,
    balancer: Mutex<Balancer>,
    changed: watch::Receiver<()>,
    driver: Mutex<Option<JoinHandle<()>>>,
}

impl XdsChannel {
    /// Makes the channel, which connects to the control plane at once, and to endpoints with the first calls. Must be
    /// called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// If the bootstrap file has no such authority, or no client can be made of it.
    pub fn connect(bootstrap: Bootstrap, target: &Target) -> Result<Self, String> {
        let listener = bootstrap.listener_of(target).map_err(|error| error.to_string())?;
        let config = bootstrap.servers_config(bootstrap.node(&AGENT), Era::A53);
        let mut client = XdsClient::builder_of(config).ok_or("no servers")?.variant(Variant::Sotw);
        for server in bootstrap.servers() {
            client = client.server(connector(server));
        }
        let client = client.start().map_err(|error| error.to_string())?;
        let authority = target.data_plane_authority();
        let chain = Chain::new(listener, &authority);
        let authority = authority.parse().map_err(|_| format!("{authority} is no authority"))?;
        let (changes, changed) = watch::channel(());
        let dns = Dns::new();
        let balancer = Mutex::new(Balancer::new(changes, dns.again()));
        let inner = Arc::new(Inner { authority, balancer, changed, driver: Mutex::new(None) });
        // The task does not keep the channel alive: dropping the last clone ends the task.
        let (channel, changed) = (Arc::downgrade(&inner), inner.changed.clone());
        let task = tokio::spawn(async move {
            let timers = driver::run_timers(channel.clone(), changed);
            tokio::join!(driver::run(bootstrap, client, chain, dns, channel), timers);
        });
        *inner.driver.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        Ok(Self { inner })
    }
}

impl Inner {
    fn with<T>(&self, use_it: impl FnOnce(&mut Balancer) -> T) -> T {
        use_it(&mut self.balancer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn call(&self, mut request: Request<Body>) -> Result<Response<Incoming>, Status> {
        let mut changed = self.changed.clone();
        let path = request.uri().path().to_owned();
        let target = Uri::builder().scheme("http").authority(self.authority.clone()).path_and_query(path.as_str());
        *request.uri_mut() = target.build().map_err(|error| Status::internal(error.to_string()))?;
        request.headers_mut().remove(header::HOST);
        loop {
            changed.mark_unchanged();
            let mut sender = match self.with(|balancer| balancer.pick(&path)) {
                Pick::Send(sender) => sender,
                Pick::Fail(why) => return Err(Status::unavailable(why)),
                Pick::Wait => {
                    // The timers of priorities make changes too.
                    changed.changed().await.map_err(|_| Status::unavailable("the channel has ended"))?;
                    continue;
                }
            };
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(response),
                // The connection ended before the call was sent: another endpoint can take it.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(Status::unavailable(error.into_error().to_string())),
                },
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let driver = self.driver.get_mut().unwrap_or_else(PoisonError::into_inner);
        driver.take().into_iter().for_each(|task| task.abort());
    }
}

impl Service<Request<Body>> for XdsChannel {
    type Response = Response<Incoming>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Status>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let inner = self.inner.clone();
        Box::pin(async move { inner.call(request).await })
    }
}
