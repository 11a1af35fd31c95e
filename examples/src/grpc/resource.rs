//! Resources of the four types, decoded by the core rules of gRPC.

use std::sync::Arc;

use xds_machine::client;
use xds_machine_grpc::chain::{Linked, Target};
use xds_machine_grpc::endpoints::Assignment;
use xds_machine_grpc::faults::Faults;
use xds_machine_grpc::resources::{
    self, Cluster, Context, Listener, Routes, View, decode_cluster, decode_endpoints, decode_listener, decode_routes,
};

/// A resource of any of the four types.
#[derive(Debug, Eq, PartialEq)]
pub enum Resource {
    Listener(View<Listener>),
    Routes(View<Routes>),
    Cluster(View<Cluster>),
    Endpoints(View<Assignment>),
}

impl Resource {
    /// Returns the endpoints, if the resource is a ClusterLoadAssignment.
    pub fn assignment(&self) -> Option<&Assignment> {
        match self {
            Self::Endpoints(view) => Some(view.value()),
            Self::Listener(_) | Self::Routes(_) | Self::Cluster(_) => None,
        }
    }
}

/// Decodes a resource.
///
/// # Errors
///
/// Returns all faults of the resource.
pub fn decode(
    target: &Target,
    resource: client::Resource<'_>,
    context: &Context,
) -> Result<Linked<Arc<Resource>>, Faults> {
    let (name, body) = (resource.name(), resource.body());
    let (links, value) = match target {
        Target::Listener(_) => {
            linked(decode_listener(name, body, context)?, View::<Listener>::links, Resource::Listener)
        }
        Target::Routes(_) => linked(decode_routes(name, body, context)?, View::<Routes>::links, Resource::Routes),
        Target::Cluster(_) => linked(decode_cluster(name, body, context)?, View::<Cluster>::links, Resource::Cluster),
        Target::Endpoints(_) | Target::Dns(_) => {
            linked(decode_endpoints(name, body, context)?, View::<Assignment>::links, Resource::Endpoints)
        }
    };
    Ok(Linked::new(links, Arc::new(value)))
}

fn linked<T>(
    view: resources::View<T>,
    links: impl FnOnce(&View<T>) -> xds_machine_grpc::links::Links,
    resource: impl FnOnce(View<T>) -> Resource,
) -> (xds_machine_grpc::links::Links, Resource) {
    (links(&view), resource(view))
}
