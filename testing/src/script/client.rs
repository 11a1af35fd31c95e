//! Plays the server and the application against a client machine.

use std::collections::BTreeMap;

use xds_machine::client::{Action, Client, Config, DataErrors, Dialect, Effect, Rejection, Sent, Update};
use xds_machine::message::Node;
use xds_machine::resource_type::{ResourceType, TypeRegistry};
use xds_machine::{ResourceName, TypeUrl};

use super::Player;
use super::notation::{Clock, Notation, Words, read_duration, read_type, write_duration, write_error, write_type};

pub(super) struct Script<V: Notation> {
    client: Client<V>,
    judging: BTreeMap<TypeUrl, Update>,
    clock: Clock,
    errors: Vec<String>,
    /// Whether the transport accepts requests.
    room: bool,
    /// Whether the transport reports sent requests late; and the last request that was not reported.
    slow: bool,
    unsent: Option<Sent>,
    /// The unreported request of the previous stream.
    late: Option<Sent>,
}

/// Makes a player. Options: `dialect=NAME`, `demand=TYPE` (on demand), `full=TYPE`, `notimer` (no existence timeout),
/// `transient` (a resource that does not arrive in time is an error), `keep` and `drop` (for data errors), `nottl`.
pub(super) fn new<V: Notation>(options: &[&str]) -> Result<Script<V>, String> {
    let mut config = Config::new(Node::new("n"));
    for option in options {
        config = match option.split_once('=').unwrap_or((option, "")) {
            ("full", name) => config.with_types(TypeRegistry::default().and([ResourceType::full_state(name)])),
            ("notimer", _) => config.with_existence_timeout(None),
            ("transient", _) => config.with_transient_timeout(),
            ("keep", _) => config.with_data_errors(DataErrors::Keep),
            ("drop", _) => config.with_data_errors(DataErrors::Drop),
            ("demand", name) => config.with_on_demand([read_type(name)]),
            ("nottl", _) => config.without_ttl(),
            ("dialect", "envoy") => config.with_dialect(Dialect::Envoy),
            ("dialect", "grpc") => config.with_dialect(Dialect::Grpc),
            ("dialect", "istio") => config.with_dialect(Dialect::Istio),
            _ => return Err(format!("no option {option}")),
        };
    }
    let client = Client::new(config);
    Ok(Script {
        client,
        judging: BTreeMap::new(),
        clock: Clock::default(),
        errors: Vec::new(),
        room: true,
        slow: false,
        unsent: None,
        late: None,
    })
}

