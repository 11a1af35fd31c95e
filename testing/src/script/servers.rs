//! Plays the servers and the application against a client of several servers.

use std::collections::BTreeMap;

use xds_machine::client;
use xds_machine::message::Node;
use xds_machine::servers::{Action, Config, Connect, Policy, ServerId, Servers, Stream};
use xds_machine::{ResourceName, TypeUrl};

use super::Player;
use super::client::write_action;
use super::notation::{Clock, Notation, Words, read_duration, read_type, write_error};

pub(super) struct Script<V: Notation> {
    servers: Servers<V>,
    /// The streams that are open or being opened, by server.
    streams: BTreeMap<usize, Stream>,
    /// The abandoned streams.
    past: BTreeMap<usize, Stream>,
    judging: BTreeMap<(usize, TypeUrl), client::Update>,
    clock: Clock,
    errors: Vec<String>,
}

/// Makes a player. Options: the number of servers, then `default=0,1` and `NAME=0,1` for an authority.
pub(super) fn new<V: Notation>(policy: &str, options: &[&str]) -> Result<Script<V>, String> {
    let policy = match policy {
        "grpc" => Policy::Grpc,
        "envoy" => Policy::Envoy,
        _ => return Err(format!("no policy {policy}")),
    };
    let [count, options @ ..] = options else { return Err("how many servers?".into()) };
    let count = count.parse::<usize>().map_err(|_| "a number of servers")?;
    let mut config = Config::new(policy, vec![client::Config::new(Node::new("n")); count]);
    for option in options {
        let (authority, list) = option.split_once('=').ok_or("an option is `authority=0,1`")?;
        let list = list.split(',').filter(|id| !id.is_empty()).map(|id| id.parse().map(ServerId));
        let list = list.collect::<Result<Vec<_>, _>>().map_err(|_| "numbers of servers")?;
        config = match authority {
            "default" => config.with_default(list),
            _ => config.with_authority(authority, list),
        };
    }
    Ok(Script {
        servers: Servers::new(config).map_err(|error| error.to_string())?,
        streams: BTreeMap::new(),
        past: BTreeMap::new(),
        judging: BTreeMap::new(),
        clock: Clock::default(),
        errors: Vec::new(),
    })
}

impl<V: Notation> Player for Script<V> {
    fn play(&mut self, line: &str) -> Result<(), String> {
        let now = self.clock.0;
        let words = Words::new(line);
        let number = |word: &str| word.parse::<usize>().map_err(|_| "the number of a server");
        match *words.list() {
            ["sub", kind, ref names @ ..] => {
                let names = names.iter().map(|&name| ResourceName::from(name));
                if let Err(error) = self.servers.resources_mut(&read_type(kind)).subscribe(names) {
                    self.errors.push(format!("! misuse: {error}"));
                }
            }
            ["unsub", kind, ref names @ ..] => {
                self.servers.resources_mut(&read_type(kind)).unsubscribe(names.iter().copied())
            }
            ["refetch", kind, ref names @ ..] => {
                self.servers.resources_mut(&read_type(kind)).refetch(names.iter().copied())
            }
            ["forget", kind, ref names @ ..] => {
                self.servers.resources_mut(&read_type(kind)).forget(names.iter().copied())
            }
            ["open", server] => self.servers.handle_open(self.stream(number(server)?)?),
            // No jitter: the middle of the range.
            ["fail", server] => self.servers.handle_close(now, self.stream(number(server)?)?, 500),
            ["wait", time] => {
                self.clock.0 = now + read_duration(time)?;
                self.servers.handle_timeout(self.clock.0);
            }
            ["accept", server, kind] => {
                let update = self.judging.remove(&(number(server)?, read_type(kind))).ok_or("nothing to judge")?;
                self.servers.handle_verdict(now, update.accept()).map_err(|error| error.to_string())?;
            }
            ["reject", server, kind] => {
                let update = self.judging.remove(&(number(server)?, read_type(kind))).ok_or("nothing to judge")?;
                self.servers.handle_verdict(now, update.reject_all("no")).map_err(|error| error.to_string())?;
            }
            [server, ..] if server.starts_with('S') => {
                let server = number(server.trim_start_matches('S').trim_end_matches('>'))?;
                let (_, rest) = line.split_once('>').ok_or("a response is `S0> ..`")?;
                let response = V::read_response(Words::new(rest))?;
                let before = self.servers.clone();
                if let Err(error) = self.servers.handle_response(now, self.stream(server)?, response) {
                    assert_eq!(self.servers, before, "a refused response changes nothing");
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
            while let Some(action) = self.servers.poll_action() {
                answers.push(self.action(action));
            }
            while let Some(connect) = self.servers.poll_connect(self.clock.0) {
                match connect {
                    Connect::Open(stream) => {
                        self.streams.insert(stream.server().0, stream);
                        answers.push(format!("! connect {}", stream.server().0));
                    }
                    Connect::Close(stream) => {
                        assert_eq!(self.streams.remove(&stream.server().0), Some(stream));
                        self.past.insert(stream.server().0, stream);
                        answers.push(format!("! close {}", stream.server().0));
                    }
                }
            }
            let mut said = false;
            for (server, &stream) in &self.streams {
                while let Some(transmit) = self.servers.poll_transmit(stream) {
                    let request = V::write_request(&transmit.request);
                    answers.push(request.replacen("C>", &format!("C{server}>"), 1));
                    self.servers.handle_sent(self.clock.0, stream, transmit.sent);
                    said = true;
                }
            }
            if !said {
                break;
            }
        }
        assert_eq!(self.servers.check_invariants(), Ok(()));
        answers
    }
}

impl<V: Notation> Script<V> {
    fn stream(&self, server: usize) -> Result<Stream, &'static str> {
        self.streams.get(&server).or(self.past.get(&server)).copied().ok_or("there never was a stream to it")
    }

    fn action(&mut self, action: Action) -> String {
        let of = |authority: Option<&str>| authority.map_or(String::new(), |authority| format!(" of {authority:?}"));
        match action {
            Action::Client { server, action } => {
                let line = write_action(&action);
                if let client::Action::Apply(update) = action {
                    let twice = self.judging.insert((server.0, update.type_url().clone()), update);
                    assert_eq!(twice, None, "one update of a type is out at a time");
                }
                line.replacen("! ", &format!("! {} ", server.0), 1)
            }
            Action::Switched { authority, to } => format!("! switched to {}{}", to.0, of(authority.as_deref())),
            Action::Reachable { authority } => format!("! reachable{}", of(authority.as_deref())),
            Action::Unreachable { authority, server } => {
                format!("! unreachable {}{}", server.0, of(authority.as_deref()))
            }
            other => format!("! {other:?}"),
        }
    }
}
