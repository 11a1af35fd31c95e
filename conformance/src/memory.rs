//! A server of this project in memory, with or without a defect, with which every case is tested.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use xds_machine::server::{Action, Cache, Config, Resource, Server, StreamId as Number};
use xds_machine::{Delta, Error, Instant, Sotw, Status, TypeUrl};

use crate::message::{Request, Response, Variant};
use crate::resource;
use crate::run::{Event, Op, Peer, StreamId, Trouble, Wait};

/// A defect between the server and the wire. Each method may change a message, or stop it by returning `false`.
pub trait Defect {
    /// Handles a request that comes in. Returns whether the server reads it.
    fn request(&mut self, stream: StreamId, request: &mut Request) -> bool {
        let _ = (stream, request);
        true
    }

    /// Handles a response that goes out. Returns whether it is sent.
    fn response(&mut self, stream: StreamId, response: &mut Response) -> bool {
        let _ = (stream, response);
        true
    }

    /// Returns further responses, which no request asked for, after all responses to a request, or to a change of the
    /// world (`None`), were sent.
    fn more(&mut self, stream: StreamId, request: Option<&Request>, sent: &[Response]) -> Vec<Response> {
        let _ = (stream, request, sent);
        Vec::new()
    }

    /// Handles a change of the store. Returns whether the server takes it.
    fn change(&mut self, op: &Op) -> bool {
        let _ = op;
        true
    }
}

/// No defect.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faultless;

impl Defect for Faultless {}

/// The machine of a stream.
enum Machine {
    Sotw(Box<Server<Sotw>>),
    Delta(Box<Server<Delta>>),
}

impl Machine {
    fn handle_request(&mut self, now: Instant, request: &Request) -> Result<(), Error> {
        match self {
            Self::Sotw(server) => server.handle_request(now, request.to_sotw()),
            Self::Delta(server) => server.handle_request(now, request.to_delta()),
        }
    }

    fn poll_transmit(&mut self, now: Instant, cache: &Cache) -> Option<Response> {
        match self {
            Self::Sotw(server) => {
                let response = server.poll_transmit(now, cache)?;
                Some(Response::from_sotw(&(&response).into(), resource::revision))
            }
            Self::Delta(server) => {
                let response = server.poll_transmit(now, cache)?;
                Some(Response::from_delta(&(&response).into(), resource::revision))
            }
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        match self {
            Self::Sotw(server) => server.poll_action(),
            Self::Delta(server) => server.poll_action(),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Sotw(server) => server.poll_timeout(),
            Self::Delta(server) => server.poll_timeout(),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Sotw(server) => server.handle_timeout(now),
            Self::Delta(server) => server.handle_timeout(now),
        }
    }
}

/// A server in memory. Time passes only when the kit waits.
pub struct Memory<D> {
    cache: Cache,
    now: Instant,
    streams: BTreeMap<StreamId, Machine>,
    opened: StreamId,
    events: VecDeque<Event>,
    epoch: u64,
    defect: D,
}

impl<D: Defect> Memory<D> {
    /// Makes a server with this defect.
    pub fn new(defect: D) -> Self {
        let (streams, events) = (BTreeMap::new(), VecDeque::new());
        Self { cache: Cache::new(1), now: Instant::EPOCH, streams, opened: 0, events, epoch: 1, defect }
    }

    /// Sends all responses that are due on every stream.
    fn pump(&mut self, cause: Option<(StreamId, &Request)>) {
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            let mut sent = Vec::new();
            let Some(machine) = self.streams.get_mut(&id) else { continue };
            while let Some(mut response) = machine.poll_transmit(self.now, &self.cache) {
                if self.defect.response(id, &mut response) {
                    sent.push(response);
                }
            }
            let request = cause.filter(|(stream, _)| *stream == id).map(|(_, request)| request);
            if cause.is_none() || request.is_some() {
                let more = self.defect.more(id, request, &sent);
                sent.extend(more);
            }
            self.events.extend(sent.into_iter().map(|response| Event::Response(id, response)));
            let closes = std::iter::from_fn(|| machine.poll_action());
            let status = closes.fold(None, |found: Option<Status>, action| match action {
                Action::Close(status) => Some(status),
                _ => found,
            });
            if let Some(status) = status {
                self.end(id, status);
            }
        }
    }

