//! Decoders of the four resource types that gRPC uses: pure functions from bytes to a view, or to all faults.
//!
//! The decoders decide the *core* rules of gRPC: those that are needed to follow references, and to find the endpoints.
//! The fields of the *data path* (filters, retries, TLS, load balancing policies, ..) stay raw in the [`View`] for the
//! caller, whose own faults join the same verdict: [`Faults::with`](crate::faults::Faults::with).
//!
//! ```
//! use bytes::Bytes;
//! use xds_machine::ResourceName;
//! use xds_machine_grpc::links::{ClusterLinks, Links};
//! use xds_machine_grpc::resources::{Context, decode_cluster};
//!
//! // A Cluster without a type, which is STATIC: gRPC has no use for it.
//! let name = ResourceName::from("backend");
//! let faults = decode_cluster(&name, &Bytes::from_static(b"\x0a\x07backend"), &Context::default()).unwrap_err();
//! assert_eq!(faults.to_string(), "[field:type error:unknown discovery type]");
//!
//! // type: EDS, eds_cluster_config: {eds_config: {ads: {}}}
//! let body = Bytes::from_static(b"\x0a\x07backend\x10\x03\x1a\x04\x0a\x02\x1a\x00");
//! let view = decode_cluster(&name, &body, &Context::default())?;
//! assert_eq!(view.links(), Links::Cluster(ClusterLinks::Eds(name)));
//! assert_eq!(view.raw(), &body);
//! # Ok::<(), xds_machine_grpc::faults::Faults>(())
//! ```
//!
//! A resource that no subscription covers is not decoded: the machine passes on only the covered ones (R-LIS-12).

mod any;
mod cluster;
mod endpoints;
#[rustfmt::skip]
#[allow(clippy::all, missing_docs, unreachable_pub)]
mod generated;
mod listener;
mod message;
mod routes;
mod view;

pub use self::cluster::decode_cluster;
pub use self::endpoints::decode_endpoints;
pub use self::listener::decode_listener;
pub use self::routes::decode_routes;
pub use self::view::{
    Cluster, Context, Destination, Listener, PathMatch, Route, RouteAction, Routes, Source, View, VirtualHost,
};
