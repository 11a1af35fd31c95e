//! The steps that expect messages of a server, or their absence.

use std::collections::BTreeSet;

use super::peer::{Peer, Wait};
use super::{MOST_EVENTS, MOST_MESSAGES, Runner, Stop};
use crate::message::{Item, Response, Variant};
use crate::resource;
use crate::story::{Expected, Form};

impl Runner {
    /// Checks that responses with these parts come, in any grouping. The responses before the last one are answered
    /// with an ACK, because a server may wait for it.
    pub(super) fn must(&mut self, peer: &mut dyn Peer, expected: &Expected) -> Result<(), Stop> {
        let type_url = self.type_url(&expected.type_name);
        self.stream(peer)?;
        let mut read: Vec<Response> = Vec::new();
        for _ in 0..MOST_EVENTS {
            if read.len() > MOST_MESSAGES {
                break;
            }
            if let Some(response) = self.read(&type_url) {
                read.push(response.clone());
                if self.lacks(expected, &read).is_empty() {
                    self.bind(expected, read);
                    return Ok(());
                }
                self.answer(peer, &response, false)?;
                continue;
            }
            if !self.wait(peer, Wait::Answer) {
                break;
            }
        }
        let lacks = self.lacks(expected, &read);
        self.fails(peer, format!("must come on {}, and did not: {}", resource::short(&type_url), lacks.join(", ")))
    }

    /// Checks that a response with exactly these resources of the kit comes.
    pub(super) fn exactly(&mut self, peer: &mut dyn Peer, expected: &Expected) -> Result<(), Stop> {
        let type_url = self.type_url(&expected.type_name);
        self.stream(peer)?;
        let wanted: BTreeSet<String> = expected.resources.iter().map(|(name, _)| self.name(name)).collect();
        let mut last = "no response".to_owned();
        for _ in 0..MOST_MESSAGES {
            if let Some(response) = self.read(&type_url) {
                let own = response.resources.iter().filter(|item| self.is_own(&item.name));
                let same = own.map(|item| item.name.clone()).collect::<BTreeSet<_>>() == wanted;
                if same && self.lacks(expected, std::slice::from_ref(&response)).is_empty() {
                    self.bind(expected, vec![response]);
                    return Ok(());
                }
                last = self.write_response(&response);
                self.answer(peer, &response, false)?;
                continue;
            }
            if !self.wait(peer, Wait::Answer) {
                break;
            }
        }
        let names: Vec<&str> = expected.resources.iter().map(|(name, _)| name.as_str()).collect();
        self.fails(peer, format!("a response with exactly {{{}}} must come; the last was: {last}", names.join(",")))
    }

    /// Checks that no response with these parts comes.
    pub(super) fn must_not(&mut self, peer: &mut dyn Peer, expected: &Expected) -> Result<(), Stop> {
        self.see_changes(peer)?;
        self.drain(peer);
        let type_url = self.type_url(&expected.type_name);
        while let Some(response) = self.read(&type_url) {
            if self.has_any(expected, &response) {
                let line = self.write_response(&response);
                return Err(Stop::Fail(format!("must not come, and did: {line}")));
            }
        }
        Ok(())
    }

    /// Reports whether responses with these parts come.
    pub(super) fn maybe(&mut self, peer: &mut dyn Peer, expected: &Expected) -> Result<(), Stop> {
        self.see_changes(peer)?;
        self.drain(peer);
        let type_url = self.type_url(&expected.type_name);
        let mut read = Vec::new();
        while let Some(response) = self.read(&type_url) {
            read.push(response);
        }
        let short = resource::short(&type_url);
        let note = match read.last() {
            None => format!("{short}: silence"),
            Some(_) if self.lacks(expected, &read).is_empty() => format!("{short}: as expected, in {}", read.len()),
            Some(last) => format!("{short}: {}", self.write_response(last)),
        };
        self.notes.push(note);
        self.bind(expected, read);
        Ok(())
    }

    /// Checks that the first responses of these types come in this order.
    pub(super) fn order(&mut self, peer: &mut dyn Peer, types: &[String]) -> Result<(), Stop> {
        let expected: Vec<String> = types.iter().map(|word| self.type_url(word)).collect();
        let mut came: Vec<String> = Vec::new();
        for _ in 0..MOST_MESSAGES {
            let next = self.here()?.unread.front().map(|response| response.type_url.clone());
            if let Some(type_url) = next {
                if let Some(response) = self.read(&type_url) {
                    self.answer(peer, &response, false)?;
                }
                if expected.contains(&type_url) && !came.contains(&type_url) {
                    came.push(type_url);
                }
                continue;
            }
            if came.len() == expected.len() || !self.wait(peer, Wait::Answer) {
                break;
            }
        }
        let short = |types: &[String]| types.iter().map(|of| resource::short(of)).collect::<Vec<_>>().join(", ");
        if came == expected {
            return Ok(());
        }
        self.fails(peer, format!("must come in the order {}; came in the order {}", short(&expected), short(&came)))
    }

