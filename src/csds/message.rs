//! The messages of CSDS, as far as xDS resources are concerned.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;

use super::clock::Timestamp;
use super::matcher::NodeMatcher;
use crate::client::ResourceStatus;
use crate::message::Node;
use crate::name::{ResourceName, TypeUrl, Version};

/// A request for the status of clients (`envoy.service.status.v3.ClientStatusRequest`).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Request {
    /// The clients to report: those that one of the matchers selects, or all if there are no matchers (R-CSDS-30). A
    /// client that reports its own status refuses matchers (R-CSDS-14).
    pub matchers: Vec<NodeMatcher>,
    /// The node that makes the request.
    pub node: Option<Arc<Node>>,
    /// Whether the contents of the resources are left out (R-CSDS-15).
    pub exclude_contents: bool,
}

/// The status of clients (`envoy.service.status.v3.ClientStatusResponse`).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Response {
    /// The clients. Without clients the message is empty (R-CSDS-01).
    pub clients: Vec<ClientConfig>,
}

/// The resources of one client (`envoy.service.status.v3.ClientConfig`). The deprecated `xds_config` is never filled
/// (R-CSDS-03).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct ClientConfig {
    /// The node, as the control plane receives it (R-CSDS-02).
    pub node: Option<Arc<Node>>,
    /// The scope, if one node has several clients: in gRPC, the target of a channel (gRFC A71).
    pub scope: String,
    /// The resources, in the order of their types and names.
    pub items: Vec<Item>,
}

/// One resource (`envoy.service.status.v3.ClientConfig.GenericXdsConfig`). `is_static_resource` is always false,
/// because no resource of this protocol comes from a bootstrap file.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Item {
    /// The type of the resource.
    pub type_url: TypeUrl,
    /// The name of the resource.
    pub name: ResourceName,
    /// The version that the client holds, or that the server would serve now; `None` if there is neither.
    pub version: Option<Version>,
    /// The encoded resource (`Any.value`), as it was received.
    pub contents: Option<Bytes>,
    /// The time at which the client accepted the resource.
    pub updated: Option<Timestamp>,
    /// The server's view; `None` in a client's dump.
    pub config_status: Option<ConfigStatus>,
    /// The client's view; `None` in a server's.
    pub client_status: Option<ResourceStatus>,
    /// The last error, unless it was resolved since. Boxed, because a dump has many items and few have one.
    pub error: Option<Box<ErrorState>>,
}

/// The error of a resource (`envoy.admin.v3.UpdateFailureState`). `failed_configuration` is never filled (R-CSDS-11).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ErrorState {
    /// The error, for people.
    pub details: String,
    /// The version that was rejected, or that of the response that reported the error; empty if there was none.
    pub version: Version,
    /// The time of that response; `None` if there was none.
    pub at: Option<Timestamp>,
}

/// The status of a resource between a management server and a client (`envoy.service.status.v3.ConfigStatus`). Ordered
/// by severity: of several streams of a node the greatest status counts.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ConfigStatus {
    /// The client was sent what the server serves, and accepted it.
    Synced,
    /// The client was not sent the resource on this stream, or the resource does not exist.
    NotSent,
    /// The client was sent the resource, or an earlier form of it, and has not accepted what the server serves.
    Stale,
    /// The client rejected what the server serves. A NACK is never shown as [`Stale`](Self::Stale) (R-CSDS-34).
    Error,
}

impl ClientConfig {
    /// Makes the configuration of a client, with its items in order (R-CSDS-17).
    pub fn new(node: Option<Arc<Node>>, scope: impl Into<String>, mut items: Vec<Item>) -> Self {
        items.sort_by(|a, b| (&a.type_url, &a.name).cmp(&(&b.type_url, &b.name)));
        Self { node, scope: scope.into(), items }
    }
}

impl Item {
    /// Returns the `cache_state` of the metrics of gRFC A78: the status, and whether content is held in spite of it
    /// (R-CSDS-19). `None` in a server's view.
    pub fn cache_state(&self) -> Option<&'static str> {
        let held = self.version.is_some();
        Some(match self.client_status? {
            ResourceStatus::Requested => "requested",
            ResourceStatus::Acked => "acked",
            ResourceStatus::Nacked if held => "nacked_but_cached",
            ResourceStatus::Nacked => "nacked",
            ResourceStatus::DoesNotExist if held => "does_not_exist_but_cached",
            ResourceStatus::DoesNotExist => "does_not_exist",
            ResourceStatus::ReceivedError if held => "received_error_but_cached",
            ResourceStatus::ReceivedError => "received_error",
            ResourceStatus::TimedOut => "timeout",
        })
    }
}
