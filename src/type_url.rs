//! The type URLs of the xDS API, version 3.

/// Listener (LDS).
pub const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
/// RouteConfiguration (RDS).
pub const ROUTE: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
/// ScopedRouteConfiguration (SRDS).
pub const SCOPED_ROUTE: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";
/// VirtualHost (VHDS).
pub const VIRTUAL_HOST: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";
/// Cluster (CDS).
pub const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
/// ClusterLoadAssignment (EDS).
pub const ENDPOINT: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
/// LbEndpoint (LEDS).
pub const LB_ENDPOINT: &str = "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint";
/// Secret (SDS).
pub const SECRET: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
/// Runtime (RTDS).
pub const RUNTIME: &str = "type.googleapis.com/envoy.service.runtime.v3.Runtime";
/// TypedExtensionConfig (ECDS).
pub const EXTENSION_CONFIG: &str = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
/// The wrapper of a SotW resource (`envoy.service.discovery.v3.Resource`).
pub const RESOURCE: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";
