//! What does not change during a run.

use std::sync::Arc;
use std::time::Duration;

use xds_machine::client::Dialect;
use xds_machine::message::Node;
use xds_machine::resource_type::{PushOrder, ResourceType, TypeRegistry};
use xds_machine::server::{ResponseLimit, Retry};
use xds_machine::{ResourceName, TypeUrl, client, server, type_url};

use super::{Budget, Bug};

/// The shape of a world. Begin with one of the constructors, and change what is to be different.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The types.
    pub types: Vec<TypeUrl>,
    /// Names; the wildcard may be one of them, and then is only subscribed to.
    pub names: Vec<ResourceName>,
    /// Whether the first type is one of full state.
    pub full_state: bool,
    /// Whether an empty first request of it asks for everything.
    pub legacy_wildcard: bool,
    /// How many clients there are.
    pub clients: usize,
    /// What may happen from outside, and how often.
    pub budget: Budget,
    /// Stale SotW requests never reach the server, as with go-control-plane and Istio, which drop them.
    pub strict_server: bool,
    /// After what time a name that was not answered does not exist.
    pub existence_timeout: Option<Duration>,
    /// How many removals the store remembers, if more than it has resources.
    pub tombstones: usize,
    /// The transport is slow: that it has taken a request is a step of its own.
    pub slow_transport: bool,
    /// Clusters that are gone stay until what refers to them has gone (SotW).
    pub hold: bool,
    /// How often what was rejected is sent again.
    pub retry: Option<u32>,
    /// How many resources and removals a response may hold.
    pub response_limit: Option<usize>,
    /// How many resources a page of the store has.
    pub page: Option<usize>,
    /// Which resources live for a limited time unless a heartbeat comes.
    pub ttl: Ttls,
    /// Nothing is known of a type before its first change.
    pub unknown: bool,
    /// How many names of a type the application wants at most, which is also the limit of the server; other limits are small
    /// too.
    pub limit: Option<usize>,
    /// What the client speaks.
    pub dialect: Dialect,
    /// Somebody is faulty.
    pub bug: Option<Bug>,
}

/// Which resources have a TTL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ttls {
    /// No resource has a TTL.
    None,
    /// Each resource has one.
    All,
    /// Two different ones, and none.
    Mixed,
}

/// The shortest TTL, of which a third is longer than any other time.
pub(super) const TTL: Duration = Duration::from_secs(90);

/// A setup with what is made of it once.
#[derive(Debug)]
pub struct Made {
    /// The shape that it was made from.
    pub setup: Setup,
    /// The configuration of each client.
    pub client: client::Config,
    /// The configuration of each server.
    pub server: server::Config,
}

impl std::ops::Deref for Made {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

impl Setup {
    fn new(types: &[&str], full_state: bool, names: &[&str], budget: Budget) -> Self {
        Self {
            types: types.iter().map(|&url| url.into()).collect(),
            names: names.iter().map(|&name| name.into()).collect(),
            full_state,
            legacy_wildcard: full_state,
            clients: 1,
            budget,
            strict_server: false,
            existence_timeout: Some(Duration::from_secs(15)),
            tombstones: 10_000,
            slow_transport: false,
            hold: false,
            retry: None,
            response_limit: None,
            page: None,
            ttl: Ttls::None,
            unknown: false,
            limit: None,
            dialect: Dialect::Spec,
            bug: None,
        }
    }

    /// One type of which SotW responses have everything, as CDS.
    pub fn full_state(names: &[&str], budget: Budget) -> Self {
        Self::new(&[type_url::CLUSTER], true, names, budget)
    }

    /// One type of which SotW responses have what is new, as EDS.
    pub fn partial(names: &[&str], budget: Budget) -> Self {
        Self::new(&[type_url::ENDPOINT], false, names, budget)
    }

    /// As CDS, with structured names, which may be those of collections.
    pub fn collection(names: &[&str], budget: Budget) -> Self {
        Self::new(&["T"], true, names, budget).legacy_wildcard(false)
    }

    /// One stream for two types, of which the second is the parent of the first: a cluster that changed needs its
    /// endpoints again.
    pub fn warming(names: &[&str], budget: Budget) -> Self {
        Self::new(&[type_url::ENDPOINT, type_url::CLUSTER], true, names, budget)
    }

    /// One stream for two types, of which the first refers to the second: listeners wait for clusters, and clusters
    /// go away last.
    pub fn order(names: &[&str], budget: Budget) -> Self {
        Self::new(&[type_url::LISTENER, type_url::CLUSTER], true, names, budget)
    }

    /// The server takes no request whose nonce is not its last.
    pub fn strict_server(self) -> Self {
        Self { strict_server: true, ..self }
    }

    /// Names that are not answered stay unknown.
    pub fn no_existence_timeout(self) -> Self {
        Self { existence_timeout: None, ..self }
    }

    /// Sets whether an empty first request asks for everything.
    pub fn legacy_wildcard(self, legacy_wildcard: bool) -> Self {
        Self { legacy_wildcard, ..self }
    }

