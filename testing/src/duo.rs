//! A client, a server and the wires between them, for models of a user's own.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use xds_machine::client::{self, Action, Client};
use xds_machine::model::{Label, Relabel};
use xds_machine::server::{self, Server, Source, StreamId};
use xds_machine::{Instant, server::Action as ServerAction};

use crate::variant::Both;

/// A step of a client and a server, or an event of the stream between them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Step {
    /// The stream that the client wants opens.
    Open,
    /// The client writes a request, and the transport takes it.
    ClientSends,
    /// The server reads the next request.
    ServerReads,
    /// The server writes a response, or does the other work of a poll.
    ServerSends,
    /// The client reads the next response.
    ClientReads,
    /// Time passes until the next deadline.
    Tick,
    /// The stream breaks, and messages in flight are lost. Never a protocol step.
    Cut,
}

impl Step {
    /// The protocol steps, with time last.
    pub const OWN: [Self; 6] =
        [Self::Open, Self::ClientSends, Self::ServerReads, Self::ServerSends, Self::ClientReads, Self::Tick];
}

/// A client, a server, the stream and the two wires between them. The caller keeps the application and the store: each
/// step takes the store as an argument, and [`poll_action`](Client::poll_action) of [`client`](Self::client) returns
/// the actions for the application.
///
/// A value with the equality and the hash of a state: put it into a model, beside the application, and pass the model
/// to [`search::explore`](crate::search::explore). `Relabel` visits the labels, so that
/// [`canonical`](xds_machine::model::canonical) makes states equal that differ only in counters; call
/// [`renumbered`](Self::renumbered) afterwards.
#[derive(Clone, Debug)]
pub struct Duo<V: Both> {
    /// The client, which exists from the beginning.
    pub client: Client<V>,
    /// The server's end of the stream, while the stream is open.
    pub server: Option<Server<V>>,
    /// Requests in flight.
    pub up: VecDeque<V::Request>,
    /// Responses in flight.
    pub down: VecDeque<V::Response>,
    /// The time of both ends.
    pub now: Instant,
    config: server::Config,
    streams: u64,
}

impl<V: Both> Duo<V> {
    /// Makes a client, and stores the configuration of the server for each new stream.
    pub fn new(client: client::Config, server: server::Config) -> Self {
        Self {
            client: Client::new(client),
            server: None,
            up: VecDeque::new(),
            down: VecDeque::new(),
            now: Instant::EPOCH,
            config: server,
            streams: 0,
        }
    }

    /// Returns the steps that can be taken now. [`Step::Tick`] is included only if no other step but [`Step::Cut`] is:
    /// time is slow.
    pub fn steps(&self, source: &impl Source) -> impl Iterator<Item = Step> {
        let can = Step::OWN.map(|step| (step, self.can(step, source)));
        let busy = can.iter().any(|(step, can)| *can && *step != Step::Tick);
        let own = can.into_iter().filter(move |(step, can)| *can && (*step != Step::Tick || !busy));
        own.map(|(step, _)| step).chain(self.server.is_some().then_some(Step::Cut))
    }

    /// Returns whether a step changes anything.
    pub fn can(&self, step: Step, source: &impl Source) -> bool {
        match step {
            Step::Open => self.server.is_none() && self.client.wants_stream(),
            Step::ClientSends => self.client.wants_transmit(),
            Step::ServerReads => self.server.is_some() && !self.up.is_empty(),
            Step::ServerSends => self.server.as_ref().is_some_and(|server| {
                let mut polled = server.clone();
                polled.poll_transmit(self.now, source).is_some() || polled != *server
            }),
            Step::ClientReads => !self.down.is_empty() && self.client.wants_response(),
            Step::Tick => self.due().is_some(),
            Step::Cut => self.server.is_some(),
        }
    }

    /// Returns the time of the next deadline at either end.
    pub fn due(&self) -> Option<Instant> {
        let server = self.server.as_ref().and_then(Server::poll_timeout);
        self.client.poll_timeout().into_iter().chain(server).min()
    }

