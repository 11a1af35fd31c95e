//! The values that the decoders read from resources.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use bytes::Bytes;
use xds_machine::ResourceName;

use crate::endpoints::Assignment;
use crate::faults::{Faults, Walk};
use crate::links::{self, ClusterLinks, Links, ListenerLinks, RouteSource};

/// The circumstances that affect the meaning of a resource.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Context {
    pub(super) trusted: bool,
    pub(super) plugins: BTreeSet<String>,
}

impl Context {
    /// Sets whether the resource came from a server with the feature `trusted_xds_server` (gRFC A81; R-RTE-23).
    #[must_use]
    pub fn trusted(mut self, trusted: bool) -> Self {
        self.trusted = trusted;
        self
    }

    /// Adds a type of cluster specifier plugin that the caller supports, such as
    /// `grpc.lookup.v1.RouteLookupClusterSpecifier` (R-RTE-15). Default: none.
    #[must_use]
    pub fn with_plugin(mut self, message: impl Into<String>) -> Self {
        self.plugins.insert(message.into());
        self
    }
}

/// A valid resource: the value that the decoder read, and the bytes, from which the caller reads the other fields.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct View<T> {
    value: T,
    raw: Bytes,
}

impl<T> View<T> {
    /// Makes a view if there are no faults. Without a value there is a fault.
    pub(super) fn judge(walk: Walk, value: Option<T>, raw: &Bytes) -> Result<Self, Faults> {
        let faults = walk.into_faults();
        match value {
            Some(value) if faults.is_empty() => Ok(Self { value, raw: raw.clone() }),
            _ => Err(faults),
        }
    }

    /// Returns the value that the decoder read.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// Returns the value that the decoder read, without the bytes.
    pub fn into_value(self) -> T {
        self.value
    }

    /// Returns the encoded resource: a slice of the buffer that was received.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// Returns the view with another value, such as an enum of all types.
    pub fn map<U>(self, map: impl FnOnce(T) -> U) -> View<U> {
        View { value: map(self.value), raw: self.raw }
    }
}

/// A Listener.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Listener {
    /// A client's listener.
    Api(Source),
    /// A server's listener (gRFC A36).
    Socket {
        /// The address to listen on; `None` if the address is no IP address.
        address: Option<SocketAddr>,
        /// The route source of each filter chain, the default filter chain last.
        routes: Vec<Source>,
    },
}

/// The source of an HTTP connection manager's routes.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Source {
    /// A RouteConfiguration of this name, by RDS.
    Rds(ResourceName),
    /// The routes are inside the Listener.
    Inline(Routes),
}

/// A RouteConfiguration.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Routes {
    /// The virtual hosts, in the order of the resource.
    pub hosts: Vec<VirtualHost>,
}

/// A virtual host.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct VirtualHost {
    /// The name.
    pub name: String,
    /// The domains as the resource has them; at least one.
    pub domains: Vec<String>,
    /// The routes without those that gRPC ignores (R-RTE-09, R-RTE-11), in the order of the resource.
    pub routes: Vec<Route>,
}

/// A route. Its conditions on headers and fractions are data path: they are in the resource, at the index.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Route {
    /// The position among the routes of the virtual host in the resource, ignored ones included.
    pub index: usize,
    /// The condition on the path of a call.
    pub path: PathMatch,
    /// Whether the case of the path's letters is ignored.
    pub ignore_case: bool,
    /// The action for the call.
    pub action: RouteAction,
}

/// The condition on the path of a call.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum PathMatch {
    /// The path begins with this text.
    Prefix(String),
    /// The path is this text.
    Exact(String),
    /// The path matches this regular expression (RE2) completely. The validity of the expression is data path.
    Regex(String),
}

/// The action for a call.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum RouteAction {
    /// The call is sent to a cluster.
    Forward {
        /// The cluster, or the way to find one.
        to: Destination,
        /// Whether the authority of the call becomes the host name of the endpoint: only if the server is trusted
        /// (gRFC A81; R-RTE-23).
        auto_host_rewrite: bool,
    },
    /// Any other action (a redirect, ..): the route matches, and the call fails (R-RTE-12).
    Unsupported,
}

/// The destination of a call.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Destination {
    /// This cluster.
    Cluster(ResourceName),
    /// One of these clusters, by weight; none has weight 0 (R-RTE-14).
    Weighted(Vec<(ResourceName, u32)>),
    /// The cluster that this cluster specifier plugin names for the call.
    Plugin(String),
}

/// A Cluster.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Cluster {
    /// The kind of the cluster, and what it refers to.
    pub kind: ClusterLinks,
    /// Whether load is reported to the server that the cluster came from (R-CLU-10).
    pub reports_load: bool,
}

impl View<Listener> {
    /// Returns the links, for the chain.
    pub fn links(&self) -> Links {
        Links::Listener(match &self.value {
            Listener::Api(source) => ListenerLinks::Api(source.links()),
            Listener::Socket { address, routes } => {
                ListenerLinks::Socket { address: *address, routes: routes.iter().map(Source::links).collect() }
            }
        })
    }
}

impl View<Routes> {
    /// Returns the links, for the chain.
    pub fn links(&self) -> Links {
        Links::Routes(self.value.links())
    }
}

impl View<Cluster> {
    /// Returns the links, for the chain.
    pub fn links(&self) -> Links {
        Links::Cluster(self.value.kind.clone())
    }
}

impl View<Assignment> {
    /// Returns the links, for the chain.
    pub fn links(&self) -> Links {
        Links::Endpoints(self.value.lack())
    }
}

impl Source {
    fn links(&self) -> RouteSource {
        match self {
            Self::Rds(name) => RouteSource::Rds(name.clone()),
            Self::Inline(routes) => RouteSource::Inline(routes.links()),
        }
    }
}

impl Routes {
    fn links(&self) -> Vec<links::VirtualHost> {
        self.hosts.iter().map(VirtualHost::links).collect()
    }
}

impl VirtualHost {
    /// Returns the clusters of the routes, each once, in the order of the routes (R-CHAIN-06).
    fn links(&self) -> links::VirtualHost {
        let mut seen = BTreeSet::new();
        let named = self.routes.iter().flat_map(Route::clusters);
        let clusters = named.filter(|name| seen.insert(*name)).cloned().collect();
        links::VirtualHost { name: self.name.clone(), domains: self.domains.clone(), clusters }
    }
}

impl Route {
    /// Returns the clusters that the route names; none for a plugin.
    pub fn clusters(&self) -> impl Iterator<Item = &ResourceName> {
        let (one, weighted) = match &self.action {
            RouteAction::Forward { to: Destination::Cluster(name), .. } => (Some(name), &[][..]),
            RouteAction::Forward { to: Destination::Weighted(all), .. } => (None, &all[..]),
            _ => (None, &[][..]),
        };
        one.into_iter().chain(weighted.iter().map(|(name, _)| name))
    }
}
