//! The kit's end of a stream.

use std::collections::{BTreeMap, VecDeque};

use super::peer::{Event, Peer, StreamId, Wait};
use super::{MOST_MESSAGES, Runner, Stop};
use crate::message::{Response, Variant};
use crate::referee::ServerReferee;
use crate::resource;

/// A stream, as the kit remembers it.
pub(super) struct Stream {
    pub id: StreamId,
    pub referee: ServerReferee,
    /// Responses that no step has looked at.
    pub unread: VecDeque<Response>,
    /// Why the peer ended the stream.
    pub closed: Option<String>,
    pub types: BTreeMap<String, OfType>,
    /// Whether a request was sent.
    pub begun: bool,
}

/// What a client remembers of a type.
#[derive(Clone, Default)]
pub(super) struct OfType {
    /// SotW: the list that was sent last.
    pub names: Vec<String>,
    /// The responses that were read and not answered.
    pub pending: Vec<Response>,
    /// SotW: the version and the nonce for the next request.
    pub version: String,
    pub nonce: String,
    /// SotW: the version that was accepted first.
    pub first_version: String,
    /// Delta: the versions that were accepted last, and first.
    pub held: BTreeMap<String, String>,
    pub first_held: BTreeMap<String, String>,
    /// Whether a request was sent.
    pub asked: bool,
}

impl Runner {
    /// Returns the current stream, and opens it if there is none.
    pub(super) fn stream(&mut self, peer: &mut dyn Peer) -> Result<StreamId, Stop> {
        if let Some(stream) = self.streams.get(&self.current) {
            return Ok(stream.id);
        }
        self.see_changes(peer)?;
        let single = self.story.single.then_some(self.of.as_str());
        let id = peer.open(self.variant, single)?;
        let mut referee = ServerReferee::new(self.variant, single, self.world.clone());
        if let Some((_, before)) = self.before.get(&self.current) {
            referee = referee.after(before);
        }
        let (unread, types) = (VecDeque::new(), BTreeMap::new());
        self.streams.insert(self.current, Stream { id, referee, unread, closed: None, types, begun: false });
        self.ladder.push(format!("-- stream {}", self.current));
        Ok(id)
    }

    pub(super) fn here(&mut self) -> Result<&mut Stream, Stop> {
        let current = self.current;
        self.streams.get_mut(&current).ok_or_else(|| Stop::Inconclusive(format!("there is no stream {current}")))
    }

    /// Takes an event: the referee judges it, and a step may look at it later. Returns whether it was a response.
    pub(super) fn take(&mut self, event: Event) -> bool {
        let (Event::Response(id, _) | Event::Malformed(id, _) | Event::Closed(id, _)) = &event;
        let mark = |number: usize| if self.streams.len() > 1 { number.to_string() } else { String::new() };
        let number = self.streams.iter().find(|(_, stream)| stream.id == *id).map(|(number, _)| *number);
        let Some((number, mark)) = number.map(|number| (number, mark(number))) else { return false };
        let Some(stream) = self.streams.get_mut(&number) else { return false };
        match event {
            Event::Response(_, response) => {
                let complaints = stream.referee.response(&response);
                self.given.iter_mut().for_each(|given| given.see(&response));
                stream.unread.push_back(response.clone());
                let line = self.write_response(&response);
                self.ladder.push(format!("S{mark}> {line}"));
                for complaint in complaints {
                    self.ladder.push(format!("   !! {complaint}"));
                    self.complaints.push(complaint);
                }
                true
            }
            Event::Malformed(_, why) | Event::Closed(_, why) => {
                self.ladder.push(format!("S{mark}> ends the stream: {why}"));
                stream.closed.get_or_insert(why);
                false
            }
        }
    }

    /// Waits for an event and takes it. Returns whether one came.
    pub(super) fn wait(&mut self, peer: &mut dyn Peer, wait: Wait) -> bool {
        match peer.poll(wait) {
            Some(event) => {
                self.take(event);
                true
            }
            None => false,
        }
    }

    /// Takes events until there are none for a while.
    pub(super) fn drain(&mut self, peer: &mut dyn Peer) {
        for _ in 0..MOST_MESSAGES {
            if !self.wait(peer, Wait::Quiet) {
                return;
            }
        }
        self.notes.push(format!("gave up after {MOST_MESSAGES} messages"));
    }

    /// Takes the next unread response of a type on the current stream, which is then to be answered.
    pub(super) fn read(&mut self, type_url: &str) -> Option<Response> {
        let current = self.current;
        let stream = self.streams.get_mut(&current)?;
        let at = stream.unread.iter().position(|response| response.type_url == type_url)?;
        let response = stream.unread.remove(at)?;
        let of = stream.types.entry(type_url.to_owned()).or_default();
        of.nonce.clone_from(&response.nonce);
        of.pending.push(response.clone());
        Some(response)
    }

    pub(super) fn write_response(&self, response: &Response) -> String {
        let item = |item: &crate::message::Item| {
            let revision = item.revision.map_or(String::new(), |revision| format!("@{revision}"));
            let beat = if item.body.is_none() { "^" } else { "" };
            let ttl = item.ttl.map_or(String::new(), |ttl| format!("/{}ms", ttl.as_millis()));
            format!("{beat}{}{revision}{ttl}", self.short_name(&item.name))
        };
        let foreign = response.resources.iter().filter(|item| !self.is_own(&item.name)).count();
        let own = response.resources.iter().filter(|item| self.is_own(&item.name));
        let mut items: Vec<String> = own.take(20).map(item).collect();
        if foreign > 0 {
            items.push(format!("and {foreign} not of the kit"));
        }
        let mut line = format!("{} {{{}}}", resource::short(&response.type_url), items.join(","));
        let names = |names: &[String]| names.iter().map(|name| self.short_name(name)).collect::<Vec<_>>().join(",");
        if !response.removed.is_empty() {
            line += &format!(" rm[{}]", names(&response.removed));
        }
        if !response.errors.is_empty() {
            line += &format!(" err[{}]", names(&response.errors));
        }
        if self.variant == Variant::Sotw {
            line += &format!(" v={}", response.version);
        }
        line + &format!(" n={}", response.nonce)
    }
}
