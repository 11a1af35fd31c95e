//! The wires of a tap: HTTP/2 on both sides, messages passed on as they are.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use tokio::net::{TcpListener, TcpStream};
use xds_machine::service::Method;

use super::judge::Judge;
use crate::net::stream::{next_message, write};

type Shared = Arc<Mutex<Judge>>;

/// Accepts connections until the listener fails.
pub(super) async fn accept(listener: TcpListener, upstream: String, judge: Shared) {
    while let Ok((tcp, _)) = listener.accept().await {
        tokio::spawn(connection(tcp, upstream.clone(), judge.clone()));
    }
}

/// Serves a connection of a client, through a connection to the server.
async fn connection(tcp: TcpStream, upstream: String, judge: Shared) -> Option<()> {
    tcp.set_nodelay(true).ok()?;
    let mut client = h2::server::handshake(tcp).await.ok()?;
    let tcp = TcpStream::connect(&upstream).await.ok()?;
    tcp.set_nodelay(true).ok()?;
    let (mut server, driver) = h2::client::handshake(tcp).await.ok()?;
    tokio::spawn(driver);
    while let Some(Ok((request, respond))) = client.accept().await {
        poll_fn(|cx| server.poll_ready(cx)).await.ok()?;
        let (parts, body) = request.into_parts();
        let uri = format!("http://{upstream}{}", parts.uri.path());
        let mut forward = Request::builder().method(parts.method).uri(uri).body(()).ok()?;
        *forward.headers_mut() = parts.headers;
        let (response, send) = server.send_request(forward, false).ok()?;
        // A method that is no discovery passes unjudged.
        let method = Method::of_path(parts.uri.path());
        let id = method.map(|method| lock(&judge).open(&method, parts.uri.path()));
        let up = pump(body, send, Side { judge: judge.clone(), id, is_server: false });
        let judge = judge.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = down(response, respond, Side { judge: judge.clone(), id, is_server: true }) => {}
                // The client may end its side, and still read responses.
                () = async { up.await; std::future::pending().await } => {}
            }
            id.into_iter().for_each(|id| lock(&judge).close(id));
        });
    }
    Some(())
}

fn lock(judge: &Shared) -> std::sync::MutexGuard<'_, Judge> {
    judge.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The side whose messages are read.
struct Side {
    judge: Shared,
    id: Option<u64>,
    is_server: bool,
}

/// Passes on the messages of the server.
async fn down(response: h2::client::ResponseFuture, mut respond: SendResponse<Bytes>, side: Side) {
    let response = match response.await {
        Ok(response) => response,
        Err(error) => return respond.send_reset(error.reason().unwrap_or(Reason::INTERNAL_ERROR)),
    };
    let (parts, body) = response.into_parts();
    let mut forward = Response::new(());
    (*forward.status_mut(), *forward.headers_mut()) = (parts.status, parts.headers);
    let ended = body.is_end_stream();
    if let (Ok(send), false) = (respond.send_response(forward, ended), ended) {
        pump(body, send, side).await;
    }
}

/// Passes on data and trailers, and lets the judge read them.
async fn pump(mut from: RecvStream, mut to: SendStream<Bytes>, side: Side) {
    let mut buffer = BytesMut::new();
    while let Some(data) = from.data().await {
        let Ok(data) = data else { return to.send_reset(Reason::CANCEL) };
        _ = from.flow_control().release_capacity(data.len()); // more than was received is never released
        if let Some(id) = side.id {
            buffer.extend_from_slice(&data);
            // The judge reads before the other side does. Compressed messages pass unjudged.
            while let Some(message) = next_message(&mut buffer) {
                match message {
                    Ok(message) if side.is_server => lock(&side.judge).response(id, message),
                    Ok(message) => lock(&side.judge).request(id, message),
                    Err(_) => {}
                }
            }
        }
        if write(&mut to, data).await.is_err() {
            return;
        }
    }
    // If the end cannot be passed on, the other side has ended too.
    _ = match from.trailers().await {
        Ok(Some(trailers)) => to.send_trailers(trailers),
        Ok(None) => to.send_data(Bytes::new(), true),
        Err(_) => to.send_trailers(HeaderMap::new()),
    };
}
