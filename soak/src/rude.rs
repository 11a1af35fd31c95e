//! Clients that stall, end in the middle, or send what nobody can read.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use xds_machine::message::{Node, delta};
use xds_machine::service::{Method, Variant};
use xds_machine::{proto, type_url};

/// What a client does wrong. Each has its turn.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// Asks for everything, and never reads the response.
    Stalled,
    /// The same, and does not even serve its connection.
    Frozen,
    /// Closes its half after the first request.
    HalfClosed,
    /// Sends a message that is no request.
    Garbage,
    /// Announces a message of 64 MiB.
    Oversize,
    /// Ends within a message.
    HalfMessage,
    /// Opens streams, and resets them at once.
    Resets,
    /// Sends header frames without end.
    Headers,
    /// Sends nothing at all.
    Silent,
    /// Speaks something other than HTTP/2.
    Foreign,
}

impl Kind {
    pub const ALL: [Self; 10] = [
        Self::Stalled,
        Self::Frozen,
        Self::HalfClosed,
        Self::Garbage,
        Self::Oversize,
        Self::HalfMessage,
        Self::Resets,
        Self::Headers,
        Self::Silent,
        Self::Foreign,
    ];
}

/// The time that an answer may take: a guard against hanging for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// The frames of an unending header that the server may take.
const HEADER_FRAMES: usize = 4_000;

/// Is rude once, for as long as `stay` where the client is to wait.
///
/// # Errors
///
/// If the server does not answer as it should.
pub async fn act(kind: Kind, at: SocketAddr, stay: Duration) -> Result<(), String> {
    let acted = timeout(PATIENCE, async {
        match kind {
            Kind::Stalled => stall(at, stay).await,
            Kind::Frozen => freeze(at, stay).await,
            Kind::HalfClosed => answered(at, framed(&subscription()), 0).await,
            Kind::Garbage => answered(at, framed(&[0; 20]), 3).await,
            Kind::Oversize => answered(at, prefixed(64 << 20, &[]), 8).await,
            Kind::HalfMessage => answered(at, prefixed(1 << 20, &[1; 100_000]), 13).await,
            Kind::Resets => reset(at).await,
            Kind::Headers => headers(at).await,
            Kind::Silent => {
                let stream = connect(at).await?;
                sleep(stay).await;
                drop(stream);
                Ok(())
            }
            Kind::Foreign => foreign(at).await,
        }
    });
    acted
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {PATIENCE:?}")))
        .map_err(|error| format!("{kind:?}: {error}"))
}

async fn connect(at: SocketAddr) -> Result<TcpStream, String> {
    TcpStream::connect(at).await.map_err(|error| format!("no connection: {error}"))
}

fn subscription() -> Vec<u8> {
    let request = delta::Request::new(type_url::CLUSTER);
    let node = Some(Node::new("rude").into());
    proto::delta::encode_request(&delta::Request { node, subscribe: vec!["*".into()], ..request })
}

fn framed(message: &[u8]) -> Bytes {
    prefixed(message.len() as u32, message)
}

fn prefixed(len: u32, message: &[u8]) -> Bytes {
    [&[0], &len.to_be_bytes()[..], message].concat().into()
}

/// A call, whose connection ends with it.
struct Call {
    requests: SendStream<Bytes>,
    response: ResponseFuture,
    connection: Connection,
}

struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn say(error: h2::Error) -> String {
    error.to_string()
}

async fn handshake(at: SocketAddr) -> Result<(SendRequest<Bytes>, Connection), String> {
    let (client, connection) = h2::client::handshake(connect(at).await?).await.map_err(say)?;
    let task = tokio::spawn(async move { _ = connection.await }); // its errors are the streams'
    Ok((client.ready().await.map_err(say)?, Connection(task)))
}

fn open(client: &mut SendRequest<Bytes>) -> Result<(ResponseFuture, SendStream<Bytes>), String> {
    let path = Method { variant: Variant::Delta, type_url: None }.path().ok_or("no path")?;
    let request = http::Request::post(format!("http://soak{path}"));
    let request = request.header("content-type", "application/grpc").header("te", "trailers").body(());
    client.send_request(request.map_err(|error| error.to_string())?, false).map_err(say)
}

