//! The service by which others look at what this client has (CSDS).

use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use xds_machine_tonic::client::{ClientStatusService, XdsClient};

/// Serves the status of a client until the program ends.
///
/// # Errors
///
/// One line that says what can't be done.
pub(crate) async fn serve(address: &str, client: XdsClient) -> Result<(), String> {
    let error = |error| format!("can't serve the client's status on {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(error)?;
    eprintln!("xds_client: the client's status is served on {}", listener.local_addr().map_err(error)?);
    let service = ClientStatusService::new().client("", client);
    let serving = Server::builder().add_service(service).serve_with_incoming(TcpIncoming::from(listener));
    tokio::spawn(async move {
        if let Err(error) = serving.await {
            eprintln!("xds_client: the client's status is no longer served: {error}");
        }
    });
    Ok(())
}
