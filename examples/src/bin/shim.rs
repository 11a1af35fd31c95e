//! The machines over standard input and output: a JSON object a line goes in, a JSON object a line comes out. With it
//! any language can drive a machine, replay a log, or test its own xDS peer. `tests/shim` has conversations with it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use examples::codec::Wire;
use examples::dialects;
use examples::element;
use examples::line::{Change, Fault, Line};
use serde_json::{Map, Value, json};
use xds_machine::client::{self, Client, Sent, Transmit, Update};
use xds_machine::message::Node;
use xds_machine::server::{self, Cache, Server, StreamId};
use xds_machine::{Delta, Instant, ResourceType, Sotw, Types};

type Out = Vec<Value>;

fn main() -> io::Result<()> {
    let mut shim = Shim::default();
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().split(b'\n') {
        let answer = shim.answer(&line?);
        match writeln!(out, "{answer}").and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            written => written?,
        }
    }
    Ok(())
}

#[derive(Default)]
struct Shim {
    machine: Option<Box<dyn Machine>>,
    auto: bool,
    now: Instant,
}

impl Shim {
    fn answer(&mut self, line: &[u8]) -> Value {
        let mut out = Vec::new();
        if let Err(fault) = self.run(line, &mut out) {
            out.push(fault.element());
        }
        self.drain(&mut out);
        let wait = self.due().map(|due| due.saturating_since(self.now).as_nanos().div_ceil(1_000_000) as u64);
        json!({ "out": out, "timeout_ms": wait })
    }

    fn run(&mut self, line: &[u8], out: &mut Out) -> Result<(), Fault> {
        let line = serde_json::from_slice::<Map<String, Value>>(line);
        let line = line.map_err(|error| Fault::line(format!("not a JSON object: {error}")))?;
        let line = Line(&line);
        match (line.text("op")?, &mut self.machine) {
            ("new", None) => {
                let auto = line.get("auto", "true or false", Value::as_bool)?.unwrap_or(true);
                (self.machine, self.auto) = (Some(new(line)?), auto);
            }
            ("new", Some(_)) => return Err(Fault::line("there is a machine already")),
            (op, None) => return Err(Fault::line(format!("op {op:?} before op \"new\""))),
            ("advance", Some(_)) => {
                let until = self.now + Duration::from_millis(line.number("ms")?);
                // As a driver that wakes up for each time-out.
                while let Some(due) = self.due().filter(|&due| self.now < due && due < until) {
                    self.pass(due, out);
                }
                self.pass(until, out);
            }
            (op, Some(machine)) => machine.run(op, line, self.now, out)?,
        }
        Ok(())
    }

    fn due(&self) -> Option<Instant> {
        self.machine.as_ref()?.due()
    }

    fn pass(&mut self, until: Instant, out: &mut Out) {
        self.now = until;
        self.machine.iter_mut().for_each(|machine| machine.timeout(until));
        self.drain(out);
    }

    fn drain(&mut self, out: &mut Out) {
        if let Some(machine) = self.machine.as_mut().filter(|_| self.auto) {
            machine.drain(self.now, out);
        }
    }
}

fn new(line: Line<'_>) -> Result<Box<dyn Machine>, Fault> {
    let (client_speaks, server_speaks) = dialects::of_both(line.text_or("dialect", "spec")?).map_err(Fault::line)?;
    let (types, further) = (Types::default(), line.list("full_state")?.into_iter());
    let further = further.filter(|&url| !types.get(&url.into()).is_full_state());
    let types = types.and(further.map(ResourceType::full_state));
    let config = client::Config::new(Node::new(line.text_or("node", "")?)).with_types(types.clone());
    let config = config.with_dialect(client_speaks);
    Ok(match (line.text("role")?, line.text("variant")?) {
        ("client", "sotw") => Box::new(ClientSide::<Sotw>::new(config)),
        ("client", "delta") => Box::new(ClientSide::<Delta>::new(config)),
        ("server", "sotw") => Box::new(ServerSide::<Sotw>::new(types, server_speaks)),
        ("server", "delta") => Box::new(ServerSide::<Delta>::new(types, server_speaks)),
        (role, variant) => return Err(Fault::line(format!("no role {role:?} with variant {variant:?}"))),
    })
}

/// What lines are done to.
trait Machine {
    fn run(&mut self, op: &str, line: Line<'_>, now: Instant, out: &mut Out) -> Result<(), Fault>;
    /// Polls until there is nothing more to say.
    fn drain(&mut self, now: Instant, out: &mut Out);
    fn due(&self) -> Option<Instant>;
    fn timeout(&mut self, now: Instant);
}

struct ClientSide<V: client::Variant> {
    client: Client<V>,
    sent: Option<Sent>,
    applies: u64,
    judging: BTreeMap<u64, Update>,
}

impl<V: client::Variant> ClientSide<V> {
    fn new(config: client::Config) -> Self {
        Self { client: Client::new(config), sent: None, applies: 0, judging: BTreeMap::new() }
    }

    fn act(&mut self, action: client::Action) -> Out {
        let client::Action::Apply(update) = action else { return element::client_action(&action) };
        self.applies += 1;
        let apply = element::apply(self.applies, &update);
        self.judging.insert(self.applies, update);
        vec![apply]
    }

