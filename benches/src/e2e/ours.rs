//! The control plane, as its users run it.

use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use xds_machine_tonic::server::{ControlPlane, Group, Shared};

use crate::data::{cache, clusters, resource};

/// Returns a group of N resources.
pub(super) fn group(n: usize) -> Group {
    let store = Shared::new(cache(&clusters(), n));
    store.publish(|_| ());
    Group::with_store("all", store)
}

/// Changes a resource.
pub(super) fn change(group: &Group, round: u8) {
    drop(group.update(|cache| cache.insert(&clusters(), resource(0, round))));
}

/// Accepts connections for ever.
pub(super) async fn serve(listener: TcpListener, group: Group) -> Result<(), tonic::transport::Error> {
    let plane = ControlPlane::new(group);
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Server::builder().add_service(plane.service()).serve_with_incoming(incoming).await
}
