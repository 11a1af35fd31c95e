//! The witness: a fresh stream shows that the server has taken a change. Without it, silence means nothing.

use super::peer::{Event, Op, Peer, StreamId, Wait};
use super::{MOST_MESSAGES, Runner, Stop};
use crate::message::{Node, Request, Response};
use crate::resource::Put;

impl Runner {
    /// Makes sure that the server has taken all changes so far. A change that is followed by another of the same
    /// resource is not looked for; a removal is known by a resource that is put after it.
    pub(super) fn see_changes(&mut self, peer: &mut dyn Peer) -> Result<(), Stop> {
        let unseen = std::mem::take(&mut self.unseen);
        if unseen.is_empty() {
            return Ok(());
        }
        if !peer.is_instant() {
            let removals = removals(&unseen);
            // One type shows all, if changes are taken in order.
            for removal in removals.iter().take(if peer.is_ordered() { 1 } else { removals.len() }) {
                self.see_removal(peer, removal)?;
            }
            let mut last: Vec<Put> = Vec::new();
            for op in unseen {
                match op {
                    Op::Put(put) => {
                        last.retain(|other| (&other.type_url, &other.name) != (&put.type_url, &put.name));
                        last.push(put);
                    }
                    Op::Delete { type_url, name } => {
                        last.retain(|other| (&other.type_url, &other.name) != (&type_url, &name));
                    }
                    Op::Error { .. } | Op::Unknown { .. } | Op::Clear | Op::Restart => {}
                }
            }
            for put in &last {
                match self.see(peer, put) {
                    Err(Stop::Inconclusive(why)) if self.story.trusts && peer.is_confirmed() => {
                        self.ladder.push(format!("   ({why})"));
                    }
                    seen => seen?,
                }
            }
        }
        self.world.settle();
        Ok(())
    }

    /// Puts a resource after a removal, and waits for it. The resource has a type that disturbs no stream of the story;
    /// or, if the server serves no such type, the type of the removal.
    fn see_removal(&mut self, peer: &mut dyn Peer, removal: &str) -> Result<(), Stop> {
        let variant = self.variant;
        let is_free = |word: &&str| {
            let type_url = crate::resource::type_url(word);
            let used = self.of == type_url || self.streams.values().any(|stream| stream.types.contains_key(type_url));
            peer.is_ordered() && peer.serves(type_url) && !used && peer.has_witnesses(variant, type_url)
        };
        let free = ["rds", "eds"].into_iter().find(is_free).map(crate::resource::type_url);
        if let Some(type_url) = free {
            let marker = self.marker(peer, type_url)?;
            match self.see(peer, &marker) {
                Err(Stop::Inconclusive(_)) => {}
                seen => return seen,
            }
        }
        let marker = self.marker(peer, removal)?;
        self.see(peer, &marker)
    }

    fn marker(&mut self, peer: &mut dyn Peer, type_url: &str) -> Result<Put, Stop> {
        let name = format!("{}marker-{}-{}", self.prefix, self.world.names(type_url).count(), self.ladder.len());
        let put = Put { type_url: type_url.to_owned(), name, revision: 1, ttl: None, alias: None };
        let op = Op::Put(put.clone());
        // The referees learn of the change first: a push may be faster than the control's answer.
        self.world_changes(&op);
        peer.control(&[op])?;
        Ok(put)
    }

    fn see(&mut self, peer: &mut dyn Peer, put: &Put) -> Result<(), Stop> {
        let short = crate::resource::short(&put.type_url);
        if !peer.has_witnesses(self.variant, &put.type_url) {
            return Err(Stop::Inconclusive(format!("no fresh stream has ever shown any {short} of the kit")));
        }
        let seen = self.look(peer, put)?;
        peer.note_witness(self.variant, &put.type_url, seen);
        if seen {
            return Ok(());
        }
        let name = self.short_name(&put.name).to_owned();
        Err(Stop::Inconclusive(format!(
            "no fresh stream shows {short} {name} at {}: the control may have failed",
            put.revision
        )))
    }

    fn look(&mut self, peer: &mut dyn Peer, put: &Put) -> Result<bool, Stop> {
        let stream = peer.open(self.variant, None)?;
        let request = Request {
            type_url: put.type_url.clone(),
            names: vec![put.name.clone()],
            node: Some(Node { id: format!("{}witness", self.prefix), features: Vec::new() }),
            ..Request::default()
        };
        peer.send(stream, self.variant, &request)?;
        let seen = self.watch(peer, stream, put);
        peer.close(stream);
        if seen? {
            return Ok(true);
        }
        // A server that never pushes sends the resource on the next stream.
        let again = peer.open(self.variant, None)?;
        peer.send(again, self.variant, &request)?;
        let seen = self.watch(peer, again, put);
        peer.close(again);
        seen
    }

    fn watch(&mut self, peer: &mut dyn Peer, stream: StreamId, put: &Put) -> Result<bool, Stop> {
        let mut events = 0;
        while let Some(event) = peer.poll(Wait::Answer) {
            match event {
                Event::Response(id, response) if id == stream => {
                    let is = |revision: Option<u64>| revision.is_none_or(|revision| revision == put.revision);
                    if response.resources.iter().any(|item| item.answers(&put.name) && is(item.revision)) {
                        return Ok(true);
                    }
                    self.acknowledge(peer, stream, put, &response)?;
                }
                Event::Closed(id, why) | Event::Malformed(id, why) if id == stream => {
                    return Err(Stop::Inconclusive(format!("a fresh stream was ended: {why}")));
                }
                other => _ = self.take(other),
            }
            events += 1;
            if events > MOST_MESSAGES {
                break;
            }
        }
        Ok(false)
    }

    fn acknowledge(
        &mut self,
        peer: &mut dyn Peer,
        stream: StreamId,
        put: &Put,
        response: &Response,
    ) -> Result<(), Stop> {
        let delta = self.is_delta();
        let request = Request {
            type_url: response.type_url.clone(),
            names: if delta { Vec::new() } else { vec![put.name.clone()] },
            version: if delta { String::new() } else { response.version.clone() },
            nonce: response.nonce.clone(),
            ..Request::default()
        };
        Ok(peer.send(stream, self.variant, &request)?)
    }
}

/// Returns the types of removals, the last first.
fn removals(unseen: &[Op]) -> Vec<String> {
    let mut types: Vec<String> = Vec::new();
    for op in unseen.iter().rev() {
        match op {
            Op::Delete { type_url, .. } | Op::Error { type_url, .. } | Op::Unknown { type_url, .. }
                if !types.contains(type_url) =>
            {
                types.push(type_url.clone());
            }
            _ => {}
        }
    }
    types
}