    fn end(&mut self, stream: StreamId, status: Status) {
        self.streams.remove(&stream);
        self.events.push_back(Event::Closed(stream, status.to_string()));
    }
}

impl<D: Defect> Peer for Memory<D> {
    fn open(&mut self, variant: Variant, single: Option<&str>) -> Result<StreamId, Trouble> {
        self.opened += 1;
        let config = single.map_or_else(Config::ads, Config::single);
        let number = Number(self.opened);
        let machine = match variant {
            Variant::Sotw => Machine::Sotw(Box::new(Server::new(config, number))),
            Variant::Delta => Machine::Delta(Box::new(Server::new(config, number))),
        };
        self.streams.insert(self.opened, machine);
        Ok(self.opened)
    }

    fn send(&mut self, stream: StreamId, _: Variant, request: &Request) -> Result<(), Trouble> {
        let mut read = request.clone();
        if !self.defect.request(stream, &mut read) {
            return Ok(());
        }
        let Some(machine) = self.streams.get_mut(&stream) else { return Ok(()) };
        if let Err(error) = machine.handle_request(self.now, &read) {
            self.end(stream, Status::new(xds_machine::Code::InvalidArgument, error.to_string()));
        }
        self.pump(Some((stream, request)));
        Ok(())
    }

    fn send_bytes(&mut self, stream: StreamId, _: &[u8]) -> Result<(), Trouble> {
        self.end(stream, Status::new(xds_machine::Code::InvalidArgument, "bytes that are no request"));
        Ok(())
    }

    fn close(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
    }

    fn poll(&mut self, wait: Wait) -> Option<Event> {
        let mut left = match wait {
            Wait::Answer => Duration::from_secs(30),
            Wait::Quiet => Duration::from_secs(2),
            Wait::Nothing => return self.events.pop_front(),
        };
        while self.events.is_empty() {
            let due = self.streams.values().filter_map(Machine::poll_timeout).min()?;
            let time = due.saturating_since(self.now);
            left = left.checked_sub(time)?;
            self.pass(time.max(Duration::from_millis(1)));
        }
        self.events.pop_front()
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.streams.values_mut().for_each(|machine| machine.handle_timeout(self.now));
        self.pump(None);
    }

    fn control(&mut self, ops: &[Op]) -> Result<(), Trouble> {
        for op in ops {
            if !self.defect.change(op) {
                continue;
            }
            match op {
                Op::Put(put) => {
                    let mut resource = Resource::new(put.name.as_str(), put.body());
                    resource = put.ttl.into_iter().fold(resource, Resource::with_ttl);
                    resource = put.alias.iter().fold(resource, |resource, alias| resource.with_aliases([alias]));
                    self.cache.insert(&TypeUrl::from(put.type_url.as_str()), resource);
                }
                Op::Delete { type_url, name } => {
                    self.cache.remove(&TypeUrl::from(type_url.as_str()), name.as_str());
                }
                Op::Error { type_url, name, code } => {
                    let status = Status { code: *code, message: "the kit says so".into() };
                    self.cache.set_error(&TypeUrl::from(type_url.as_str()), name.as_str(), status);
                }
                Op::Unknown { type_url, name } => {
                    self.cache.set_unknown(&TypeUrl::from(type_url.as_str()), name.as_str());
                }
                Op::Clear => {
                    resource::TYPES.iter().for_each(|(_, url)| self.cache.replace(&TypeUrl::from(*url), []));
                }
                Op::Restart => {
                    self.epoch += 1;
                    self.cache = Cache::new(self.epoch);
                    for id in std::mem::take(&mut self.streams).into_keys() {
                        self.events.push_back(Event::Closed(id, "the server ends".into()));
                    }
                }
            }
        }
        self.pump(None);
        Ok(())
    }

    fn is_instant(&self) -> bool {
        true
    }
}
