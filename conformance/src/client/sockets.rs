//! A client behind a port: the kit's server, and the command that runs the client.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::adapter::Adapter;
use super::peer::{ClientPeer, End, Event, Tell};
use super::server::Server;
use crate::dialogue::Ready;
use crate::program::Program;
use crate::run::{StreamId, Trouble};

/// How often the kit looks whether the command still runs.
const LOOK: Duration = Duration::from_millis(500);

/// A server of the kit for which no client runs yet.
pub struct Port {
    server: Server,
    events: Receiver<Event>,
    sender: Sender<Event>,
}

/// A client over sockets.
pub struct Sockets {
    /// Dropped first, so that the client does not outlive its server and report the loss.
    told: Told,
    server: Server,
    events: Receiver<Event>,
    start: Instant,
    gone: bool,
}

/// The command of a client.
enum Told {
    /// An adapter, which is told what to ask for.
    Adapter(Adapter),
    /// A client that asks by itself.
    Alone(Program),
}

impl Told {
    /// Returns the last output of a command that has ended.
    fn last_words(&mut self) -> Option<String> {
        match self {
            Self::Adapter(adapter) => adapter.last_words(),
            Self::Alone(program) => program.has_ended().then(|| program.trouble("it has ended").0),
        }
    }
}

impl Port {
    /// Opens a port.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn open() -> Result<Self, Trouble> {
        let (sender, events) = channel();
        let server = Server::start(sender.clone()).map_err(|error| Trouble(format!("no port: {error}")))?;
        Ok(Self { server, events, sender })
    }

    /// Returns the number of the port.
    pub fn number(&self) -> u16 {
        self.server.address().port()
    }

    /// Starts the adapter of a client.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn start(self, command: &[String]) -> Result<(Sockets, Ready), Trouble> {
        let (adapter, ready) = Adapter::start(command, self.sender)?;
        let (server, events) = (self.server, self.events);
        let told = Told::Adapter(adapter);
        Ok((Sockets { told, server, events, start: Instant::now(), gone: false }, ready))
    }

    /// Starts a client that asks by itself.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn start_alone(self, command: &[String]) -> Result<Sockets, Trouble> {
        let mut program = Program::start(command, |_| true)?;
        program.end_at_once();
        let (server, events) = (self.server, self.events);
        Ok(Sockets { told: Told::Alone(program), server, events, start: Instant::now(), gone: false })
    }
}

impl ClientPeer for Sockets {
    fn tell(&mut self, tell: &Tell) -> Result<(), Trouble> {
        match &mut self.told {
            Told::Adapter(adapter) => adapter.tell(tell),
            Told::Alone(_) => Err(Trouble("the client cannot be told what to ask for".into())),
        }
    }

    fn send(&mut self, stream: StreamId, message: &[u8]) {
        self.server.send(stream, message);
    }

    fn end(&mut self, stream: StreamId, end: End) {
        self.server.end(stream, end);
    }

    fn poll(&mut self, wait: Duration) -> Option<Event> {
        let end = Instant::now() + wait;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left.min(LOOK)) {
                Ok(event) => return Some(event),
                Err(RecvTimeoutError::Timeout) if left > LOOK => {}
                Err(_) => return None,
            }
            if let Some(why) = self.told.last_words().filter(|_| !self.gone) {
                self.gone = true;
                return Some(Event::Gone(why));
            }
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}