    /// Takes a step. One that [can't be taken](Self::can) does nothing.
    ///
    /// # Panics
    ///
    /// If one end refuses a message of the other, or the server closes the stream for any reason but to start anew.
    pub fn take(&mut self, step: Step, source: &impl Source) {
        if !self.can(step, source) {
            return;
        }
        match step {
            Step::Open => {
                self.streams += 1;
                self.server = Some(Server::new(self.config.clone(), StreamId(self.streams)));
                self.client.handle_open();
            }
            Step::ClientSends => {
                let transmit = self.client.poll_transmit().expect("wants_transmit said so");
                self.up.push_back(transmit.request);
                self.client.handle_sent(self.now, transmit.sent);
            }
            Step::ServerReads => {
                let (server, request) =
                    (self.server.as_mut().expect("a stream"), self.up.pop_front().expect("a request"));
                if let Err(error) = server.handle_request(self.now, request) {
                    panic!("the server refuses what the client asks: {error}");
                }
                self.drain();
            }
            Step::ServerSends => {
                let server = self.server.as_mut().expect("a stream");
                let response = server.poll_transmit(self.now, source).map(|response| V::message(&response));
                self.down.extend(response);
                self.drain();
            }
            Step::ClientReads => {
                let response = self.down.pop_front().expect("a response");
                if let Err(error) = self.client.handle_response(self.now, response) {
                    panic!("the client refuses what the server says: {error}");
                }
            }
            Step::Tick => {
                self.now = self.now.max(self.due().expect("something is due"));
                self.client.handle_timeout(self.now);
                self.server.iter_mut().for_each(|server| server.handle_timeout(self.now));
            }
            Step::Cut => self.cut(),
        }
        debug_assert_eq!(self.client.check_invariants(), Ok(()));
    }

    /// Takes the protocol steps, except time, until there are none, and passes each action of the client to `on`, which
    /// answers updates with [`Client::handle_verdict`].
    ///
    /// # Panics
    ///
    /// If the steps do not end, and as [`take`](Self::take) does.
    pub fn settle(&mut self, source: &impl Source, mut on: impl FnMut(&mut Client<V>, Instant, Action)) {
        for _ in 0..10_000 {
            while let Some(action) = self.client.poll_action() {
                on(&mut self.client, self.now, action);
            }
            let Some(step) = self.steps(source).next().filter(|step| !matches!(step, Step::Tick | Step::Cut)) else {
                return;
            };
            self.take(step, source);
        }
        panic!("client and server do not come to rest");
    }

    /// Must be called after [`canonical`](xds_machine::model::canonical) has renumbered the server's stream: new
    /// streams continue from that number.
    pub fn renumbered(&mut self) {
        self.streams = 1;
    }

    fn cut(&mut self) {
        self.server = None;
        self.up.clear();
        self.down.clear();
        self.client.handle_close();
    }

    fn drain(&mut self) {
        let actions = std::iter::from_fn(|| self.server.as_mut()?.poll_action());
        let closes = actions.filter(|action| matches!(action, ServerAction::Close(_))).count();
        if closes > 0 {
            self.cut();
        }
    }
}

impl<V: Both> Relabel for Duo<V> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        let Self { client, server, up, down, now, config: _, streams: _ } = self;
        client.relabel(by);
        server.relabel(by);
        up.iter_mut().for_each(|request| request.relabel(by));
        down.iter_mut().for_each(|response| response.relabel(by));
        now.relabel(by);
    }
}

impl<V: Both> PartialEq for Duo<V> {
    /// Ignores the configuration of the server.
    fn eq(&self, other: &Self) -> bool {
        let Self { client, server, up, down, now, config: _, streams } = self;
        *client == other.client
            && *server == other.server
            && *up == other.up
            && *down == other.down
            && *now == other.now
            && *streams == other.streams
    }
}

impl<V: Both> Eq for Duo<V> {}

impl<V: Both> Hash for Duo<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { client, server, up, down, now, config: _, streams } = self;
        (client, server, up, down, now, streams).hash(state);
    }
}
