//! Connections to the servers of the bootstrap file.

use std::error::Error;
use std::fs;
use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpStream, UnixStream};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use xds_machine_grpc::bootstrap::{Address, Server};
use xds_machine_tonic::client::{Connect, Dial, Impatient, dial};

type BoxError = Box<dyn Error + Send + Sync>;

/// Makes the connections of a server. Each reads the files of certificates, so that new ones take effect.
pub fn connector(server: &Server) -> impl Connect {
    let server = server.clone();
    move || connect(dialed(&server))
}

async fn connect(dialed: Result<Dial, BoxError>) -> Result<Impatient, BoxError> {
    dialed?.connect().await
}

fn dialed(server: &Server) -> Result<Dial, BoxError> {
    match server.address()? {
        Address::Host { host, port } if host.contains(':') => Ok(dial(endpoint(server, &format!("[{host}]:{port}"))?)),
        Address::Host { host, port } => Ok(dial(endpoint(server, &format!("{host}:{port}"))?)),
        Address::Ip(addresses) => {
            let authority = addresses.first().map(ToString::to_string).unwrap_or_default();
            let open = move || first(addresses.clone());
            Ok(dial(endpoint(server, &authority)?).with_transport(open))
        }
        // The authority of calls over a socket is localhost, as that of gRPC's.
        Address::Unix(path) => Ok(dial(endpoint(server, "localhost")?).with_transport(move || {
            let path = path.clone();
            async move { UnixStream::connect(path).await }
        })),
        Address::UnixAbstract(name) => Ok(dial(endpoint(server, "localhost")?).with_transport(move || {
            // To tokio, a path that begins with a zero byte is a name in the abstract namespace.
            let path = format!("\0{name}");
            async move { UnixStream::connect(path).await }
        })),
        _ => Err("an address of this kind is not supported".into()),
    }
}

/// Connects to the first address that takes the connection.
async fn first(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(&addresses[..]).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn endpoint(server: &Server, authority: &str) -> Result<Endpoint, BoxError> {
    let tls = server.credentials.tls();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{authority}"))?;
    let Some(files) = tls else { return Ok(endpoint) };
    let read = |path: &String| fs::read(path).map_err(|error| format!("{path}: {error}"));
    let mut config = match &files.ca_certificate {
        Some(path) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(path)?)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    if let (Some(certificate), Some(key)) = (&files.certificate, &files.private_key) {
        config = config.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(endpoint.tls_config(config)?)
}
