//! The calls to a member of etcd.

use std::error::Error;
use std::time::Duration;

use http::uri::PathAndQuery;
use prost::Message;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Uri;
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;
use xds_machine_tonic::client::{Connect, Impatient, dial};

use super::arguments::Etcd;
use super::generated::{
    AuthenticateRequest, AuthenticateResponse, RangeRequest, RangeResponse, ResponseHeader, WatchRequest, WatchResponse,
};
use super::listing::{Listed, Listing};

const RANGE: &str = "/etcdserverpb.KV/Range";
const WATCH: &str = "/etcdserverpb.Watch/Watch";
const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";

/// The time for connecting, and then for the first byte.
const PATIENCE: Duration = Duration::from_secs(3);

/// The interval and the time-out of pings. Etcd refuses more than one in five seconds.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));

/// The time for a call with one answer. An etcd without a leader answers after seven seconds that there is none.
const CALL: Duration = Duration::from_secs(10);

/// The most bytes of one answer. A value has at most 1.5 MiB by etcd's default.
const ANSWER: usize = 64 << 20;

/// A connection to a member.
pub struct Client {
    grpc: Grpc<Impatient>,
    token: Option<MetadataValue<Ascii>>,
}

impl Client {
    /// Connects, and logs in if there is a user.
    ///
    /// # Errors
    ///
    /// One line that says what failed.
    pub async fn connect(etcd: &Etcd, url: &Uri) -> Result<Self, String> {
        let (interval, patience) = KEEPALIVE;
        let dial = dial(etcd.endpoint(url)?).with_patience(PATIENCE).with_keepalive(interval, patience);
        let service = { dial }.connect().await.map_err(|error| causes(&*error))?;
        let grpc = Grpc::new(service).max_decoding_message_size(ANSWER).max_encoding_message_size(ANSWER);
        let mut client = Self { grpc, token: None };
        if let Some((name, password)) = etcd.login()? {
            let response = client.call(AUTHENTICATE, AuthenticateRequest { name, password }).await.map_err(said)?;
            let AuthenticateResponse { token, .. } = response;
            client.token = Some(token.parse().map_err(|_| "the token of the login is no text".to_owned())?);
        }
        Ok(client)
    }

    /// Returns the current state of the store, on which the members agree. Without a leader, a member waits for seven
    /// seconds, while another member may already have a new leader: `patience` is less.
    ///
    /// # Errors
    ///
    /// One line that says what failed.
    pub async fn now(&mut self, key: bytes::Bytes, patience: Duration) -> Result<ResponseHeader, String> {
        let request = RangeRequest { key, limit: 1, keys_only: true, ..RangeRequest::default() };
        let asking = timeout(patience.min(CALL), self.call::<_, RangeResponse>(RANGE, request));
        let response = asking.await.map_err(|_| format!("the members do not agree within {patience:?}"))?;
        response.map_err(said)?.header.ok_or_else(|| "an answer without a header".into())
    }

    /// Reads a listing.
    ///
    /// # Errors
    ///
    /// One line that says what failed.
    pub async fn list(&mut self, mut listing: Listing) -> Result<Listed, String> {
        loop {
            let done = match self.call(RANGE, listing.request()).await {
                Ok(page) => listing.take(page)?,
                Err(status) if status.message().contains("compacted") => {
                    listing.begin_again();
                    false
                }
                // An answer that is too large has the same code as a revision that is gone.
                Err(status) if status.code() == Code::OutOfRange && listing.shrink() => false,
                Err(status) => return Err(said(status)),
            };
            if done {
                return listing.finish().ok_or_else(|| "a listing without pages".into());
            }
        }
    }

    /// Opens a watch.
    ///
    /// # Errors
    ///
    /// One line that says what failed.
    pub async fn watch(&mut self, request: WatchRequest) -> Result<Streaming<WatchResponse>, String> {
        // The client's half of the stream stays open: its end would end the watch.
        let requests = tokio_stream::once(request).chain(tokio_stream::pending());
        let mut request = self.request(requests);
        // With this key, a member that has lost the others ends the watch instead of falling silent.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        self.ready().await.map_err(said)?;
        let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
        let opening = self.grpc.streaming(request, PathAndQuery::from_static(WATCH), codec);
        let response = timeout(CALL, opening).await.map_err(|_| late(WATCH))?.map_err(said)?;
        Ok(response.into_inner())
    }

    async fn call<Q, A>(&mut self, path: &'static str, message: Q) -> Result<A, Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        self.ready().await?;
        let request = self.request(message);
        let call = self.grpc.unary(request, PathAndQuery::from_static(path), ProstCodec::<Q, A>::default());
        let response = timeout(CALL, call).await.map_err(|_| Status::deadline_exceeded(late(path)))??;
        Ok(response.into_inner())
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.grpc.ready().await.map_err(|error| Status::unavailable(causes(&*error)))
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }
}

fn late(path: &str) -> String {
    format!("no answer to {path} after {CALL:?}")
}

/// Returns the words of an error and of its causes.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_words = cause.to_string();
        if !words.ends_with(&cause_words) {
            words = format!("{words}: {cause_words}");
        }
        next = cause.source();
    }
    words
}

pub fn said(status: Status) -> String {
    match status.message() {
        "" => format!("{:?}", status.code()),
        message => message.to_owned(),
    }
}
