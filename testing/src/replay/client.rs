//! A recording against the client machine: the machine subscribes to the names in the real client's requests, judges as
//! that client judged, and must send the same requests, per type.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use xds_machine::client::{Action, Client, Config, Dialect, Update};
use xds_machine::message::Node;
use xds_machine::resource_type::{ResourceType, TypeRegistry};
use xds_machine::{Instant, Nonce, ResourceName, TypeUrl, WILDCARD, type_url};

use super::message::{Asked, Wire};
use super::{Event, Method, Recording, What, decode};

/// A client machine that replaces the real client: for ADS with one stream after the other, otherwise for one
/// subscription.
struct Session<V: Wire> {
    method: Method,
    client: Client<V>,
    /// The names by type in the last request; they identify the session that a new stream belongs to.
    wanted: BTreeMap<TypeUrl, BTreeSet<ResourceName>>,
    /// The stream, if open.
    stream: Option<u32>,
    /// The client closed the stream, and opens no other.
    over: bool,
    types: BTreeMap<TypeUrl, Known>,
    judging: BTreeMap<TypeUrl, Update>,
}

/// The state of one type on the current stream.
#[derive(Default)]
struct Known {
    asked: bool,
    named: bool,
    /// Responses that the real client has not answered.
    unanswered: VecDeque<Nonce>,
    /// Requests that the machine sent, and the real client has not (yet).
    sent: Vec<Asked>,
}

/// Replays a recording. Returns the number of equal requests, and the number of omitted ones that crossed a response:
/// the machine sends nothing while a response is unanswered, and the ACK carries all of their names.
///
/// # Errors
///
/// Returns the first request in which the machine differs from the real client.
pub fn replay<V: Wire>(recording: &Recording) -> Result<(usize, usize), String> {
    let mut sessions: Vec<Session<V>> = Vec::new();
    let dialect = recording.dialect();
    let (mut methods, mut equal, mut crossed) = (BTreeMap::new(), 0, 0);
    for Event { line, now, stream, what } in &recording.events {
        let say = |error: String| format!("line {line}: {error}");
        let at = sessions.iter().position(|session| session.stream == Some(*stream));
        match what {
            What::Open(method) => _ = methods.insert(*stream, method.clone()),
            What::Close { by_client } => {
                if let Some(at) = at {
                    sessions[at].close(*now, *by_client).map_err(say)?;
                }
            }
            What::Request(bytes) => {
                let asked = V::asked(decode(V::decode_request(bytes.clone())));
                let at = at.unwrap_or_else(|| Session::of(&mut sessions, dialect, &methods[stream], *stream, &asked));
                if sessions[at].expect(*now, asked).map_err(say)? {
                    equal += 1;
                } else {
                    crossed += 1;
                }
            }
            What::Response(bytes) => {
                let session = &mut sessions[at.ok_or_else(|| say("no request was there before".into()))?];
                session.receive(*now, decode(V::decode_response(bytes.clone()))).map_err(say)?;
            }
        }
    }
    Ok((equal, crossed))
}

impl<V: Wire> Session<V> {
    /// Returns the session that a new stream belongs to, by its first request; or a new one.
    fn of(all: &mut Vec<Self>, dialect: Dialect, method: &Method, stream: u32, asked: &Asked) -> usize {
        let lost = |session: &Self| session.stream.is_none() && !session.over && session.method == *method;
        let same = |session: &Self| {
            let known = session.wanted.get(&asked.type_url);
            lost(session) && (method.0.is_none() || known == Some(&asked.wanted(true)))
        };
        let at = all.iter().position(same).unwrap_or_else(|| {
            all.push(Self {
                method: method.clone(),
                client: Client::new(Config::new(Node::new("n")).with_types(types()).with_dialect(dialect)),
                wanted: BTreeMap::new(),
                stream: None,
                over: false,
                types: BTreeMap::new(),
                judging: BTreeMap::new(),
            });
            all.len() - 1
        });
        let session = &mut all[at];
        session.stream = Some(stream);
        session.types.clear();
        session.client.handle_open();
        at
    }

