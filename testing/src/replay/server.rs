//! A recording against the server machine. The store changes whenever the recording server sent a response, so that the
//! machine sends one too, and the client's ACKs and NACKs find their response.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use xds_machine::resource_type::TypeRegistry;
use xds_machine::server::{Action, Cache, Config, Entry, Page, Resource, Revision, Server, Source, StreamId};
use xds_machine::{Instant, Nonce, ResourceName, TypeUrl, Version, WILDCARD};

use super::message::{Asked, Said, Wire};
use super::{Event, Recording, What, decode};

/// The role of a request at the server.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Class {
    /// The first request of its type on its stream.
    First,
    /// The request accepts a response.
    Ack,
    /// The request rejects a response.
    Nack,
    /// The request answers no response: it has names, or repeats a request.
    Spontaneous,
    /// The request answers another response than the one in flight, or none that ever was.
    Stale,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A view of a store with only one type: the one that the recording server sends now.
struct Only<'a>(&'a Cache, &'a TypeUrl);

impl Source for Only<'_> {
    fn epoch(&self) -> u64 {
        self.0.epoch()
    }

    fn revision(&self) -> Revision {
        self.0.revision()
    }

    fn type_revision(&self, type_url: &TypeUrl) -> Revision {
        self.0.type_revision(type_url)
    }

    fn version(&self, type_url: &TypeUrl) -> Version {
        self.0.version(type_url)
    }

    fn get(&self, type_url: &TypeUrl, name: &ResourceName) -> Entry<'_> {
        self.0.get(type_url, name)
    }

    fn changes(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = Entry<'_>> {
        self.0.changes(type_url, since)
    }

    fn removals(
        &self,
        type_url: &TypeUrl,
        since: Revision,
    ) -> Option<impl Iterator<Item = (&ResourceName, Entry<'_>)>> {
        self.0.removals(type_url, since)
    }

    fn pages(&self, type_url: &TypeUrl) -> impl Iterator<Item = Page> {
        self.0.pages(type_url)
    }

    fn is_known(&self, type_url: &TypeUrl) -> bool {
        type_url == self.1
    }

    /// The recording server decides when endpoints are sent again.
    fn dependent(&self, _: &TypeUrl, _: &Resource) -> Option<ResourceName> {
        None
    }
}

struct Stream<V: Wire> {
    server: Server<V>,
    types: BTreeMap<TypeUrl, Known>,
}

/// The recorded state of one type on a stream, derived from the messages and not from a machine.
#[derive(Default)]
struct Known {
    asked: bool,
    /// A name was sent (SotW).
    named: bool,
    wanted: BTreeSet<ResourceName>,
    /// Recorded responses that the machine has not sent yet, by nonce.
    due: VecDeque<Nonce>,
    /// The machine's last response: the recording's nonce, the machine's own, and whether it is unanswered.
    sent: Option<(Nonce, Nonce, bool)>,
}

/// Replays a recording. Returns the number of requests of each class.
///
/// # Errors
///
/// Returns the first event in which the machine differs from the recording.
pub fn replay<V: Wire>(recording: &Recording) -> Result<BTreeMap<Class, usize>, String> {
    let (mut cache, mut streams, mut counts) = (Cache::new(1), BTreeMap::new(), BTreeMap::new());
    for Event { line, now, stream: id, what } in &recording.events {
        let say = |error: String| format!("line {line}: {error}");
        match what {
            What::Open(method) => {
                let config = method.0.clone().map_or_else(Config::ads, Config::single);
                let server = Server::new(config, StreamId(u64::from(*id)));
                streams.insert(*id, Stream::<V> { server, types: BTreeMap::new() });
            }
            What::Close { .. } => _ = streams.remove(id),
            What::Request(bytes) => {
                let stream = streams.get_mut(id).ok_or_else(|| say("no stream".into()))?;
                let (expected, actual) = stream.hear(*now, decode(V::decode_request(bytes.clone()))).map_err(say)?;
                if expected != actual {
                    return Err(say(format!("{expected} was taken for {actual}")));
                }
                *counts.entry(expected).or_default() += 1;
                stream.send_what_is_due(*now, &cache);
            }
            What::Response(bytes) => {
                let stream = streams.get_mut(id).ok_or_else(|| say("no stream".into()))?;
                stream.send(*now, V::said(decode(V::decode_response(bytes.clone()))), &mut cache);
            }
        }
    }
    Ok(counts)
}

