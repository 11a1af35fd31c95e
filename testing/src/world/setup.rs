//! The immutable part of a run.

use std::sync::Arc;
use std::time::Duration;

use xds_machine::client::Dialect;
use xds_machine::message::Node;
use xds_machine::resource_type::{PushOrder, ResourceType, TypeRegistry};
use xds_machine::server::ResponseLimit;
use xds_machine::{ResourceName, TypeUrl, client, server, type_url};

use super::{Budget, Bug};

/// The shape of a world. Begin with one of the constructors, and change individual fields.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The types.
    pub types: Vec<TypeUrl>,
    /// The names; the wildcard may be one of them, only for subscriptions.
    pub names: Vec<ResourceName>,
    /// Whether the first type is a full-state type.
    pub full_state: bool,
    /// Whether an empty first request of the first type subscribes to the wildcard.
    pub legacy_wildcard: bool,
    /// The number of clients.
    pub clients: usize,
    /// The events of the environment, and their counts.
    pub budget: Budget,
    /// Stale SotW requests never reach the server, as with go-control-plane and Istio, which drop them.
    pub strict_server: bool,
    /// The time after which a resource without a response does not exist.
    pub existence_timeout: Option<Duration>,
    /// The number of removals that the store remembers, if larger than its number of resources.
    pub tombstones: usize,
    /// The transport is slow: taking a request is a separate step.
    pub slow_transport: bool,
    /// Removed clusters stay until the resources that refer to them are removed (SotW).
    pub hold: bool,
    /// The number of resources and removals that a response may hold.
    pub response_limit: Option<usize>,
    /// The number of resources in a page of the store.
    pub page: Option<usize>,
    /// The resources that expire without a heartbeat.
    pub ttl: Ttls,
    /// Nothing is known of a type before its first change.
    pub unknown: bool,
    /// The maximum number of subscribed names of a type, which is also the limit of the server; other limits are small
    /// as well.
    pub limit: Option<usize>,
    /// The time that the server waits for an ACK or NACK. Zero: the server does not wait.
    pub answer_wait: Duration,
    /// The verdict on clusters waits for their endpoints.
    pub warms: bool,
    /// The dialect of the client.
    pub dialect: Dialect,
    /// The transport has room for one response, until its ACK or NACK.
    pub room: bool,
    /// Each resource has a record of how long it waits and of what was delivered, which multiplies the states: for walks.
    pub recorded: bool,
    /// The seeded bug.
    pub bug: Option<Bug>,
}

/// The resources that have a TTL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ttls {
    /// No resource has a TTL.
    None,
    /// Each resource has a TTL.
    All,
    /// Resources have one of two TTLs, or none, and change it with their content.
    Mixed,
}

/// The shortest TTL. A third of it is longer than any other time.
pub(super) const TTL: Duration = Duration::from_secs(90);