async fn call(at: SocketAddr) -> Result<Call, String> {
    let (mut client, connection) = handshake(at).await?;
    let (response, requests) = open(&mut client)?;
    Ok(Call { requests, response, connection })
}

async fn stall(at: SocketAddr, stay: Duration) -> Result<(), String> {
    let mut call = call(at).await?;
    call.requests.send_data(framed(&subscription()), false).map_err(say)?;
    let response = call.response.await.map_err(say)?;
    sleep(stay).await;
    drop((response, call.requests, call.connection));
    Ok(())
}

async fn freeze(at: SocketAddr, stay: Duration) -> Result<(), String> {
    let (mut client, mut connection) = h2::client::handshake(connect(at).await?).await.map_err(say)?;
    let (response, mut requests) = open(&mut client)?;
    requests.send_data(framed(&subscription()), false).map_err(say)?;
    // Long enough for the request to go and the response to begin.
    let begun = tokio::select! {
        response = response => response.map_err(say)?,
        ended = &mut connection => return Err(format!("the connection ended: {ended:?}")),
    };
    sleep(stay).await;
    drop((begun, requests));
    Ok(())
}

/// Sends a message, closes the half, and expects a status.
async fn answered(at: SocketAddr, message: Bytes, expected: u32) -> Result<(), String> {
    let mut call = call(at).await?;
    call.requests.send_data(message, true).map_err(say)?;
    let response = call.response.await.map_err(say)?;
    let (head, mut body) = response.into_parts();
    drain(&mut body).await?;
    let trailers = body.trailers().await.map_err(say)?;
    let status = trailers.as_ref().unwrap_or(&head.headers).get("grpc-status").cloned();
    let got = status.as_ref().and_then(|status| status.to_str().ok()?.parse::<u32>().ok());
    if got == Some(expected) { Ok(()) } else { Err(format!("grpc-status {status:?}, not {expected}")) }
}

async fn drain(body: &mut RecvStream) -> Result<(), String> {
    while let Some(data) = body.data().await {
        let data = match data {
            Ok(data) => data,
            // The server has said all, and wants no more of the request.
            Err(error) if error.reason() == Some(Reason::NO_ERROR) => return Ok(()),
            Err(error) => return Err(say(error)),
        };
        body.flow_control().release_capacity(data.len()).map_err(say)?;
    }
    Ok(())
}

async fn reset(at: SocketAddr) -> Result<(), String> {
    let (mut client, connection) = handshake(at).await?;
    for _ in 0..10 {
        let (_response, mut requests) = open(&mut client)?;
        requests.send_data(framed(&subscription()), false).map_err(say)?;
        tokio::task::yield_now().await;
        requests.send_reset(Reason::CANCEL);
    }
    drop(connection);
    Ok(())
}

/// Sends an HTTP/2 frame header.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes()[..], payload].concat()
}

async fn headers(at: SocketAddr) -> Result<(), String> {
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const CONTINUATION: u8 = 9;
    let mut stream = connect(at).await?;
    // Literal fields `a: b`, without an entry in the table.
    let fields = [0, 1, b'a', 1, b'b'].repeat(3_000);
    let start = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &[]), &frame(HEADERS, 0, 1, &fields)];
    let more = frame(CONTINUATION, 0, 1, &fields);
    let sending = async {
        stream.write_all(&start.concat()).await?;
        for _ in 0..HEADER_FRAMES {
            stream.write_all(&more).await?;
        }
        std::io::Result::Ok(())
    };
    match sending.await {
        Ok(()) => Err(format!("{} MB of one header were taken", HEADER_FRAMES * more.len() / 1_000_000)),
        Err(_) => Ok(()), // the server has closed the connection
    }
}

async fn foreign(at: SocketAddr) -> Result<(), String> {
    let mut stream = connect(at).await?;
    let _ = stream.write_all(&[0x16, 3, 1].repeat(5_000)).await; // as a TLS client would, more or less
    closed(&mut stream).await
}

/// Waits until the server has closed the connection.
fn closed(stream: &mut TcpStream) -> impl Future<Output = Result<(), String>> {
    use tokio::io::AsyncReadExt;
    async {
        let mut rest = [0; 1024];
        while !matches!(stream.read(&mut rest).await, Ok(0) | Err(_)) {}
        Ok(())
    }
}
