//! The cases of the oracle: sets of resources, valid ones and odd ones, and scripts of changes.
//!
//! A case names no port and no listener: the listener is the target of the channel, and endpoints are numbers.

use serde::{Deserialize, Serialize};

/// A channel, and the changes of its resources.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Case {
    /// The data plane authority.
    pub authority: String,
    pub steps: Vec<Step>,
}

/// Changes that the server makes at once: one response for each type, in the order of the changes.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Step {
    pub changes: Vec<Change>,
    /// Whether the resource timers run out before the step ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Change {
    #[serde(rename = "+")]
    Put(Resource),
    /// The server no longer has this resource.
    #[serde(rename = "-")]
    Gone(Kind, String),
    /// A resource that is sent though the client does not request this name.
    #[serde(rename = "*")]
    Extra(Resource),
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Kind {
    #[serde(rename = "lds")]
    Listener,
    #[serde(rename = "rds")]
    Routes,
    #[serde(rename = "cds")]
    Cluster,
    #[serde(rename = "eds")]
    Endpoints,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Listener, Self::Routes, Self::Cluster, Self::Endpoints];

    pub fn short(self) -> &'static str {
        match self {
            Self::Listener => "lds",
            Self::Routes => "rds",
            Self::Cluster => "cds",
            Self::Endpoints => "eds",
        }
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Resource {
    L(Listener),
    R(Routes),
    C(Cluster),
    E(Assignment),
}

impl Resource {
    pub fn kind(&self) -> Kind {
        match self {
            Self::L(_) => Kind::Listener,
            Self::R(_) => Kind::Routes,
            Self::C(_) => Kind::Cluster,
            Self::E(_) => Kind::Endpoints,
        }
    }

    /// Returns the name of the resource; a listener has that of the target.
    pub fn name<'a>(&'a self, target: &'a str) -> &'a str {
        match self {
            Self::L(listener) => listener.name.as_deref().unwrap_or(target),
            Self::R(routes) => &routes.name,
            Self::C(cluster) => &cluster.name,
            Self::E(assignment) => &assignment.name,
        }
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Listener {
    /// A name other than the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub of: ListenerOf,
    /// Whether a filter aborts all calls: it makes the listener that is in use visible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abort: bool,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum ListenerOf {
    Rds(String),
    RdsSelf(String),
    RdsPath(String),
    RdsApi(String),
    RdsNoSource(String),
    RdsNoName,
    Inline(Routes),
    /// An address as well.
    Both(String),
    Socket,
    Neither,
    NotHttp,
    TypedStruct,
    Garbage,
    NoRoutes,
    Scoped,
    /// The bytes of the whole resource can't be decoded.
    Broken,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Routes {
    pub name: String,
    pub hosts: Vec<Host>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<Plugin>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken: bool,
}

/// A cluster specifier plugin of an unsupported type.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Plugin {
    pub name: String,
    pub optional: bool,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Host {
    #[serde(default = "all", skip_serializing_if = "is_all")]
    pub domains: Vec<String>,
    /// The call with number `i` is for the route at place `i`.
    pub routes: Vec<Route>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Route {
    #[serde(default, skip_serializing_if = "Match::is_prefix")]
    pub at: Match,
    pub to: Action,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Match {
    #[default]
    Prefix,
    Path,
    Query,
    /// No `match` at all.
    Absent,
    /// A match without a path specifier.
    Empty,
    Connect,
    Separated,
    /// A prefix or a path that no method of gRPC has.
    OddPrefix(String),
    OddPath(String),
}

impl Match {
    fn is_prefix(&self) -> bool {
        *self == Self::Prefix
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Action {
    To(String),
    Weighted(Vec<(String, Option<u32>)>),
    Plugin(String),
    Header,
    InlinePlugin,
    /// A route action without a cluster.
    Unset,
    Redirect,
    Direct,
    NonForwarding,
    Nothing,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Cluster {
    pub name: String,
    pub of: ClusterOf,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum ClusterOf {
    /// With this service name, or under the cluster's own.
    Eds(Option<String>),
    EdsSelf,
    EdsPath,
    EdsNoSource,
    EdsNoConfig,
    Static,
    StrictDns,
    OriginalDst,
    NoKind,
    UnknownKind,
    Dns(Dns),
    Aggregate(Vec<String>),
    /// Of another name than Envoy's.
    AggregateNamed(Vec<String>),
    /// With the load balancing policy that Envoy requires.
    AggregateProvided(Vec<String>),
    AggregateGarbage,
    LeastRequest,
    LrsSelf,
    LrsAds,
    Broken,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Dns {
    /// The address of a backend.
    Backend(u8),
    NoAssignment,
    NoLocality,
    TwoLocalities,
    NoEndpoint,
    TwoEndpoints,
    Pipe,
    Resolver,
    NoHost,
    NoPort,
    PortZero,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Assignment {
    pub name: String,
    pub at: Vec<Locality>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<Drop>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overprovisioned: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken: bool,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Locality {
    /// The number of the region; `None` without a `locality`.
    pub id: Option<u8>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: Option<u32>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: u32,
    pub ends: Vec<End>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leds: bool,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct End {
    pub to: Address,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// The number of the health status.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub health: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<Address>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Address {
    #[serde(rename = "b")]
    Backend(u8),
    /// An address at which no server listens.
    #[serde(rename = "dead")]
    Dead(u8),
    /// An IP address in this spelling, at which no server listens.
    Ip(String),
    Port(u32),
    Host,
    Pipe,
    None,
    /// An endpoint by name instead of an address.
    Named,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Drop {
    pub category: String,
    /// The numerator, and the number of the denominator.
    pub amount: Option<(u32, u32)>,
}

fn one() -> Option<u32> {
    Some(1)
}

#[expect(clippy::ref_option, reason = "as serde calls it")]
fn is_one(weight: &Option<u32>) -> bool {
    *weight == one()
}

fn all() -> Vec<String> {
    vec!["*".into()]
}

fn is_all(domains: &[String]) -> bool {
    domains == all()
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl Case {
    /// Returns the greatest number of routes of a virtual host: this many calls show which routes are in use.
    pub fn calls(&self) -> usize {
        let resources = self.steps.iter().flat_map(|step| &step.changes).filter_map(Change::resource);
        resources
            .filter_map(Resource::routes)
            .flat_map(|routes| &routes.hosts)
            .map(|host| host.routes.len())
            .max()
            .unwrap_or(0)
            .max(1)
    }

    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.steps.iter().flat_map(|step| &step.changes).filter_map(Change::resource)
    }
}

impl Change {
    pub fn resource(&self) -> Option<&Resource> {
        match self {
            Self::Put(resource) | Self::Extra(resource) => Some(resource),
            Self::Gone(..) => None,
        }
    }
}

impl Resource {
    /// Returns the routes of a RouteConfiguration, or of a listener that has its routes inside.
    pub fn routes(&self) -> Option<&Routes> {
        match self {
            Self::R(routes) | Self::L(Listener { of: ListenerOf::Inline(routes), .. }) => Some(routes),
            _ => None,
        }
    }
}