impl<V: Wire> Stream<V> {
    fn hear(&mut self, now: Instant, mut request: V::Request) -> Result<(Class, Class), String> {
        let asked = V::asked(request.clone());
        let known = self.types.entry(asked.type_url.clone()).or_default();
        let expected = known.class::<V>(&asked);
        V::set_nonce(&mut request, known.translate(asked.nonce.clone()));
        known.listen::<V>(&asked);

        self.server.handle_request(now, request).map_err(|error| error.to_string())?;
        let mut actual = if expected == Class::First { Class::First } else { Class::Spontaneous };
        while let Some(action) = self.server.poll_action() {
            actual = match action {
                Action::Ack { .. } => Class::Ack,
                Action::Nack { .. } => Class::Nack,
                Action::DropStale { .. } => Class::Stale,
                Action::Close(status) => return Err(format!("the stream is to close: {status}")),
                _ => continue,
            };
        }
        if let Some((_, _, waits)) = &mut known.sent {
            *waits &= !matches!(actual, Class::Ack | Class::Nack);
        }
        let interest = self.server.interest(&asked.type_url).ok_or("the type is not known")?;
        let mut names: BTreeSet<ResourceName> = interest.names().cloned().collect();
        names.extend(interest.wildcard().then(|| WILDCARD.into()));
        if names != known.wanted {
            return Err(format!("{:?} is wanted, and the machine thinks {names:?}", known.wanted));
        }
        Ok((expected, actual))
    }

    fn send(&mut self, now: Instant, said: Said, cache: &mut Cache) {
        let known = self.types.entry(said.type_url.clone()).or_default();
        // Some subscribed resource must be new.
        let mut names = said.names;
        names.extend(known.wanted.iter().filter(|name| !name.is_wildcard()).cloned());
        names.extend(known.wanted.contains(WILDCARD).then(|| "filler".into()));
        for name in names {
            let revision = cache.revision().0 + 1;
            let resource = Resource::new(name, revision.to_string().into_bytes()).with_version(revision.to_string());
            cache.insert(&said.type_url, resource);
        }
        known.due.push_back(said.nonce);
        self.send_what_is_due(now, cache);
    }

    fn send_what_is_due(&mut self, now: Instant, cache: &Cache) {
        let may = |known: &Known| !known.due.is_empty() && known.sent.as_ref().is_none_or(|(.., waits)| !waits);
        for (type_url, known) in self.types.iter_mut().filter(|(_, known)| may(known)) {
            if let Some(response) = self.server.poll_transmit(now, &Only(cache, type_url)) {
                assert_eq!(response.type_url(), type_url);
                let nonce = known.due.pop_front().expect("one is due");
                known.sent = Some((nonce, response.nonce().clone(), true));
            }
        }
    }
}

impl Known {
    fn class<V: Wire>(&self, asked: &Asked) -> Class {
        if !self.asked {
            return Class::First;
        }
        let nonce = &asked.nonce;
        match &self.sent {
            // The request answers a response that contains the machine's: the machine had only one in flight.
            Some((sent, _, true)) if nonce == sent || self.due.contains(nonce) => {
                if asked.nack {
                    Class::Nack
                } else {
                    Class::Ack
                }
            }
            _ if !V::LISTS && nonce.is_empty() => Class::Spontaneous,
            Some((sent, _, false)) if V::LISTS && (nonce == sent || nonce.is_empty()) => Class::Spontaneous,
            None if nonce.is_empty() => Class::Spontaneous,
            _ => Class::Stale,
        }
    }

    /// Returns the machine's nonce for one of the recording.
    fn translate(&mut self, nonce: Nonce) -> Nonce {
        if let Some(at) = self.due.iter().position(|due| *due == nonce) {
            if let Some((_, own, true)) = &self.sent {
                self.due.drain(..=at);
                return own.clone();
            }
        }
        match &self.sent {
            Some((sent, own, _)) if *sent == nonce => own.clone(),
            _ => nonce,
        }
    }

    /// Applies a request to the subscriptions, by the rules of the protocol only.
    fn listen<V: Wire>(&mut self, asked: &Asked) {
        let first = !std::mem::replace(&mut self.asked, true);
        self.named |= !asked.names.is_empty();
        let legacy = TypeRegistry::default().get(&asked.type_url).has_legacy_wildcard();
        if V::LISTS {
            self.wanted = asked.names.clone();
            self.wanted.extend((legacy && !self.named).then(|| WILDCARD.into()));
        } else {
            let nothing = asked.names.is_empty() && asked.unsubscribe.is_empty();
            self.wanted.extend((first && nothing && legacy).then(|| WILDCARD.into()));
            self.wanted.extend(asked.names.iter().cloned());
            self.wanted.retain(|name| !asked.unsubscribe.contains(name));
        }
    }
}
