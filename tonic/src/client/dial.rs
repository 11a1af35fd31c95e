//! Connections of tonic's [`Endpoint`] that are given up when the server is silent.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower_service::Service;

use super::connect::Connect;

/// The default of [`Dial::with_patience`].
const PATIENCE: Duration = Duration::from_secs(5);

/// The interval and the time-out of keepalive pings. The interval is long, because many gRPC servers close a connection
/// that pings more often.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Connects to an endpoint over TCP, and TLS if the endpoint has it.
///
/// A server that accepts the connection and then sends no byte is given up after [a time](Dial::with_patience); waiting
/// for the response headers instead would be wrong, because many servers send them only with their first response. (Over
/// TLS, the server's part of the handshake counts as its first byte.) Keepalive pings, every 30 s, detect a connection
/// that is lost silently.
pub fn dial(endpoint: Endpoint) -> Dial {
    let (interval, timeout) = KEEPALIVE;
    let endpoint = endpoint.http2_keep_alive_interval(interval).keep_alive_timeout(timeout);
    Dial { endpoint, patience: PATIENCE, transport: None }
}

/// Connects to an [`Endpoint`]: see [`dial`].
#[derive(Clone, Debug)]
pub struct Dial {
    endpoint: Endpoint,
    patience: Duration,
    transport: Option<Transport>,
}

/// Opens the bytes of a connection in another way than over TCP to the endpoint's address.
#[derive(Clone)]
struct Transport(Arc<dyn Fn() -> Opening + Send + Sync>);

/// A connection that is being made.
type Opening = BoxFuture<io::Result<Box<dyn Stream>>>;

/// The bytes of a connection.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

impl Dial {
    /// Opens the bytes of each connection with a function, for example of a Unix socket, and not over TCP to the
    /// endpoint's address, which then is only the authority of the calls and the name in the server's certificate. TLS
    /// and the time limits are as without it.
    #[must_use]
    pub fn with_transport<F, C, T>(mut self, open: F) -> Self
    where
        F: Fn() -> C + Send + Sync + 'static,
        C: Future<Output = io::Result<T>> + Send + 'static,
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let open = move || -> Opening {
            let opening = open();
            Box::pin(async move { Ok(Box::new(opening.await?) as Box<dyn Stream>) })
        };
        self.transport = Some(Transport(Arc::new(open)));
        self
    }

    /// Sets the time for connecting, and then for the server's first byte. An HTTP/2 server sends its settings at once.
    /// Default: 5 s.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets the interval and the time-out of keepalive pings, for servers that allow other pings. Default: every 30 s,
    /// answered within 10 s.
    #[must_use]
    pub fn with_keepalive(mut self, interval: Duration, timeout: Duration) -> Self {
        self.endpoint = self.endpoint.http2_keep_alive_interval(interval).keep_alive_timeout(timeout);
        self
    }
}

impl Connect for Dial {
    type Service = Impatient;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Impatient, BoxError>> + Send>>;

    fn connect(&mut self) -> Self::Future {
        let Self { endpoint, patience, transport } = self.clone();
        Box::pin(async move {
            let heard = Arc::new(AtomicBool::new(false));
            let mut http = HttpConnector::new();
            http.enforce_http(false);
            http.set_nodelay(endpoint.get_tcp_nodelay());
            http.set_keepalive(endpoint.get_tcp_keepalive());
            http.set_keepalive_interval(endpoint.get_tcp_keepalive_interval());
            http.set_keepalive_retries(endpoint.get_tcp_keepalive_retries());
            let timeout = endpoint.get_connect_timeout().map_or(patience, |timeout| timeout.min(patience));
            let endpoint = endpoint.connect_timeout(timeout);
            let channel = endpoint.connect_with_connector(Listener { http, transport, heard: heard.clone() }).await?;
            Ok(Impatient { channel, heard, patience })
        })
    }
}

impl Connect for Endpoint {
    type Service = Impatient;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Impatient, BoxError>> + Send>>;

    fn connect(&mut self) -> Self::Future {
        Connect::connect(&mut dial(self.clone()))
    }
}

/// A channel that gives up a server that is silent: see [`dial`].
#[derive(Clone, Debug)]
pub struct Impatient {
    channel: Channel,
    heard: Arc<AtomicBool>,
    patience: Duration,
}

/// The server took a connection and sent nothing.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the server accepts connections and is silent")]
struct Silent;

impl Service<http::Request<Body>> for Impatient {
    type Response = http::Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Service::poll_ready(&mut self.channel, cx).map_err(Into::into)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let response = Box::pin(Service::call(&mut self.channel, request));
        Box::pin(Answer { response, heard: self.heard.clone(), patience: Some(Box::pin(sleep(self.patience))) })
    }
}

/// Waits for a response; fails if the server has sent no byte when the patience is over.
struct Answer<F> {
    response: Pin<Box<F>>,
    heard: Arc<AtomicBool>,
    patience: Option<Pin<Box<Sleep>>>,
}

impl<F, T, E> Future for Answer<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(response) = self.response.as_mut().poll(cx) {
            return Poll::Ready(response.map_err(Into::into));
        }
        if self.patience.as_mut().is_some_and(|patience| patience.as_mut().poll(cx).is_ready()) {
            self.patience = None;
            if !self.heard.load(Ordering::Relaxed) {
                return Poll::Ready(Err(Silent.into()));
            }
        }
        Poll::Pending
    }
}

/// Connects, and listens for the first byte.
#[derive(Clone)]
struct Listener {
    http: HttpConnector,
    transport: Option<Transport>,
    heard: Arc<AtomicBool>,
}

impl Service<Uri> for Listener {
    type Response = TokioIo<Listening>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let heard = self.heard.clone();
        if let Some(Transport(open)) = &self.transport {
            let opening = open();
            return Box::pin(async move { Ok(TokioIo::new(Listening { stream: opening.await?, heard })) });
        }
        let connecting = self.http.call(uri);
        Box::pin(async move {
            let stream = connecting.await.map_err(|error| root(&error))?.into_inner();
            Ok(TokioIo::new(Listening { stream: Box::new(stream), heard }))
        })
    }
}

/// Returns the first cause of a failed connection: the connector's own errors only repeat where it happened.
fn root(error: &(dyn std::error::Error + 'static)) -> io::Error {
    let causes = std::iter::successors(Some(error), |error| error.source());
    io::Error::other(causes.last().map_or_else(|| error.to_string(), ToString::to_string))
}

struct Listening {
    stream: Box<dyn Stream>,
    heard: Arc<AtomicBool>,
}

impl AsyncRead for Listening {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, to);
        if to.filled().len() > before {
            self.heard.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for Listening {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
