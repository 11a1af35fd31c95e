//! Plays cases to this project's client: the machine of the transport, its watches, the decoders and the chain, in
//! process and without time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use xds_machine::client::{Action, Client, Config, Dialect, Resource};
use xds_machine::message::Node;
use xds_machine::{Instant, Sotw, TypeUrl};
use xds_machine_grpc::chain::{self, Chain, Linked, Target};
use xds_machine_grpc::endpoints::Assignment;
use xds_machine_grpc::faults::Faults;
use xds_machine_grpc::ledgers::{Ledgers, Lookup};
use xds_machine_grpc::resources::{self, Cluster, Context, Listener, Routes, View};

use super::answer::{Call, NAMELESS, Seen, TARGET};
use super::calls::{self, Leaves};
use super::case::{self, Case, Kind};
use super::server::Server;

/// A decoded resource.
#[derive(Debug, Eq, PartialEq)]
pub enum Value {
    Listener(View<Listener>),
    Routes(View<Routes>),
    Cluster(View<Cluster>),
    Endpoints(View<Assignment>),
}

pub type Outcome = Result<chain::Config<Arc<Value>>, chain::Failure>;

/// The ports of the backends, by which endpoints are recognised again.
pub const PORTS: [u16; 6] = [10_000, 10_001, 10_002, 10_003, 10_004, 10_005];

/// A time that no resource timer survives, and a time that each does.
const LONG: Duration = Duration::from_secs(17);
const SHORT: Duration = Duration::from_secs(1);

struct Player {
    now: Instant,
    client: Client<Sotw>,
    ledgers: Ledgers<Arc<Value>>,
    chain: Chain<Arc<Value>>,
    /// The configuration in use, or the error in its place.
    told: Option<Outcome>,
    server: Server,
    rejected: BTreeSet<(Kind, String)>,
}

/// The observations after a step.
pub struct Step {
    pub seen: Seen,
    /// The possible results of each call: there may be several clusters to choose from.
    pub calls: Vec<BTreeSet<Call>>,
    /// The same with C-core's choice of the leaves of aggregates.
    pub as_core: Vec<BTreeSet<Call>>,
    /// The same with the leaves by the rules, walked by the oracle itself.
    pub by_rule: Vec<BTreeSet<Call>>,
    /// Whether the target can't be used at all.
    pub is_failed: bool,
    /// Whether the target could not be used before the step.
    pub was_failed: bool,
    /// The resources that the server has.
    pub served: BTreeSet<(Kind, String)>,
}

/// Plays a case.
pub fn play(case: &Case) -> Vec<Step> {
    let authority = if case.authority.is_empty() { TARGET } else { &case.authority };
    let node = Node::new("oracle");
    let mut player = Player {
        now: Instant::EPOCH,
        client: Client::new(Config::new(node).with_dialect(Dialect::Grpc)),
        ledgers: Ledgers::new(),
        chain: Chain::new(TARGET, authority),
        told: None,
        server: Server::default(),
        rejected: BTreeSet::new(),
    };
    player.client.handle_open();
    let count = case.calls();
    case.steps.iter().map(|step| player.step(step, count)).collect()
}

impl Player {
    fn step(&mut self, step: &case::Step, calls: usize) -> Step {
        self.rejected.clear();
        let was_failed = matches!(self.told, Some(Err(_)));
        self.server.step(step, &PORTS);
        self.pump();
        self.pass(if step.wait { LONG } else { SHORT });
        let names = Kind::ALL.map(|kind| (kind, self.server.wanted.get(&kind).cloned().unwrap_or_default())).into();
        let results = |leaves| (0..calls).map(|number| calls::results(self.told.as_ref(), number, leaves)).collect();
        let is_failed = matches!(self.told, Some(Err(_)));
        let seen = Seen { names, rejected: self.rejected.clone(), calls: vec![] };
        Step {
            seen,
            calls: results(Leaves::OfEachRoot),
            as_core: results(Leaves::OfTheFirstRoot),
            by_rule: results(Leaves::ByTheRule),
            is_failed,
            was_failed,
            served: self.server.served(),
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = Instant::from_epoch(self.now.since_epoch() + time);
        while let Some(next) = self.client.poll_timeout().filter(|next| *next <= end) {
            self.now = next.max(self.now);
            self.client.handle_timeout(self.now);
            self.pump();
        }
        self.now = end;
    }

    /// Does all pending work, as a driver does.
    fn pump(&mut self) {
        loop {
            while let Some(action) = self.client.poll_action() {
                if let Action::Rejected { type_url, faults, .. } = &action {
                    let names = faults.iter().map(|fault| fault.name.as_ref().map_or(NAMELESS, |name| name.as_str()));
                    self.rejected.extend(names.filter_map(|name| Some((kind(type_url)?, name.to_owned()))));
                }
                self.ledgers.handle_action(action, decode);
            }
            while let Some(verdict) = self.ledgers.poll_verdict() {
                let names = verdict.rejections().iter().filter_map(|rejection| rejection.name.as_ref());
                self.rejected
                    .extend(names.filter_map(|name| Some((kind(verdict.type_url())?, name.as_str().to_owned()))));
                self.client.handle_verdict(self.now, verdict).expect("a verdict of this client");
            }
            let mut lookups = Vec::new();
            let outcome = self.ledgers.settle(&mut self.chain, &mut self.client, |lookup| lookups.push(lookup));
            let is_new = outcome.is_some();
            self.told = outcome.or_else(|| self.told.take());
            for lookup in &lookups {
                let Lookup::Begin(host) = lookup else { continue };
                let address = format!("{}:{}", host.host, host.port).parse();
                self.chain.handle_resolved(host, address.map(|one| vec![one]).map_err(|_| "no address".to_owned()));
            }
            if is_new || !lookups.is_empty() {
                continue;
            }
            while let Some(transmit) = self.client.poll_transmit() {
                self.client.handle_sent(self.now, transmit.sent);
                self.server.request(&transmit.request);
            }
            let Some(response) = self.server.responses.pop_front() else { return };
            self.client.handle_response(self.now, response).expect("the server keeps to the protocol");
        }
    }
}

fn decode(target: &Target, resource: Resource<'_>) -> Result<Linked<Arc<Value>>, Faults> {
    let (name, body, context) = (resource.name(), resource.body(), &Context::default());
    let linked = |links, value| Linked::new(links, Arc::new(value));
    Ok(match target {
        Target::Listener(_) => {
            let view = resources::decode_listener(name, body, context)?;
            linked(view.links(), Value::Listener(view))
        }
        Target::Routes(_) => {
            let view = resources::decode_routes(name, body, context)?;
            linked(view.links(), Value::Routes(view))
        }
        Target::Cluster(_) => {
            let view = resources::decode_cluster(name, body, context)?;
            linked(view.links(), Value::Cluster(view))
        }
        Target::Endpoints(_) | Target::Dns(_) => {
            let view = resources::decode_endpoints(name, body, context)?;
            linked(view.links(), Value::Endpoints(view))
        }
    })
}

fn kind(type_url: &TypeUrl) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.type_url() == type_url.as_str())
}
