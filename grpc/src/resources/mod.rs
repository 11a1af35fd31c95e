//! Decoders of the four resource types that gRPC uses: pure functions from bytes to a view, or to all faults.
//!
//! The decoders decide the *core* rules of gRPC: those that are needed to follow references, and to say which endpoints
//! there are. What belongs to the *data path* (filters, retries, TLS, load balancing policies, ..) stays raw in the
//! [`View`] for the caller, whose own faults join the same verdict: [`Faults::with`].

mod view;

use bytes::Bytes;
use xds_machine::ResourceName;

pub use self::view::{
    Cluster, Context, Destination, Listener, PathMatch, Route, RouteAction, Routes, Source, View, VirtualHost,
};
use crate::endpoints::Assignment;
use crate::faults::Faults;

/// Decodes a Listener (R-LIS).
///
/// # Errors
///
/// All faults of the core rules.
pub fn decode_listener(name: &ResourceName, body: &Bytes, context: &Context) -> Result<View<Listener>, Faults> {
    let _ = (name, body, context);
    Err(todo())
}

/// Decodes a RouteConfiguration (R-RTE).
///
/// # Errors
///
/// All faults of the core rules.
pub fn decode_routes(name: &ResourceName, body: &Bytes, context: &Context) -> Result<View<Routes>, Faults> {
    let _ = (name, body, context);
    Err(todo())
}

/// Decodes a Cluster (R-CLU).
///
/// # Errors
///
/// All faults of the core rules.
pub fn decode_cluster(name: &ResourceName, body: &Bytes, context: &Context) -> Result<View<Cluster>, Faults> {
    let _ = (name, body, context);
    Err(todo())
}

/// Decodes a ClusterLoadAssignment (R-EDS).
///
/// # Errors
///
/// All faults of the core rules.
pub fn decode_endpoints(name: &ResourceName, body: &Bytes, context: &Context) -> Result<View<Assignment>, Faults> {
    let _ = (name, body, context);
    Err(todo())
}

fn todo() -> Faults {
    let mut faults = Faults::default();
    faults.add("", "not decoded yet");
    faults
}
