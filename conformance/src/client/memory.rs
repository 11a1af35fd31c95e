//! A client of this project in memory, with or without a defect, with which every case is tested.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use xds_machine::client::{self, Action, Backoff, Client, Config, Update};
use xds_machine::{Delta, Instant, ResourceName, Sotw, TypeUrl, proto};

use super::peer::{ClientPeer, End, Event, Tell};
use crate::message::{Request, Response, Variant};
use crate::resource;
use crate::run::{StreamId, Trouble};

/// A defect between the client and the wire. Each method may change the messages or events that it handles.
pub trait ClientDefect {
    /// Notes that a stream opens.
    fn opens(&mut self) {}

    /// Handles an instruction to the client. Returns whether the client receives it.
    fn told(&mut self, tell: &mut Tell) -> bool {
        let _ = tell;
        true
    }

    /// Handles a response that comes in. Returns whether the client receives it.
    fn hears(&mut self, response: &mut Response) -> bool {
        let _ = response;
        true
    }

    /// Handles a request that goes out. Returns the requests that are sent instead.
    fn says(&mut self, request: Request) -> Vec<Request> {
        vec![request]
    }

    /// Judges a resource. Returns whether the client accepts it.
    fn takes(&mut self, body: &[u8]) -> bool {
        resource::decodes(body)
    }

    /// Handles an event that the client reports. Returns whether it is reported.
    fn reports(&mut self, event: &mut Event) -> bool {
        let _ = event;
        true
    }

    /// Returns the events that the client adds at this time.
    fn adds(&mut self, now: Duration) -> Vec<Event> {
        let _ = now;
        Vec::new()
    }

    /// Returns when the client, whose stream has ended, opens the next one: after the usual delay, at once or never.
    fn comes_back(&mut self) -> Return {
        Return::Later
    }

    /// Returns whether the client ends.
    fn dies(&mut self) -> bool {
        false
    }
}

/// When a client opens its next stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Return {
    /// After a delay that grows.
    Later,
    /// At once.
    AtOnce,
    /// Never.
    Never,
}

/// No defect.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faultless;

impl ClientDefect for Faultless {}

/// A variant, with the conversion of its messages to and from the kit's form.
pub trait Spoken: client::Variant {
    /// The variant as a value.
    const SPOKEN: Variant;
    /// Returns a request in the kit's form.
    fn request(request: &Self::Request) -> Request;
    /// Reads a response.
    fn response(bytes: Bytes) -> Option<Self::Response>;
}

impl Spoken for Sotw {
    const SPOKEN: Variant = Variant::Sotw;

    fn request(request: &Self::Request) -> Request {
        request.into()
    }

    fn response(bytes: Bytes) -> Option<Self::Response> {
        proto::sotw::decode_response(bytes).ok()
    }
}

impl Spoken for Delta {
    const SPOKEN: Variant = Variant::Delta;

    fn request(request: &Self::Request) -> Request {
        request.into()
    }

    fn response(bytes: Bytes) -> Option<Self::Response> {
        proto::delta::decode_response(bytes).ok()
    }
}

/// A client in memory. Time passes only when the kit waits.
pub struct Memory<V: Spoken, D> {
    client: Client<V>,
    backoff: Backoff,
    now: Instant,
    stream: Option<StreamId>,
    opened: StreamId,
    opens_at: Option<Instant>,
    events: VecDeque<Event>,
    defect: D,
}

impl<V: Spoken, D: ClientDefect> Memory<V, D> {
    /// Makes a client with this defect.
    pub fn new(config: Config, defect: D) -> Self {
        Self {
            client: Client::new(config),
            backoff: Backoff::grpc(),
            now: Instant::EPOCH,
            stream: None,
            opened: 0,
            opens_at: Some(Instant::EPOCH),
            events: VecDeque::new(),
            defect,
        }
    }

