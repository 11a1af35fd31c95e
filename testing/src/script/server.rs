//! Plays the client and the store against a server machine.

use xds_machine::message::{Node, feature};
use xds_machine::resource_type::{ResourceType, TypeRegistry};
use xds_machine::server::{
    Action, Cache, Config, Delivery, DeliveryStatus, Dialect, DropReason, Limits, Resource, ResponseLimit, Server,
    StreamId,
};
use xds_machine::{Status, TypeUrl};

use super::Player;
use super::notation::{Clock, Notation, Symbols, Words, body, read_duration, read_type, write_error, write_type};

pub(super) struct Script<V: Notation> {
    config: Config,
    streams: u64,
    server: Server<V>,
    cache: Cache,
    symbols: Symbols,
    clock: Clock,
    /// The node of the next stream's first request.
    node: Option<Node>,
    errors: Vec<String>,
    /// Whether the transport accepts responses.
    room: bool,
}

/// Makes a player. Options: `single=cds`, `full=TYPE`, `ttl` (the client supports TTLs), `wrapper` or `lone-ttl` (one
/// of the two features of that), `unknown` (the store is empty and unknown), `dialect=NAME`, `wait=TIME` (for an ACK),
/// `hold` (removals in SotW too), `portion=N` and `bytes=N` (of a response), `names=N` (the limit of a type),
/// `tombstones=N`, `node` (required).
pub(super) fn new<V: Notation>(options: &[&str]) -> Result<Script<V>, String> {
    let (mut config, mut node, mut cache) = (Config::ads(), Node::new("n"), Cache::new(1));
    let (mut types, mut response_limit) = (TypeRegistry::default(), ResponseLimit::default());
    for option in options {
        match option.split_once('=').unwrap_or((option, "")) {
            ("single", name) => config = Config::single(read_type(name)),
            ("full", name) => types = types.and([ResourceType::full_state(name)]),
            ("wait", time) => config = config.with_answer_wait(read_duration(time)?),
            ("hold", _) => config = config.with_sotw_removal_delay(),
            ("dialect", "istio") => config = config.with_dialect(Dialect::Istio),
            ("dialect", "go-control-plane") => config = config.with_dialect(Dialect::GoControlPlane),
            ("portion", count) => response_limit.resources = count.parse().map_err(|_| "a number")?,
            ("bytes", count) => response_limit.bytes = count.parse().map_err(|_| "a number")?,
            ("ttl", _) => node.client_features.extend([feature::TTL, feature::WRAPPER[0]].map(Into::into)),
            ("wrapper", _) => node.client_features.push(feature::WRAPPER[0].into()),
            ("lone-ttl", _) => node.client_features.push(feature::TTL.into()),
            ("unknown", _) => cache = Cache::unknown(1),
            ("names", count) => {
                let names_per_type = count.parse().map_err(|_| "a number")?;
                config = config.with_limits(Limits { names_per_type, ..Limits::default() });
            }
            ("tombstones", count) => cache = cache.with_tombstones(count.parse().map_err(|_| "a number")?),
            ("node", _) => config = config.with_node_required(),
            _ => return Err(format!("no option {option}")),
        }
    }
    config = config.with_types(types).with_response_limit(response_limit);
    let server = Server::new(config.clone(), StreamId(1));
    let (symbols, clock) = (Symbols::default(), Clock::default());
    Ok(Script { config, streams: 1, server, cache, symbols, clock, node: Some(node), errors: Vec::new(), room: true })
}

fn write_delivery(delivery: &Delivery) -> String {
    let status = match delivery.status {
        DeliveryStatus::NotSent => "not sent",
        DeliveryStatus::Sent => "sent",
        DeliveryStatus::Acknowledged => "acknowledged",
        _ => "rejected",
    };
    format!("{status}{}", if delivery.earlier { ", an earlier form was" } else { "" })
}