    /// Returns a failure, unless the change that it is about never reached the server.
    pub(super) fn fails(&mut self, peer: &mut dyn Peer, why: String) -> Result<(), Stop> {
        self.see_changes(peer)?;
        // The witness has seen the change. An answer that came meanwhile is late: the case is played once more, alone.
        Err(Stop::Fail(match self.streams.get(&self.current).and_then(|stream| stream.closed.as_ref()) {
            Some(status) => format!("{why}; the stream was ended: {status}"),
            None => why,
        }))
    }

    pub(super) fn bind(&mut self, expected: &Expected, read: Vec<Response>) {
        if let Some(variable) = &expected.bind {
            self.bound.insert(variable.clone(), read);
        }
    }

    /// Returns the expected parts that no response has.
    pub(super) fn lacks(&self, expected: &Expected, read: &[Response]) -> Vec<String> {
        let mut lacks = Vec::new();
        let items = || read.iter().flat_map(|response| &response.resources);
        for (name, revision) in &expected.resources {
            let wire = self.name(name);
            let is = |item: &&Item| {
                let any = self.given.is_some();
                let is_content = revision.is_none_or(|revision| any || item.revision.is_none_or(|has| has == revision));
                item.answers(&wire) && is_content && expected.forms.iter().all(|form| has_form(item, *form))
            };
            if !items().any(|item| is(&item)) {
                let revision = revision.map_or(String::new(), |revision| format!("@{revision}"));
                lacks.push(format!("{name}{revision}"));
            }
        }
        for name in &expected.removed {
            let wire = self.name(name);
            if !read.iter().any(|response| response.removed.contains(&wire)) {
                lacks.push(format!("the removal of {name}"));
            }
        }
        for name in &expected.either {
            let wire = self.name(name);
            if !read.iter().any(|response| response.mentions(&wire)) {
                lacks.push(format!("{name} in any form"));
            }
        }
        for name in &expected.errors {
            let wire = self.name(name);
            if !read.iter().any(|response| response.errors.contains(&wire)) {
                lacks.push(format!("an error of {name}"));
            }
        }
        if read.is_empty() && lacks.is_empty() {
            lacks.push("a response".into());
        }
        lacks
    }

    /// Returns whether a response has any of the parts.
    fn has_any(&self, expected: &Expected, response: &Response) -> bool {
        if expected.is_any() {
            return true;
        }
        let resource = |(name, revision): &(String, Option<u64>)| {
            let wire = self.name(name);
            let is = |item: &&Item| {
                item.answers(&wire)
                    && revision.is_none_or(|revision| item.revision == Some(revision))
                    && expected.forms.iter().all(|form| has_form(item, *form))
            };
            response.resources.iter().any(|item| is(&item))
        };
        let removed = |name: &String| response.removed.contains(&self.name(name));
        let either = |name: &String| response.mentions(&self.name(name));
        // `{}` is any resource of the kit.
        let any = expected.has_list && expected.resources.is_empty();
        (any && response.resources.iter().any(|item| self.is_own(&item.name)))
            || expected.resources.iter().any(resource)
            || expected.removed.iter().any(removed)
            || expected.either.iter().any(either)
    }

    /// Answers every response, and lets the referee judge the silence.
    pub(super) fn rest(&mut self, peer: &mut dyn Peer) -> Result<(), Stop> {
        self.see_changes(peer)?;
        for _ in 0..MOST_MESSAGES {
            self.drain(peer);
            if self.here()?.closed.is_some() {
                return Ok(());
            }
            let (unread, pending) = {
                let stream = self.here()?;
                (stream.unread.len(), stream.types.values().map(|of| of.pending.len()).sum::<usize>())
            };
            if unread + pending > 0 {
                self.answer_all(peer, false)?;
                continue;
            }
            // A copy of the referee judges first, because a response that is owed may be late.
            let silence = self.here()?.referee.clone().rest(true);
            if silence.is_empty() || !self.wait(peer, Wait::Answer) {
                let complaints = self.here()?.referee.rest(true);
                self.ladder.extend(complaints.iter().map(|complaint| format!("   !! {complaint}")));
                self.complaints.extend(complaints);
                return Ok(());
            }
        }
        self.notes.push("the peer never comes to rest".into());
        Ok(())
    }

    /// Returns whether the story is of the incremental variant.
    pub(super) fn is_delta(&self) -> bool {
        self.variant == Variant::Delta
    }
}

fn has_form(item: &Item, form: Form) -> bool {
    match form {
        Form::Wrapped => item.wrapped,
        Form::Bare => !item.wrapped,
        Form::Ttl => item.ttl.is_some(),
        Form::Beat => item.body.is_none(),
    }
}