    /// Does all that can be done now.
    fn pump(&mut self) {
        self.client.handle_timeout(self.now);
        if self.stream.is_none() && self.client.wants_stream() && self.opens_at.is_some_and(|at| at <= self.now) {
            self.opened += 1;
            self.stream = Some(self.opened);
            self.client.handle_open();
            self.defect.opens();
            let (stream, variant, type_url) = (self.opened, V::SPOKEN, None);
            self.events.push_back(Event::Opened { stream, variant, type_url });
        }
        loop {
            while let Some(action) = self.client.poll_action() {
                self.act(action);
            }
            let Some(stream) = self.stream else { break };
            let Some(transmit) = self.client.poll_transmit() else { break };
            self.client.handle_sent(self.now, transmit.sent);
            let said = self.defect.says(V::request(&transmit.request));
            self.events.extend(said.into_iter().map(|request| Event::Request(stream, request)));
        }
        let now = self.now();
        self.events.extend(self.defect.adds(now));
        if self.defect.dies() {
            self.events.push_back(Event::Gone("of its defect".into()));
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Apply(update) => self.apply(update),
            Action::DoesNotExist { type_url, names } => {
                let missing =
                    |name: ResourceName| Event::Missing { type_url: type_url.to_string(), name: name.to_string() };
                names.into_iter().map(missing).for_each(|event| self.report(event));
            }
            Action::Expired { type_url, names } => {
                let removed = names.iter().map(ToString::to_string).collect();
                self.report(Event::Apply { type_url: type_url.to_string(), names: Vec::new(), removed });
            }
            _ => {}
        }
    }

    fn apply(&mut self, update: Update) {
        let type_url = update.type_url().to_string();
        let mut names = Vec::new();
        for resource in update.resources() {
            if self.defect.takes(resource.body()) {
                names.push(resource.name().to_string());
            }
        }
        let removed: Vec<String> = update.removed().iter().map(ToString::to_string).collect();
        let taken = names.clone();
        let verdict = update.check(|resource| {
            if taken.contains(&resource.name().to_string()) { Ok(()) } else { Err("the bytes are no resource") }
        });
        _ = self.client.handle_verdict(self.now, verdict); // cannot fail: the client has handed the update out
        if !names.is_empty() || !removed.is_empty() {
            self.report(Event::Apply { type_url, names, removed });
        }
    }

    fn report(&mut self, mut event: Event) {
        if self.defect.reports(&mut event) {
            self.events.push_back(event);
        }
    }

    fn close(&mut self) {
        if self.stream.take().is_some() {
            self.client.handle_close();
            self.opens_at = match self.defect.comes_back() {
                Return::Later => Some(self.now + self.backoff.next_delay(500)),
                Return::AtOnce => Some(self.now),
                Return::Never => None,
            };
        }
    }
}

impl<V: Spoken, D: ClientDefect> ClientPeer for Memory<V, D> {
    fn tell(&mut self, tell: &Tell) -> Result<(), Trouble> {
        let mut tell = tell.clone();
        if !self.defect.told(&mut tell) {
            return Ok(());
        }
        let type_url = TypeUrl::from(tell.type_url.as_str());
        let mut resources = self.client.resources_mut(&type_url);
        if tell.leave {
            resources.unsubscribe(tell.names.iter().map(String::as_str));
            return Ok(());
        }
        resources.subscribe(tell.names.iter().map(String::as_str)).map_err(|error| Trouble(error.to_string()))
    }

    fn send(&mut self, stream: StreamId, message: &[u8]) {
        self.pump();
        if self.stream != Some(stream) {
            return;
        }
        let message = Bytes::copy_from_slice(message);
        let Ok(mut response) = Response::decode(V::SPOKEN, message.clone(), resource::revision) else {
            self.events.push_back(Event::Closed(stream, "no response".into()));
            return self.close();
        };
        let before = response.clone();
        if !self.defect.hears(&mut response) {
            return;
        }
        let message = if before == response { message } else { response.encode(V::SPOKEN).into() };
        let Some(response) = V::response(message) else { return };
        self.backoff.reset();
        if self.client.handle_response(self.now, response).is_err() {
            self.events.push_back(Event::Closed(stream, "the response cannot be answered".into()));
            self.close();
        }
    }

    fn end(&mut self, stream: StreamId, _: End) {
        if self.stream == Some(stream) {
            self.events.clear();
            self.close();
        }
    }

    fn poll(&mut self, wait: Duration) -> Option<Event> {
        let end = self.now + wait;
        loop {
            self.pump();
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let opens = self.opens_at.filter(|_| self.stream.is_none() && self.client.wants_stream());
            match self.client.poll_timeout().into_iter().chain(opens).min().filter(|due| *due <= end) {
                Some(due) if due > self.now => self.now = due,
                _ => {
                    self.now = end;
                    self.pump();
                    return self.events.pop_front();
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.now.saturating_since(Instant::EPOCH)
    }
}