impl<V: Notation> Player for Script<V> {
    fn play(&mut self, line: &str) -> Result<(), String> {
        let words = Words::new(line);
        match *words.list() {
            ["put", kind, name, version, ref options @ ..] => {
                let mut resource = Resource::new(name, body(name, version)).with_version(version);
                for option in options {
                    resource = match option.split_once('=').ok_or("an option is `key=value`")? {
                        ("ttl", ttl) => resource.with_ttl(read_duration(ttl)?),
                        ("alias", aliases) => resource.with_aliases(aliases.split('~')),
                        ("eds", name) => {
                            let mut cluster = body(resource.name().as_str(), version);
                            cluster.extend_from_slice(&[0x1a, name.len() as u8 + 2, 0x12, name.len() as u8]);
                            cluster.extend_from_slice(name.as_bytes());
                            Resource::new(resource.name().clone(), cluster).with_version(version)
                        }
                        _ => return Err(format!("no option {option}")),
                    };
                }
                self.cache.insert(&read_type(kind), resource);
            }
            ["delete", kind, name] => _ = self.cache.remove(&read_type(kind), name),
            ["unknown", kind, name] => _ = self.cache.set_unknown(&read_type(kind), name),
            ["error", kind, name, code] => {
                let code = code.parse().map_err(|_| format!("{code} is no code"))?;
                self.cache.set_error(&read_type(kind), name, Status { code, message: format!("{name} {code}") });
            }
            ["known", kind] => self.cache.set_known(&read_type(kind)),
            ["batch", ref ops @ ..] => {
                for op in ops {
                    self.play(op.trim_matches('"'))?;
                }
            }
            ["wait", time] => {
                self.clock.0 = self.clock.0 + read_duration(time)?;
                self.server.handle_timeout(self.clock.0);
            }
            ["restart"] => self.cache = Cache::new(2),
            ["stream"] => {
                self.streams += 1;
                self.server = Server::new(self.config.clone(), StreamId(self.streams));
                self.symbols.new_stream();
                self.node.get_or_insert_with(|| Node::new("n"));
            }
            ["deliveries", kind] => self.deliveries(kind),
            ["delivery", kind, name] => {
                let delivery = self.server.delivery(&read_type(kind), name, &self.cache);
                let status = delivery.map_or("not subscribed to".into(), |delivery| write_delivery(&delivery));
                self.errors.push(format!("! {kind} {name} {status}"));
            }
            ["blocked"] => self.room = false,
            ["unblocked"] => self.room = true,
            ["nodeless"] => self.node = None,
            ["C>", ..] => {
                let mut request = V::read_request(Words::new(line.trim_start_matches("C>")), &self.symbols)?;
                V::give_node(&mut request, self.node.take());
                let before = self.server.clone();
                if let Err(error) = self.server.handle_request(self.clock.0, request) {
                    assert_eq!(self.server, before, "a refused request changes nothing");
                    self.errors.push(write_error(&error));
                }
            }
            _ => return Err("no such command".into()),
        }
        Ok(())
    }

    fn answers(&mut self) -> Vec<String> {
        let mut answers = std::mem::take(&mut self.errors);
        loop {
            while let Some(action) = self.server.poll_action() {
                answers.extend(self.action(action));
            }
            let Some(response) = self.poll() else { break };
            answers.push(V::write_response(&response, &mut self.symbols));
        }
        while let Some(action) = self.server.poll_action() {
            answers.extend(self.action(action));
        }
        assert_eq!(self.server.check_invariants().and(self.cache.check_invariants()), Ok(()));
        let due = self.server.poll_timeout().filter(|due| self.room && *due <= self.clock.0);
        assert_eq!(due, None, "a time that has come and stays makes a driver spin");
        answers
    }
}

impl<V: Notation> Script<V> {
    /// Returns the next response, encoded and decoded again.
    fn poll(&mut self) -> Option<V::Response> {
        let response = self.room.then(|| self.server.poll_transmit(self.clock.0, &self.cache))??;
        let mut bytes = Vec::with_capacity(response.encoded_len());
        response.encode(&mut bytes);
        assert_eq!(bytes.len(), response.encoded_len());
        let read = V::decode_response(bytes.into()).expect("a response");
        assert_eq!(read, V::message(&response), "what is written is what is meant");
        Some(read)
    }

    /// Prints the delivery of each resource of a type, with the client's error message.
    fn deliveries(&mut self, kind: &str) {
        let type_url = read_type(kind);
        for delivered in self.server.deliveries(&type_url, &self.cache) {
            let alone = self.server.delivery(&type_url, delivered.name.clone(), &self.cache);
            assert_eq!(alone, Some(delivered.delivery), "{}: alone and among all", delivered.name);
            let reason = delivered.rejection.map_or(String::new(), |reason| format!(": {reason}"));
            self.errors.push(format!("! {kind} {} {}{reason}", delivered.name, write_delivery(&delivered.delivery)));
        }
    }

    fn action(&mut self, action: Action) -> Option<String> {
        let symbols = &mut self.symbols;
        let mut of = |type_url: &TypeUrl, version: &str, nonce: &str| {
            let (version, nonce) = (symbols.write_version(type_url, version), symbols.write_nonce(nonce));
            format!("{} v={version} n={nonce}", write_type(type_url))
        };
        Some(match action {
            Action::Ack { type_url, version, nonce, .. } => {
                format!("! ack {}", of(&type_url, version.as_str(), nonce.as_str()))
            }
            Action::Nack { type_url, version, nonce, error, .. } => {
                format!("! nack {} {}", of(&type_url, version.as_str(), nonce.as_str()), error.message)
            }
            Action::Close(status) => format!("! close {status}"),
            Action::DropStale { type_url, reason, count, .. } => {
                let reason = match reason {
                    DropReason::NoNonce => "no nonce",
                    _ => "other nonce",
                };
                let count = if count > 1 { format!(" x{count}") } else { String::new() };
                format!("! stale {} {reason}{count}", write_type(&type_url))
            }
            _ => return None,
        })
    }
}
