//! The responses in flight of a server, and the answers to them.

use super::super::Made;
use super::{Memory, Out};
use crate::variant::Request;

/// The number of rejected responses that a server keeps apart; older ones it joins.
pub(super) const APART: u8 = 8;

impl Memory {
    /// Returns the responses with content that are in flight.
    pub(super) fn content_out(&self) -> impl DoubleEndedIterator<Item = &Out> {
        self.outs.iter().filter(|out| out.until.is_some())
    }

    pub(super) fn is_out(&self) -> bool {
        self.content_out().next().is_some()
    }

    /// Records a response in flight. Two with content and one with heartbeats alone are recognised by their nonces: what
    /// an older one had shares the verdict of the next.
    pub(super) fn put_out(&mut self, out: Out) {
        let alike = |other: &Out| other.until.is_some() == out.until.is_some();
        let most = usize::from(out.until.is_some());
        if self.outs.iter().filter(|other| alike(other)).count() > most {
            let oldest = self.outs.iter().position(alike).expect("one of them");
            let oldest = self.outs.remove(oldest);
            if let Some(next) = self.outs.iter_mut().find(|other| alike(other)) {
                oldest
                    .resources
                    .into_iter()
                    .for_each(|(name, content)| _ = next.resources.entry(name).or_insert(content));
                next.removed.extend(oldest.removed);
                next.beats.extend(oldest.beats);
            }
        }
        self.outs.push(out);
        self.several |= self.content_out().count() > 1;
    }

    /// Records the ACK or NACK of a response in flight. A client answers in order; in SotW the version that it accepted
    /// last tells about the responses before.
    pub(super) fn answers(&mut self, setup: &Made, request: &Request<'_>) {
        let Some(at) = self.outs.iter().position(|out| out.nonce == *request.nonce) else { return };
        let answered = self.outs.remove(at);
        let (content, rejects) = (answered.until.is_some(), request.error.is_some());
        let before: Vec<Out> = self.outs.drain(..at).collect();
        let accepted = request.version.and_then(|version| before.iter().rposition(|out| *version == out.version));
        for (place, out) in before.into_iter().enumerate() {
            let same = request.version.is_none_or(|version| *version == out.version);
            let is_accepted = accepted.is_some_and(|accepted| place <= accepted);
            let settled = content || is_accepted || (request.version.is_some() && rejects);
            match settled {
                true if out.until.is_some() => self.judge(setup, out, rejects && !same),
                true => {}
                false => self.outs.insert(place.min(self.outs.len()), out),
            }
        }
        if rejects {
            // The client does not have these: they are sent again with their content.
            self.reasons.extend(answered.beats.iter().cloned());
        }
        self.judge(setup, answered, rejects);
    }

    /// Applies the client's ACK or NACK of the response in flight.
    fn judge(&mut self, setup: &Made, out: Out, rejected: bool) {
        if rejected {
            // A seeded loop of rejections has to come back to one state.
            let counted = setup.bug.is_none();
            self.rejections += u8::from(counted && self.rejections <= APART);
            self.refused.extend(out.resources.iter().map(|(name, content)| (name.clone(), *content)));
        } else {
            self.refused.retain(|name, _| !out.resources.contains_key(name));
            self.rejected.retain(|name, _| !out.resources.contains_key(name));
            self.rejected_whole = self.rejected_whole.take().filter(|whole| *whole != out.resources);
            return;
        }
        if out.resources.keys().all(|name| !self.reasons.contains(name)) && self.reasons.is_empty() {
            self.rejected_whole = Some(out.resources.clone());
        }
        for (name, content) in out.resources {
            if !self.reasons.contains(&name) {
                self.rejected.insert(name, content);
            }
        }
    }
}
