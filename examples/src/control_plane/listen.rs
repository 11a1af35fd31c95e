//! The places where the program listens: TCP ports, and Unix sockets.

use std::fmt;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// The bytes of an accepted connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An accepted connection: its bytes, and its addresses, which a Unix socket lacks.
pub struct Accepted {
    pub stream: Box<dyn Stream>,
    pub info: TcpConnectInfo,
}

/// A place where the program listens.
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket, which is removed at the end.
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0); // it may be gone
    }
}

/// The address of a listener.
#[derive(Clone, Debug)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Listener {
    /// Listens at `unix:PATH`, at `HOST:PORT`, or with `:PORT` at all addresses.
    ///
    /// # Errors
    ///
    /// If the system refuses, or another program listens there.
    pub async fn bind(address: &str) -> io::Result<(Self, Address)> {
        match address.strip_prefix("unix:") {
            Some(path) => {
                let path = PathBuf::from(path);
                let listener = bind_unix(&path).await?;
                Ok((Self::Unix(listener, SocketFile(path.clone())), Address::Unix(path)))
            }
            None => {
                let listener = bind_tcp(address).await?;
                let address = Address::Tcp(listener.local_addr()?);
                Ok((Self::Tcp(listener), address))
            }
        }
    }

    pub async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                let _ = stream.set_nodelay(true); // on an error the client is gone, which the first read reports
                Ok(Accepted { info: stream.connect_info(), stream: Box::new(stream) })
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                let info = TcpConnectInfo { local_addr: None, remote_addr: None };
                Ok(Accepted { stream: Box::new(stream), info })
            }
        }
    }
}

/// Listens at `HOST:PORT`, or with `:PORT` at all addresses, of IPv6 and IPv4.
///
/// # Errors
///
/// If the system refuses.
pub async fn bind_tcp(address: &str) -> io::Result<TcpListener> {
    let Some(port) = address.strip_prefix(':').and_then(|port| port.parse::<u16>().ok()) else {
        return TcpListener::bind(address).await;
    };
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        // Systems without IPv6.
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => TcpListener::bind(("0.0.0.0", port)).await,
        bound => bound,
    }
}

/// Listens on a Unix socket. That of a program that has ended without removing it is replaced.
async fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let tried = UnixStream::connect(path).await;
            if !tried.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) || !is_socket(path) {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}
