//! Plays the story of a walk: the referee judges every message, and the first complaint ends it.

use super::peer::{Peer, Wait};
use super::verdict::Walked;
use super::{MOST_MESSAGES, Runner, Stop};
use crate::referee::{Complaint, Rule};
use crate::story::Step;

impl Runner {
    /// Plays the story of a walk. A part of a step that is not possible is left out: an ACK with no response to answer,
    /// for example.
    pub fn walk(&mut self, peer: &mut dyn Peer) -> Walked {
        self.is_walk = true;
        let story = self.story.clone();
        for (_, step) in &story.steps {
            if matches!(step, Step::Answer { .. } | Step::AnswerOne { .. } | Step::Hear | Step::Rest)
                && !self.streams.contains_key(&self.current)
            {
                continue;
            }
            match self.step(peer, step) {
                Ok(()) => {}
                Err(Stop::Fail(why) | Stop::Inconclusive(why) | Stop::Trouble(why)) => {
                    return self.complaint().map_or(Walked::Inconclusive(why), Walked::Complaint);
                }
            }
            self.take_what_came(peer);
            if let Some(complaint) = self.complaint() {
                return Walked::Complaint(complaint);
            }
        }
        match self.given.as_ref().is_some_and(|given| given.moves) {
            true => Walked::Inconclusive("the server's content changes by itself".into()),
            false => Walked::Silent,
        }
    }

    /// Returns the first complaint, unless the server's content changes by itself.
    fn complaint(&self) -> Option<Complaint> {
        if self.given.as_ref().is_some_and(|given| given.moves) {
            return None;
        }
        let ended = self.streams.values().find_map(|stream| stream.closed.as_ref());
        let ended = ended.map(|why| Complaint {
            rule: Rule::StreamEnded,
            type_url: String::new(),
            what: format!("the server ended the stream: {why}"),
        });
        self.complaints.first().cloned().or(ended)
    }

    /// Takes the events that are there already.
    fn take_what_came(&mut self, peer: &mut dyn Peer) {
        for _ in 0..MOST_MESSAGES {
            if !self.wait(peer, Wait::Nothing) {
                return;
            }
        }
    }

    /// Listens until nothing is owed on the current stream, or nothing comes for a while.
    pub(super) fn hear(&mut self, peer: &mut dyn Peer) {
        for _ in 0..MOST_MESSAGES {
            let Some(stream) = self.streams.get(&self.current) else { return };
            // A copy of the referee judges: whether a change was taken is not known here.
            let is_owed = !stream.referee.clone().rest(true).is_empty();
            if !self.wait(peer, if is_owed { Wait::Quiet } else { Wait::Nothing }) {
                return;
            }
        }
    }
}