/// A setup with the values that are derived from it once.
#[derive(Debug)]
pub struct Made {
    /// The setup itself.
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
            response_limit: None,
            page: None,
            ttl: Ttls::None,
            unknown: false,
            limit: None,
            answer_wait: Duration::from_secs(1),
            warms: false,
            dialect: Dialect::Spec,
            room: false,
            recorded: false,
            bug: None,
        }
    }

    /// Makes a setup of one type whose SotW responses have all resources, like CDS.
    pub fn full_state(names: &[&str], budget: Budget) -> Self {
        Self::new(&[type_url::CLUSTER], true, names, budget)
    }

    /// Makes a setup of one type whose SotW responses have changed resources, like EDS.
    pub fn partial(names: &[&str], budget: Budget) -> Self {
        Self::new(&[type_url::ENDPOINT], false, names, budget)
    }

    /// Makes a setup like CDS, with structured names, which may be those of collections.
    pub fn collection(names: &[&str], budget: Budget) -> Self {
        Self::new(&["T"], true, names, budget).legacy_wildcard(false)
    }

    /// Makes a setup of one stream for two types, of which the second is the parent of the first: a changed cluster
    /// needs its endpoints again.
    pub fn warming(names: &[&str], budget: Budget) -> Self {
        Self::new(&[type_url::ENDPOINT, type_url::CLUSTER], true, names, budget)
    }

    /// Makes a setup of one stream for two types, of which the first refers to the second: listeners wait for clusters,
    /// and clusters are removed last.
    pub fn order(names: &[&str], budget: Budget) -> Self {
        Self::new(&[type_url::LISTENER, type_url::CLUSTER], true, names, budget)
    }

    /// Makes the server drop requests whose nonce is not its last.
    pub fn strict_server(self) -> Self {
        Self { strict_server: true, ..self }
    }

    /// Disables the existence timeout: names without a response stay unknown.
    pub fn no_existence_timeout(self) -> Self {
        Self { existence_timeout: None, ..self }
    }

    /// Sets whether an empty first request subscribes to the wildcard.
    pub fn legacy_wildcard(self, legacy_wildcard: bool) -> Self {
        Self { legacy_wildcard, ..self }
    }

    /// Makes the transport slow: it takes a request in a separate step.
    pub fn slow_transport(self) -> Self {
        Self { slow_transport: true, ..self }
    }

    /// Sets the number of removals that the store remembers.
    pub fn tombstones(self, tombstones: usize) -> Self {
        Self { tombstones, ..self }
    }

    /// Sets the number of clients.
    pub fn clients(self, clients: usize) -> Self {
        Self { clients, ..self }
    }

    /// Defers removals in SotW until the resources that refer to them are removed.
    pub fn hold(self) -> Self {
        Self { hold: true, ..self }
    }

    /// Sets the number of resources in a response.
    pub fn response_limit(self, response_limit: usize) -> Self {
        Self { response_limit: Some(response_limit), ..self }
    }

    /// Sets the number of resources in a page.
    pub fn page(self, page: usize) -> Self {
        Self { page: Some(page), ..self }
    }

    /// Gives every resource in the store a TTL.
    pub fn ttl(self) -> Self {
        Self { ttl: Ttls::All, ..self }
    }

    /// Gives resources one of two TTLs, or none.
    pub fn mixed_ttls(self) -> Self {
        Self { ttl: Ttls::Mixed, ..self }
    }

    /// Makes types unknown before their first change.
    pub fn unknown(self) -> Self {
        Self { unknown: true, ..self }
    }

    /// Sets the server's limit of names of a type.
    pub fn limit(self, limit: usize) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Returns the TTL of a resource with this content. The longer one is so long that the shorter ones run out between
    /// its heartbeats.
    pub fn ttl_of(&self, name: &ResourceName, content: u8) -> Option<Duration> {
        match self.ttl {
            Ttls::None => None,
            Ttls::All => Some(TTL),
            Ttls::Mixed => {
                [Some(TTL), None, Some(TTL * 4)][(self.name_number(name.as_str()) + usize::from(content)) % 3]
            }
        }
    }

    /// Returns the TTL of a resource as sent to the client.
    pub fn told_ttl_of(&self, name: &ResourceName, content: u8) -> Option<Duration> {
        self.ttl_of(name, content).filter(|_| self.tells_ttls())
    }

    /// Returns whether TTLs are sent to the client.
    pub fn tells_ttls(&self) -> bool {
        self.ttl != Ttls::None && self.dialect != Dialect::Grpc
    }

    /// Makes a server that does not wait for ACKs.
    pub fn hasty_server(self) -> Self {
        Self { answer_wait: Duration::ZERO, ..self }
    }

    /// Makes the verdict on clusters wait for their endpoints.
    pub fn warms(self) -> Self {
        Self { warms: true, ..self }
    }

    /// Returns whether the store may forget a removal that a client has not received.
    pub fn is_forgetful(&self) -> bool {
        self.tombstones < 10
    }

    /// Sets the dialect of the clients.
    pub fn dialect(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }

    /// Makes a transport with room for one response, until its ACK or NACK.
    pub fn room(self) -> Self {
        Self { room: true, ..self }
    }

    /// Keeps records of the waits and deliveries of each resource.
    pub fn recorded(self) -> Self {
        Self { recorded: true, ..self }
    }

    /// Makes a setup of one stream for two types that have nothing to do with each other.
    pub fn independent(names: &[&str], budget: Budget) -> Self {
        Self::new(&["T", "U"], false, names, budget)
    }

    /// Seeds a bug.
    pub fn bug(self, bug: Bug) -> Self {
        Self { bug: Some(bug), ..self }
    }

    /// Derives the immutable part of a world.
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
        // A server without a push order: all types have the same position.
        let unordered = self.types.iter().map(|url| kind(url).with_push_order(PushOrder::Other));
        let server_types = if self.bug == Some(Bug::WrongOrder) { TypeRegistry::new(unordered) } else { types.clone() };
        let response_limit =
            ResponseLimit { resources: self.response_limit.unwrap_or(usize::MAX), ..ResponseLimit::default() };
        let server = server::Config::ads().with_types(server_types).with_response_limit(response_limit);
        let wait = if self.bug == Some(Bug::WaitsForEver) { Duration::MAX } else { self.answer_wait };
        let server = server.with_answer_wait(wait);
        let server = if self.hold { server.with_sotw_removal_delay() } else { server };
        let client = client::Config::new(Node::new("n"))
            .with_dialect(self.dialect)
            .with_types(types)
            .with_existence_timeout(self.existence_timeout);
        let server = server.with_limits(self.server_limits());
        let client = if self.limit.is_some() { client.with_limits(client_limits()) } else { client };
        Arc::new(Made { client, server, setup: self })
    }

    /// Returns the smallest limits that a conforming client stays within, as many requests as it sends before it reads.
    fn server_limits(&self) -> server::Limits {
        let limits = server::Limits { stale_requests: 0, waiting_actions: 0, ..server::Limits::default() };
        let Some(names) = self.limit else { return limits };
        server::Limits {
            names_per_type: names,
            names_per_stream: names * self.types.len(),
            types: self.types.len(),
            ..limits
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
    client::Limits { waiting_responses: 8, departed_names: 0, ..client::Limits::default() }
}
