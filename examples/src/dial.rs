//! Connections that are given up when the other end is silent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint, Error, Uri};

/// The time limit for connecting, and then for the first byte. An HTTP/2 server sends its settings at once. Waiting for
/// the response headers instead would be wrong, because some servers send them only with the first response.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The interval and the time-out of keepalive pings, which detect a lost connection. The interval is long, because many
/// gRPC servers close a connection that pings too often.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));

/// Records whether the other end has sent anything yet.
#[derive(Clone, Default)]
pub struct Heard(Arc<AtomicBool>);

impl Heard {
    pub fn anything(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

pub async fn dial(server: &Uri) -> Result<(Channel, Heard), Error> {
    let heard = Heard::default();
    let connect = |heard: Heard| {
        move |uri: Uri| {
            let heard = heard.clone();
            async move {
                let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_string();
                let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(80))).await?;
                stream.set_nodelay(true)?;
                Ok::<_, io::Error>(TokioIo::new(Listening { stream, heard }))
            }
        }
    };
    let endpoint = Endpoint::from(server.clone())
        .connect_timeout(PATIENCE)
        .http2_keep_alive_interval(KEEPALIVE.0)
        .keep_alive_timeout(KEEPALIVE.1);
    let channel = endpoint.connect_with_connector(tower::service_fn(connect(heard.clone()))).await?;
    Ok((channel, heard))
}

struct Listening {
    stream: TcpStream,
    heard: Heard,
}

impl AsyncRead for Listening {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, to);
        self.heard.0.fetch_or(to.filled().len() > before, Ordering::Relaxed);
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
}