    /// A request is under way to the transport for a while.
    pub fn slow_transport(self) -> Self {
        Self { slow_transport: true, ..self }
    }

    /// Sets how many removals the store remembers.
    pub fn tombstones(self, tombstones: usize) -> Self {
        Self { tombstones, ..self }
    }

    /// Sets how many clients there are.
    pub fn clients(self, clients: usize) -> Self {
        Self { clients, ..self }
    }

    /// Removals in SotW stay back until what refers to them is gone.
    pub fn hold(self) -> Self {
        Self { hold: true, ..self }
    }

    /// What is rejected is sent again so many times.
    pub fn retry(self, times: u32) -> Self {
        Self { retry: Some(times), ..self }
    }

    /// Answers go in portions of so many resources.
    pub fn response_limit(self, response_limit: usize) -> Self {
        Self { response_limit: Some(response_limit), ..self }
    }

    /// Pages of this many resources.
    pub fn page(self, page: usize) -> Self {
        Self { page: Some(page), ..self }
    }

    /// Everything in the store has a TTL.
    pub fn ttl(self) -> Self {
        Self { ttl: Ttls::All, ..self }
    }

    /// Resources have one of two TTLs, or none.
    pub fn mixed_ttls(self) -> Self {
        Self { ttl: Ttls::Mixed, ..self }
    }

    /// Nothing is known of a type before its first change.
    pub fn unknown(self) -> Self {
        Self { unknown: true, ..self }
    }

    /// The server takes so many names of a type.
    pub fn limit(self, limit: usize) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// The TTL of a resource in the store.
    pub fn ttl_of(&self, name: &ResourceName) -> Option<Duration> {
        match self.ttl {
            Ttls::None => None,
            Ttls::All => Some(TTL),
            Ttls::Mixed => [Some(TTL), None, Some(TTL * 5 / 3)][self.name_number(name.as_str()) % 3],
        }
    }

    /// The TTL of a resource that the client is told of.
    pub fn told_ttl_of(&self, name: &ResourceName) -> Option<Duration> {
        self.ttl_of(name).filter(|_| self.tells_ttls())
    }

    /// Whether the client is told of TTLs.
    pub fn tells_ttls(&self) -> bool {
        self.ttl != Ttls::None && self.dialect != Dialect::Grpc
    }

    /// Whether the store may forget what a client should hear.
    pub fn is_forgetful(&self) -> bool {
        self.tombstones < 10
    }

    /// Sets the dialect of the clients.
    pub fn dialect(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }

    /// Seeds a bug.
    pub fn bug(self, bug: Bug) -> Self {
        Self { bug: Some(bug), ..self }
    }

    /// Makes what never changes in a world.
    pub fn make(self) -> Arc<Made> {
        let known = TypeRegistry::default();
        let kind = |url: &TypeUrl| {
            let kind = if self.full_state {
                ResourceType::full_state(url.clone())
            } else {
                ResourceType::partial(url.clone())
            };
            kind.with_legacy_wildcard(self.legacy_wildcard).with_push_order(known.get(url).push_order())
        };
        let types = TypeRegistry::new(self.types.iter().map(kind));
        // A server that knows no order of types: all are alike.
        let unordered = self.types.iter().map(|url| kind(url).with_push_order(PushOrder::Other));
        let server_types = if self.bug == Some(Bug::WrongOrder) { TypeRegistry::new(unordered) } else { types.clone() };
        let response_limit =
            ResponseLimit { resources: self.response_limit.unwrap_or(usize::MAX), ..ResponseLimit::default() };
        let server = server::Config::ads().with_types(server_types).with_response_limit(response_limit);
        let server = if self.hold { server.with_sotw_removal_delay() } else { server };
        let retry = self.retry.map(|times| Retry { after: Duration::from_secs(10), times });
        let server = retry.into_iter().fold(server, server::Config::with_retry);
        let client = client::Config::new(Node::new("n"))
            .with_dialect(self.dialect)
            .with_types(types)
            .with_existence_timeout(self.existence_timeout);
        let (client, server) = match self.limit {
            None => (client, server),
            Some(names) => (client.with_limits(client_limits()), server.with_limits(self.server_limits(names))),
        };
        Arc::new(Made { client, server, setup: self })
    }

    /// As small as a client that keeps the rules allows.
    fn server_limits(&self, names: usize) -> server::Limits {
        server::Limits {
            names_per_type: names,
            names_per_stream: names * self.types.len(),
            types: self.types.len(),
            ..server::Limits::default()
        }
    }

    /// Returns the number of a type.
    pub fn type_number(&self, type_url: &TypeUrl) -> usize {
        self.types.iter().position(|known| known == type_url).expect("one of the world's types")
    }

    /// Returns the number of a name.
    pub fn name_number(&self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).expect("one of the world's names")
    }
}

fn client_limits() -> client::Limits {
    client::Limits { waiting_responses: 1, departed_names: 0, ..client::Limits::default() }
}
