//! Connections to the servers of the bootstrap file.

use std::error::Error;
use std::fs;

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use xds_machine_grpc::bootstrap::Server;
use xds_machine_tonic::client::{Connect, Impatient, dial};

type BoxError = Box<dyn Error + Send + Sync>;

/// Makes the connections of a server. Each reads the files of certificates, so that new ones take effect.
pub fn connector(server: &Server) -> impl Connect {
    let server = server.clone();
    move || connect(endpoint(&server))
}

async fn connect(endpoint: Result<Endpoint, BoxError>) -> Result<Impatient, BoxError> {
    dial(endpoint?).connect().await
}

fn endpoint(server: &Server) -> Result<Endpoint, BoxError> {
    // A server's URI is a gRPC target that contains an address; gRPC's default scheme is dns.
    let address = server.uri.strip_prefix("dns:").map_or(&server.uri[..], |rest| rest.trim_start_matches('/'));
    let tls = server.credentials.tls();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))?;
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