    fn close(&mut self, now: Instant, by_client: bool) -> Result<(), String> {
        let left = self.types.values().flat_map(|known| &known.sent).next();
        // Requests that a closing server did not read may still have been sent.
        if let Some(asked) = left.filter(|_| by_client) {
            return Err(format!("the machine sent {asked} besides"));
        }
        self.stream = None;
        self.over = by_client;
        self.client.handle_close();
        // An unanswered update was applied all the same: the next stream claims it (S5, cut 4).
        for update in std::mem::take(&mut self.judging).into_values() {
            self.client.handle_verdict(now, update.accept()).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn receive(&mut self, now: Instant, response: V::Response) -> Result<(), String> {
        self.client.handle_timeout(now);
        let message = response.clone();
        let said = V::said(message);
        if let Some(known) = self.types.get_mut(&said.type_url) {
            known.unanswered.push_back(said.nonce);
        }
        self.client.handle_response(now, response).map_err(|error| error.to_string())?;
        self.drain();
        Ok(())
    }

    /// Expects a request of the real client. Returns `false` if the request crossed a response.
    fn expect(&mut self, now: Instant, asked: Asked) -> Result<bool, String> {
        self.client.handle_timeout(now);
        self.drain();
        let known = self.types.entry(asked.type_url.clone()).or_default();
        let first = !std::mem::replace(&mut known.asked, true);
        known.named |= !asked.names.is_empty();
        let answers =
            known.unanswered.front() == Some(&asked.nonce) && (V::LISTS || !asked.nonce.is_empty() || asked.is_bare());
        if answers {
            known.unanswered.pop_front();
        }
        if !answers && !asked.nonce.is_empty() && known.unanswered.contains(&asked.nonce) {
            return Err(format!("{asked} skips a response that is unanswered"));
        }
        let crosses = V::LISTS && !answers && !known.unanswered.is_empty();

        let before = self.wanted.entry(asked.type_url.clone()).or_default();
        let mut wanted = if V::LISTS || first { asked.wanted(!known.named) } else { before.clone() };
        if !V::LISTS && !first {
            wanted.extend(asked.names.iter().cloned());
            wanted.retain(|name| !asked.unsubscribe.contains(name));
        }
        let gone: Vec<&str> = before.difference(&wanted).map(ResourceName::as_str).collect();
        self.client.resources_mut(&asked.type_url).unsubscribe(gone.iter().copied());
        let new = wanted.difference(before).cloned();
        self.client.resources_mut(&asked.type_url).subscribe(new).expect("names are not empty");
        let same = wanted == *before;
        *before = wanted;

        if answers {
            if let Some(update) = self.judging.remove(&asked.type_url) {
                let verdict = if asked.nack { update.reject_all("no") } else { update.accept() };
                self.client.handle_verdict(now, verdict).map_err(|error| error.to_string())?;
            }
        } else if crosses {
            return Ok(false);
        } else if same && !first {
            // The names are sent again.
            self.client.resources_mut(&asked.type_url).refetch(asked.names.iter().map(ResourceName::as_str));
        }
        self.send(now);
        let known = self.types.entry(asked.type_url.clone()).or_default();
        match known.sent.iter().position(|sent| *sent == asked) {
            Some(at) => _ = known.sent.remove(at),
            None => {
                let sent: Vec<String> = known.sent.iter().map(ToString::to_string).collect();
                return Err(format!("{asked}; the machine sent {sent:?}"));
            }
        }
        Ok(true)
    }

    fn send(&mut self, now: Instant) {
        self.drain();
        while let Some(transmit) = self.client.poll_transmit() {
            self.client.handle_sent(now, transmit.sent);
            let asked = V::asked(transmit.request);
            self.types.entry(asked.type_url.clone()).or_default().sent.push(asked);
        }
    }

    fn drain(&mut self) {
        while let Some(action) = self.client.poll_action() {
            if let Action::Apply(update) = action {
                self.judging.insert(update.type_url().clone(), update);
            }
        }
    }
}

/// Envoy's VHDS begins with an empty list, and sends `*` on the next stream.
fn types() -> TypeRegistry {
    let vhds = ResourceType::partial(type_url::VIRTUAL_HOST).with_legacy_wildcard(true).with_heartbeats(false);
    TypeRegistry::default().and([vhds])
}

impl Asked {
    /// Returns whether the request has no names.
    fn is_bare(&self) -> bool {
        self.names.is_empty() && self.unsubscribe.is_empty()
    }

    /// Returns the subscriptions if these are all the names. `legacy`: no name was ever sent.
    fn wanted(&self, legacy: bool) -> BTreeSet<ResourceName> {
        let all = self.names.is_empty() && legacy && types().get(&self.type_url).has_legacy_wildcard();
        if all { BTreeSet::from([WILDCARD.into()]) } else { self.names.clone() }
    }
}
