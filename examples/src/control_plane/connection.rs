//! An accepted connection, with or without TLS, and its place among the open files.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::{Connected, TcpConnectInfo};

use super::listen::Stream;

/// The bytes of a connection.
pub enum Transport {
    Plain(Box<dyn Stream>),
    Tls(Box<TlsStream<Box<dyn Stream>>>),
}

/// A connection, which has its place until it is dropped.
pub struct Connection {
    transport: Transport,
    info: TcpConnectInfo,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    pub fn new(transport: Transport, info: TcpConnectInfo, place: OwnedSemaphorePermit) -> Self {
        Self { transport, info, _place: place }
    }

    fn stream(&mut self) -> Pin<&mut dyn Stream> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream),
            Transport::Tls(stream) => Pin::new(stream),
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.info.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, to)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(cx, bytes)
    }

    /// Without TLS, shared pages are written to the socket as they are; a TLS connection copies them anyway.
    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}
