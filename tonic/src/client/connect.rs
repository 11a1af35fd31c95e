//! Connections: the trait that the user implements, and the form that a stream needs.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;

use bytes::Bytes;
use tonic::body::Body;
use tonic::client::GrpcService;

type BoxError = Box<dyn Error + Send + Sync>;
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Connects to a server, once for each stream.
///
/// Implemented for functions that return a future of a [`GrpcService`]: of a [`Channel`](tonic::transport::Channel), of
/// a channel with an interceptor, of any tower service in front of a channel. Also implemented for
/// [`Endpoint`](tonic::transport::Endpoint), with the additions of [`dial`](fn@super::dial).
pub trait Connect: Send + 'static {
    /// The connection.
    type Service: GrpcService<
            Body,
            ResponseBody: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
            Error: Into<BoxError>,
            Future: Send,
        > + Send
        + 'static;
    /// The reason why no connection can be made.
    type Error: Into<BoxError>;
    /// The attempt. Dropped if the stream is not needed any more.
    type Future: Future<Output = Result<Self::Service, Self::Error>> + Send + 'static;

    /// Connects. A future that waits for the connection distinguishes a server that can't be reached from one that
    /// fails.
    fn connect(&mut self) -> Self::Future;
}

impl<F, C, S, E> Connect for F
where
    F: FnMut() -> C + Send + 'static,
    C: Future<Output = Result<S, E>> + Send + 'static,
    S: GrpcService<
            Body,
            ResponseBody: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
            Error: Into<BoxError>,
            Future: Send,
        > + Send
        + 'static,
    E: Into<BoxError>,
{
    type Service = S;
    type Error = E;
    type Future = C;

    fn connect(&mut self) -> C {
        self()
    }
}

/// The reason why a stream ended, or could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamError {
    /// There was no connection, or it was lost before the server answered.
    Connection(Box<dyn Error + Send + Sync>),
    /// The status with which the stream ended.
    Status(tonic::Status),
}

impl StreamError {
    /// Makes the error of a call: a status if the cause is one.
    fn of_call(error: BoxError) -> Self {
        match tonic::Status::try_from_error(error) {
            Ok(status) => Self::Status(status),
            Err(error) => Self::Connection(error),
        }
    }
}

impl fmt::Display for StreamError {
    /// Writes the error with its causes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => f.write_str(&explain(error.as_ref())),
            Self::Status(status) => {
                let message = status.message();
                write!(f, "{:?}: {message}", status.code())?;
                match status.source().map(explain) {
                    Some(cause) if !message.contains(&cause) => write!(f, ": {cause}"),
                    _ => Ok(()),
                }
            }
        }
    }
}

impl Error for StreamError {}

/// Describes an error, with its cause if that adds information.
fn explain(error: &dyn Error) -> String {
    let text = error.to_string();
    match error.source().map(explain) {
        Some(cause) if !text.contains(&cause) => format!("{text}: {cause}"),
        _ => text,
    }
}

/// A response, and the connection that has to outlive it.
pub(super) type Answer = (http::Response<Body>, Box<dyn Any + Send>);

/// A connection on which one request can be made.
pub(super) type Call = Box<dyn FnOnce(http::Request<Body>) -> BoxFuture<Result<Answer, StreamError>> + Send>;

/// A type-erased [`Connect`].
pub(super) trait Dial: Send {
    fn dial(&mut self) -> BoxFuture<Result<Call, StreamError>>;
}

impl<C: Connect> Dial for C {
    fn dial(&mut self) -> BoxFuture<Result<Call, StreamError>> {
        let connecting = self.connect();
        Box::pin(async move {
            let mut service = connecting.await.map_err(|error| StreamError::Connection(error.into()))?;
            let ready = poll_fn(|cx| service.poll_ready(cx)).await;
            ready.map_err(|error| StreamError::Connection(error.into()))?;
            Ok(Box::new(move |request| {
                let response = service.call(request);
                Box::pin(async move {
                    let response = response.await.map_err(|error| StreamError::of_call(error.into()))?;
                    Ok((response.map(Body::new), Box::new(service) as Box<dyn Any + Send>))
                }) as BoxFuture<Result<Answer, StreamError>>
            }) as Call)
        })
    }
}