    fn send(&mut self, transmit: &Transmit<<V as Wire>::Request>) -> Value
    where
        V: Wire,
    {
        self.sent = Some(transmit.sent);
        let pb = BASE64_STANDARD.encode(V::encode_request(&transmit.request));
        json!({ "send": { "intent": element::intent(transmit.intent), "pb": pb } })
    }
}

impl<V> Machine for ClientSide<V>
where
    V: Wire + client::Variant<Request = <V as Wire>::Request, Response = <V as Wire>::Response>,
{
    fn run(&mut self, op: &str, line: Line<'_>, now: Instant, out: &mut Out) -> Result<(), Fault> {
        let client = &mut self.client;
        match op {
            "subscribe" => client.subscribe(&line.type_url()?, line.names()?.into_iter().map(Into::into))?,
            "unsubscribe" => client.unsubscribe(&line.type_url()?, line.names()?),
            "refetch" => client.refetch(&line.type_url()?, line.names()?),
            "open" => client.handle_open(now),
            "close" => client.handle_close(now),
            "response" => client.handle_response(now, V::decode_response(line.base64("pb")?)?)?,
            "verdict" => {
                let (id, rejections) = (line.number("id")?, line.rejections()?);
                let update = self.judging.get(&id).cloned();
                let update = update.ok_or_else(|| Fault::line(format!("no apply {id} waits for a verdict")))?;
                client.handle_verdict(now, update.reject(rejections))?;
                self.judging.remove(&id);
            }
            "sent" => self.sent.into_iter().for_each(|sent| client.handle_sent(now, sent)),
            "poll_action" => {
                let action = client.poll_action();
                out.extend(action.into_iter().flat_map(|action| self.act(action)));
            }
            "poll_transmit" => {
                let transmit = client.poll_transmit();
                out.extend(transmit.map(|transmit| self.send(&transmit)));
            }
            _ => return Err(Fault::line(format!("no op {op:?} for a client"))),
        }
        Ok(())
    }

    fn drain(&mut self, now: Instant, out: &mut Out) {
        loop {
            while let Some(action) = self.client.poll_action() {
                out.extend(self.act(action));
            }
            let Some(transmit) = self.client.poll_transmit() else { break };
            out.push(self.send(&transmit));
            self.client.handle_sent(now, transmit.sent);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.client.poll_timeout()
    }

    fn timeout(&mut self, now: Instant) {
        self.client.handle_timeout(now);
    }
}

struct ServerSide<V: server::Variant> {
    cache: Cache,
    types: Types,
    dialect: server::Dialect,
    /// Counts the streams: a caller may use a number again, but no nonce comes again.
    opened: u64,
    /// By the caller's number. `None`: it was told to close, and is deaf and dumb.
    streams: BTreeMap<u64, Option<Server<V>>>,
}

impl<V: Wire + server::Variant<Request = <V as Wire>::Request>> ServerSide<V> {
    fn new(types: Types, dialect: server::Dialect) -> Self {
        Self { cache: Cache::new(1), types, dialect, opened: 0, streams: BTreeMap::new() }
    }

    fn open(&mut self, line: Line<'_>) -> Result<(), Fault> {
        let stream = line.number("stream")?;
        if let Some(Some(_)) = self.streams.get(&stream) {
            return Err(Fault::line(format!("stream {stream} is open already")));
        }
        let only = line.get("type_url", "a string", Value::as_str)?;
        let config = only.map_or_else(server::Config::ads, server::Config::single);
        let config = config.with_types(self.types.clone()).with_dialect(self.dialect);
        self.opened += 1;
        self.streams.insert(stream, Some(Server::new(config, StreamId(self.opened))));
        Ok(())
    }

    fn of_stream(&mut self, op: &str, line: Line<'_>, now: Instant, out: &mut Out) -> Result<(), Fault> {
        let stream = line.number("stream")?;
        let open = self.streams.get_mut(&stream);
        let open = open.ok_or_else(|| Fault::line(format!("stream {stream} is not open")))?;
        match (op, open) {
            ("close", _) => _ = self.streams.remove(&stream),
            ("request", open) => {
                let pb = line.base64("pb")?;
                let Some(server) = open else { return Ok(()) };
                let heard = V::decode_request(pb).map_err(Fault::from);
                match heard.and_then(|request| Ok(server.handle_request(now, request)?)) {
                    Err(fault) if fault.culprit == "peer" => {
                        out.extend([fault.element(), element::close(stream, fault.code, &fault.message)]);
                        *open = None;
                    }
                    heard => heard?,
                }
            }
            ("poll_action", Some(server)) => {
                out.extend(server.poll_action().map(|action| element::server_action(stream, &action)));
            }
            ("poll_transmit", Some(server)) => {
                out.extend(server.poll_transmit(now, &self.cache).map(|response| element::send(stream, &response)));
            }
            _ => {}
        }
        Ok(())
    }
}

impl<V: Wire + server::Variant<Request = <V as Wire>::Request>> Machine for ServerSide<V> {
    fn run(&mut self, op: &str, line: Line<'_>, now: Instant, out: &mut Out) -> Result<(), Fault> {
        match op {
            "open" => self.open(line)?,
            "close" | "request" | "poll_action" | "poll_transmit" => self.of_stream(op, line, now, out)?,
            "batch" => {
                let changes: Result<Vec<Change>, Fault> =
                    line.lines("ops")?.into_iter().map(Change::read_of_batch).collect();
                changes?.into_iter().for_each(|change| change.make(&mut self.cache));
            }
            _ => Change::read(op, line)?.make(&mut self.cache),
        }
        Ok(())
    }

    fn drain(&mut self, now: Instant, out: &mut Out) {
        for (&stream, open) in &mut self.streams {
            let Some(server) = open else { continue };
            loop {
                let before = out.len();
                while let Some(action) = server.poll_action() {
                    out.push(element::server_action(stream, &action));
                }
                out.extend(server.poll_transmit(now, &self.cache).map(|response| element::send(stream, &response)));
                if out.len() == before {
                    break;
                }
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        self.streams.values().flatten().filter_map(Server::poll_timeout).min()
    }

    fn timeout(&mut self, now: Instant) {
        self.streams.values_mut().flatten().for_each(|server| server.handle_timeout(now));
    }
}
