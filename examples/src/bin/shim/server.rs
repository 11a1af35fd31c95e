//! The streams of a server and the cache that they share, driven by lines of JSON.

use std::collections::BTreeMap;

use bytes::Bytes;
use examples::element;
use examples::line::{Change, Fault, Line};
use serde_json::Value;
use xds_machine::Instant;
use xds_machine::proto::Wire;
use xds_machine::server::{self, Action, Cache, Server, StreamId};

use crate::config::ServerConfig;
use crate::{Machine, Out};

pub(crate) struct ServerSide<V: server::Variant> {
    config: ServerConfig,
    cache: Cache,
    /// The number of streams opened so far. Makes nonces unique even if the caller reuses a number.
    opened: u64,
    /// The open streams, by the caller's number.
    streams: BTreeMap<u64, Stream<V>>,
}

impl<V: Wire + server::Variant> ServerSide<V> {
    pub(crate) fn new(config: ServerConfig) -> Self {
        Self { cache: config.cache(), config, opened: 0, streams: BTreeMap::new() }
    }

    fn open(&mut self, line: Line<'_>) -> Result<(), Fault> {
        let number = line.number("stream")?;
        if self.streams.get(&number).is_some_and(|stream| !stream.closing) {
            return Err(Fault::line(format!("stream {number} is open already")));
        }
        let config = self.config.stream(line.get("type_url", "a string", Value::as_str)?);
        self.opened += 1;
        let server = Server::new(config, StreamId(self.opened));
        self.streams.insert(number, Stream { number, server, closing: false });
        Ok(())
    }

    fn of_stream(&mut self, op: &str, line: Line<'_>, now: Instant, out: &mut Out) -> Result<(), Fault> {
        let number = line.number("stream")?;
        let stream = self.streams.get_mut(&number);
        let stream = stream.ok_or_else(|| Fault::line(format!("stream {number} is not open")))?;
        match op {
            "request" => stream.request(line.base64("pb")?, now, out)?,
            "poll_action" => _ = stream.poll_action(out),
            "poll_transmit" => _ = stream.poll_transmit(now, &self.cache, out),
            _ => _ = self.streams.remove(&number),
        }
        Ok(())
    }
}

impl<V: Wire + server::Variant> Machine for ServerSide<V> {
    fn run(&mut self, op: &str, line: Line<'_>, now: Instant, out: &mut Out) -> Result<(), Fault> {
        match op {
            "open" => self.open(line)?,
            "close" | "request" | "poll_action" | "poll_transmit" => self.of_stream(op, line, now, out)?,
            "batch" => {
                let changes = Change::read_batch(line.lines("ops")?)?;
                changes.into_iter().for_each(|change| change.make(&mut self.cache));
            }
            _ => Change::read(op, line)?.make(&mut self.cache),
        }
        Ok(())
    }

    fn drain(&mut self, now: Instant, out: &mut Out) {
        self.streams.values_mut().for_each(|stream| stream.drain(now, &self.cache, out));
    }

    fn due(&self) -> Option<Instant> {
        let open = self.streams.values().filter(|stream| !stream.closing);
        open.filter_map(|stream| stream.server.poll_timeout()).min()
    }

    fn timeout(&mut self, now: Instant) {
        self.streams.values_mut().for_each(|stream| stream.server.handle_timeout(now));
    }
}

struct Stream<V: server::Variant> {
    number: u64,
    server: Server<V>,
    /// The machine has closed the stream: further requests are ignored, and nothing more is sent.
    closing: bool,
}

impl<V: Wire + server::Variant> Stream<V> {
    fn request(&mut self, pb: Bytes, now: Instant, out: &mut Out) -> Result<(), Fault> {
        if self.closing {
            return Ok(());
        }
        let request = V::decode_request(pb).map_err(Fault::from);
        match request.and_then(|request| Ok(self.server.handle_request(now, request)?)) {
            Err(fault) if fault.culprit == "peer" => {
                out.extend([fault.element(), element::close(self.number, fault.code, &fault.message)]);
                self.closing = true;
                Ok(())
            }
            taken => taken,
        }
    }

    /// Writes the next action, and returns whether there was one.
    fn poll_action(&mut self, out: &mut Out) -> bool {
        let Some(action) = self.server.poll_action() else { return false };
        out.push(element::server_action(self.number, &action));
        self.closing |= matches!(action, Action::Close(_));
        true
    }

    /// Writes the next response, and returns whether there was one.
    fn poll_transmit(&mut self, now: Instant, cache: &Cache, out: &mut Out) -> bool {
        if self.closing {
            return false;
        }
        let response = self.server.poll_transmit(now, cache);
        out.extend(response.iter().map(|response| element::send(self.number, response)));
        response.is_some()
    }

    fn drain(&mut self, now: Instant, cache: &Cache, out: &mut Out) {
        loop {
            while self.poll_action(out) {}
            // A poll that finds no response may close the stream, which is an action.
            if !self.poll_transmit(now, cache, out) && !self.poll_action(out) {
                break;
            }
        }
    }
}