impl<V: Notation> Player for Script<V> {
    fn play(&mut self, line: &str) -> Result<(), String> {
        let now = self.clock.0;
        let words = Words::new(line);
        match *words.list() {
            ["sub", kind, ref names @ ..] => {
                let names = names.iter().map(|&name| ResourceName::from(name.trim_matches('"')));
                if let Err(error) = self.client.resources_mut(&read_type(kind)).subscribe(names) {
                    self.errors.push(format!("! misuse: {error}"));
                }
            }
            ["unsub", kind, ref names @ ..] => {
                self.client.resources_mut(&read_type(kind)).unsubscribe(names.iter().copied())
            }
            ["forget", kind, ref names @ ..] => self.client.layer_mut(&read_type(kind)).forget(names.iter().copied()),
            ["refetch", kind, ref names @ ..] => {
                self.client.resources_mut(&read_type(kind)).refetch(names.iter().copied())
            }
            ["pause", kind] => self.client.resources_mut(&read_type(kind)).pause(),
            ["resume", kind] => {
                if let Err(error) = self.client.resources_mut(&read_type(kind)).resume() {
                    self.errors.push(format!("! misuse: {error}"));
                }
            }
            ["open"] => self.client.handle_open(),
            ["close"] => {
                self.late = self.unsent.take();
                self.client.handle_close();
            }
            ["blocked"] => self.room = false,
            ["unblocked"] => self.room = true,
            ["slow"] => self.slow = true,
            ["sent"] => {
                let sent = self.unsent.take().ok_or("nothing is unsent")?;
                self.client.handle_sent(now, sent);
            }
            ["sent", "late"] => self.client.handle_sent(now, self.late.take().ok_or("nothing was unsent")?),
            ["pass", time] => self.clock.0 = now + read_duration(time)?,
            ["states"] => {
                for (type_url, name, state) in self.client.states() {
                    let status = format!("{:?}", state.status).to_lowercase();
                    let version = state.version.map_or(String::new(), |version| format!(" v={version}"));
                    let error = state.error.map_or(String::new(), |error| {
                        format!(" error {} v={} at {}s", error.status, error.version, error.at.since_epoch().as_secs())
                    });
                    self.errors.push(format!("! {} {name} {status}{version}{error}", write_type(type_url)));
                }
            }
            ["wants"] => {
                let wants = [
                    ("a stream", self.client.wants_stream()),
                    ("to send", self.client.wants_transmit()),
                    ("to receive", self.client.wants_response()),
                ];
                let wants: Vec<&str> = wants.iter().filter(|(_, wants)| *wants).map(|(what, _)| *what).collect();
                self.errors
                    .push(format!("! wants {}", if wants.is_empty() { "nothing".into() } else { wants.join(", ") }));
            }
            ["wait", time] => {
                let target = now + read_duration(time)?;
                self.clock.0 = target;
                self.client.handle_timeout(target);
                let due = self.client.poll_timeout().filter(|due| *due <= target);
                assert_eq!(due, None, "a time that has come and stays makes a driver spin");
            }
            ["accept", kind] => {
                let update = self.judging.remove(&read_type(kind)).ok_or("nothing to judge")?;
                self.client.handle_verdict(now, update.accept()).map_err(|error| error.to_string())?;
            }
            ["reject", kind, ref names @ ..] => {
                let update = self.judging.remove(&read_type(kind)).ok_or("nothing to judge")?;
                let verdict = match names {
                    [] => update.reject_all("no"),
                    names => update.reject(names.iter().map(|&name| Rejection::new(name, "no"))),
                };
                self.client.handle_verdict(now, verdict).map_err(|error| error.to_string())?;
            }
            ["S>", ..] => {
                let response = V::read_response(Words::new(line.trim_start_matches("S>")))?;
                let before = self.client.clone();
                if let Err(error) = self.client.handle_response(now, response) {
                    assert_eq!(self.client, before, "a refused response changes nothing");
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
            while let Some(action) = self.client.poll_action() {
                answers.push(self.action(action));
            }
            if !self.room {
                break;
            }
            let Some(transmit) = self.client.poll_transmit() else { break };
            answers.push(V::write_request(&transmit.request));
            if self.slow {
                self.unsent = Some(transmit.sent);
            } else {
                self.client.handle_sent(self.clock.0, transmit.sent);
            }
        }
        assert_eq!(self.client.check_invariants(), Ok(()));
        answers
    }
}

impl<V: Notation> Script<V> {
    fn action(&mut self, action: Action) -> String {
        let line = write_action(&action);
        if let Action::Apply(update) = action {
            self.judging.insert(update.type_url().clone(), update);
        }
        line
    }
}

/// Writes an action of the client as a line without its mark.
pub(super) fn write_action(action: &Action) -> String {
    let list = |names: &[ResourceName]| names.iter().map(ResourceName::as_str).collect::<Vec<_>>().join(",");
    match action {
        Action::Apply(update) => {
            let resources = update.resources().map(|resource| {
                let ttl = resource.ttl().map_or(String::new(), |ttl| format!("/{}", write_duration(ttl)));
                format!("{}@{}{ttl}", resource.name(), resource.version())
            });
            let resources: Vec<String> = resources.collect();
            let removed = match list(update.removed()) {
                names if names.is_empty() => String::new(),
                names => format!(" rm[{names}]"),
            };
            format!("! apply {} {{{}}}{removed}", write_type(update.type_url()), resources.join(","))
        }
        Action::DropStale { type_url, reason, count, .. } => {
            let count = if *count > 1 { format!(" x{count}") } else { String::new() };
            format!("! stale {} {reason:?}{count}", write_type(type_url))
        }
        Action::Errors { type_url, errors } => {
            let error = |error: &xds_machine::client::Failed| {
                let effect = match error.effect {
                    Effect::Ambient => "ambient",
                    Effect::Fails => "fails",
                    Effect::Removes => "removes",
                };
                format!("{} {effect} ({})", error.name, error.status)
            };
            let errors: Vec<String> = errors.iter().map(error).collect();
            format!("! errors {} {}", write_type(type_url), errors.join("; "))
        }
        Action::Expired { type_url, names } => format!("! expired {} {}", write_type(type_url), list(names)),
        Action::DoesNotExist { type_url, names } => format!("! missing {} {}", write_type(type_url), list(names)),
        Action::Rejected { type_url, faults, .. } => {
            let fault = |fault: &Rejection| match &fault.name {
                Some(name) => format!("{name}: {}", fault.reason),
                None => fault.reason.clone(),
            };
            let faults: Vec<String> = faults.iter().map(fault).collect();
            format!("! rejected {} {}", write_type(type_url), faults.join("; "))
        }
        Action::Synced { type_url, .. } => format!("! synced {}", write_type(type_url)),
        other => format!("! {other:?}"),
    }
}
