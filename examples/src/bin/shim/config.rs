//! Reads the op `new`: the kind of machine, and the settings of `config` that differ from the defaults.

use std::time::Duration;

use examples::dialects;
use examples::line::{Fault, Line};
use serde_json::Map;
use xds_machine::message::Node;
use xds_machine::resource_type::{ResourceType, TypeRegistry};
use xds_machine::server::{Cache, ResponseLimit};
use xds_machine::{Delta, Sotw, client, server};

use crate::Machine;
use crate::client::ClientSide;
use crate::server::ServerSide;

const KEYS: [&str; 8] = ["op", "role", "variant", "auto", "node", "dialect", "full_state", "config"];

/// A key of `config`, and the limit that it sets.
type Limit<L> = (&'static str, fn(&mut L) -> &mut usize);

const CLIENT_LIMITS: [Limit<client::Limits>; 9] = [
    ("waiting_responses", |limits| &mut limits.waiting_responses),
    ("responses_per_stream", |limits| &mut limits.responses_per_stream),
    ("resources_per_response", |limits| &mut limits.resources_per_response),
    ("resources_per_type", |limits| &mut limits.resources_per_type),
    ("nonce_bytes", |limits| &mut limits.nonce_bytes),
    ("version_bytes", |limits| &mut limits.version_bytes),
    ("error_bytes", |limits| &mut limits.error_bytes),
    ("departed_names", |limits| &mut limits.departed_names),
    ("waiting_actions", |limits| &mut limits.waiting_actions),
];

const SERVER_LIMITS: [Limit<server::Limits>; 10] = [
    ("names_per_type", |limits| &mut limits.names_per_type),
    ("names_per_stream", |limits| &mut limits.names_per_stream),
    ("name_bytes_per_stream", |limits| &mut limits.name_bytes_per_stream),
    ("name_bytes", |limits| &mut limits.name_bytes),
    ("initial_versions", |limits| &mut limits.initial_versions),
    ("version_bytes", |limits| &mut limits.version_bytes),
    ("types", |limits| &mut limits.types),
    ("type_url_bytes", |limits| &mut limits.type_url_bytes),
    ("error_bytes", |limits| &mut limits.error_bytes),
    ("waiting_actions", |limits| &mut limits.waiting_actions),
];

/// The keys of a server's `config` that are not in the table of limits.
const SERVER_KEYS: [&str; 5] = ["portion", "wait_ms", "removal_hold_ms", "tombstones", "stale_requests"];

/// Creates the machine that `new` describes.
pub(crate) fn machine(new: Line<'_>) -> Result<Box<dyn Machine>, Fault> {
    new.check_keys("op \"new\"", &KEYS)?;
    let node = Node::new(new.text_or("node", "")?);
    let (client_dialect, server_dialect) = dialects::of_both(new.text_or("dialect", "spec")?).map_err(Fault::line)?;
    let types = types(new.list("full_state")?);
    let nothing = Map::new();
    let config = new.object("config")?.unwrap_or(Line(&nothing));
    let client = || client(config, client::Config::new(node).with_types(types.clone()).with_dialect(client_dialect));
    let server = || ServerConfig::read(config, types.clone(), server_dialect);
    Ok(match (new.text("role")?, new.text("variant")?) {
        ("client", "sotw") => Box::new(ClientSide::<Sotw>::new(client()?)),
        ("client", "delta") => Box::new(ClientSide::<Delta>::new(client()?)),
        ("server", "sotw") => Box::new(ServerSide::<Sotw>::new(server()?)),
        ("server", "delta") => Box::new(ServerSide::<Delta>::new(server()?)),
        (role, variant) => return Err(Fault::line(format!("no role {role:?} with variant {variant:?}"))),
    })
}

/// Returns the types of the xDS API and further full-state types. A type of the API keeps its place in the push order.
fn types(full_state: Vec<&str>) -> TypeRegistry {
    let types = TypeRegistry::default();
    let partial = full_state.into_iter().map(|url| types.get(&url.into())).filter(|known| !known.is_full_state());
    types.and(partial.map(|known| {
        let full_state = ResourceType::full_state(known.type_url().clone());
        full_state.with_push_order(known.push_order()).with_heartbeats(known.has_heartbeats())
    }))
}

fn client(line: Line<'_>, config: client::Config) -> Result<client::Config, Fault> {
    line.check_keys("\"config\" of a client", &CLIENT_LIMITS.map(|(key, _)| key))?;
    let mut limits = config.limits().clone();
    read_limits(line, &CLIENT_LIMITS, &mut limits)?;
    Ok(config.with_limits(limits))
}

fn read_limits<L>(line: Line<'_>, table: &[Limit<L>], limits: &mut L) -> Result<(), Fault> {
    for (key, limit) in table {
        if let Some(number) = line.number_if_any(key)? {
            *limit(limits) = count(number);
        }
    }
    Ok(())
}

/// A number that does not fit the type saturates: a limit that no count can exceed is no limit.
fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn count_u32(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The configuration of a server's streams and of their cache.
pub(crate) struct ServerConfig {
    types: TypeRegistry,
    dialect: server::Dialect,
    limits: server::Limits,
    response_limit: ResponseLimit,
    answer_wait: Option<Duration>,
    removal_delay: Option<Duration>,
    tombstones: Option<usize>,
}

impl ServerConfig {
    fn read(line: Line<'_>, types: TypeRegistry, dialect: server::Dialect) -> Result<Self, Fault> {
        let mut keys = Vec::from(SERVER_KEYS);
        keys.extend(SERVER_LIMITS.map(|(key, _)| key));
        line.check_keys("\"config\" of a server", &keys)?;
        let mut limits = server::Limits::default();
        read_limits(line, &SERVER_LIMITS, &mut limits)?;
        limits.stale_requests = line.number_if_any("stale_requests")?.map_or(limits.stale_requests, count_u32);
        let response_limit = line
            .number_if_any("portion")?
            .map(|number| ResponseLimit { resources: count(number), ..ResponseLimit::default() });
        Ok(Self {
            types,
            dialect,
            limits,
            response_limit: response_limit.unwrap_or_default(),
            answer_wait: line.number_if_any("wait_ms")?.map(Duration::from_millis),
            removal_delay: line.number_if_any("removal_hold_ms")?.map(Duration::from_millis),
            tombstones: line.number_if_any("tombstones")?.map(count),
        })
    }

    /// Returns the configuration of a stream: of the single-type service of a type, or of the aggregated service.
    pub(crate) fn stream(&self, type_url: Option<&str>) -> server::Config {
        let config = type_url.map_or_else(server::Config::ads, server::Config::single);
        let config = config.with_types(self.types.clone()).with_dialect(self.dialect);
        let mut config = config.with_limits(self.limits.clone()).with_response_limit(self.response_limit);
        if let Some(wait) = self.answer_wait {
            config = config.with_answer_wait(wait);
        }
        if let Some(hold) = self.removal_delay {
            config = config.with_removal_delay(hold).with_sotw_removal_delay();
        }
        config
    }

    pub(crate) fn cache(&self) -> Cache {
        let cache = Cache::new(1);
        match self.tombstones {
            Some(tombstones) => cache.with_tombstones(tombstones),
            None => cache,
        }
    }
}
