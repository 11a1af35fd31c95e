//! The kit's requests.

use std::collections::BTreeMap;

use super::peer::Peer;
use super::stream::OfType;
use super::{Runner, Stop};
use crate::message::{Node, Request, Response, Variant};
use crate::resource;
use crate::story::{Answers, Resume, Send, Text};

/// The error of a NACK.
const ERROR: (i32, &str) = (3, "the kit rejects this, to see what follows");

impl Runner {
    /// Sends a request of the story.
    pub(super) fn send(&mut self, peer: &mut dyn Peer, send: &Send) -> Result<(), Stop> {
        self.stream(peer)?;
        let type_url = if send.type_name.is_empty() { String::new() } else { self.type_url(&send.type_name) };
        let key = if type_url.is_empty() { self.of.clone() } else { type_url.clone() };
        let mut names: Vec<String> = send.names.iter().map(|name| self.name(name)).collect();
        names.extend((0..send.fill).map(|number| self.name(&format!("fill-{number}"))));
        let initial = send.initial.iter().map(|(name, version)| {
            let name = self.name(name);
            let version = match version {
                Text::Literal(text) => text.clone(),
                Text::Of(variable) => self.version_of(variable, &name)?,
            };
            Ok((name, version))
        });
        let mut initial = initial.collect::<Result<BTreeMap<_, _>, Stop>>()?;
        let answered = match &send.answers {
            Answers::Nothing => None,
            Answers::Ack(None) | Answers::Nack(None) if self.is_walk => self.next_to_answer(&key),
            Answers::Ack(variable) | Answers::Nack(variable) => Some(self.answered(&key, variable.as_deref())?),
        };
        let is_nack = matches!(send.answers, Answers::Nack(_)) && answered.is_some();
        let (version, nonce) = (self.literal(send.version.as_ref(), true)?, self.literal(send.nonce.as_ref(), false)?);
        let unsubscribe = send.unsubscribe.iter().map(|name| self.name(name)).collect();
        let sotw = self.variant == Variant::Sotw;
        let node = Node { id: format!("{}node", self.prefix), features: send.client_features.clone() };
        let before = self.before.get(&self.current).and_then(|(types, _)| types.get(&key));
        let (claimed, held) = before.map(|before| before.claims(send.resume, &names)).unwrap_or_default();
        let stream = self.here()?;
        let first = !std::mem::replace(&mut stream.begun, true);
        let of = stream.types.entry(key).or_default();
        let first_of_type = !std::mem::replace(&mut of.asked, true);
        if first_of_type && sotw && !claimed.is_empty() {
            of.version = claimed;
        } else if first_of_type && !sotw {
            initial.extend(held);
        }
        if sotw {
            of.names.clone_from(&names);
        }
        let is_answer = answered.is_some();
        if let Some(response) = answered {
            of.answer(&response, is_nack);
        }
        let usual_nonce = match &send.answers {
            Answers::Nothing if !sotw => String::new(),
            _ if !sotw && !is_answer => String::new(),
            _ => of.nonce.clone(),
        };
        let request = Request {
            type_url,
            names,
            unsubscribe,
            initial,
            version: version.unwrap_or_else(|| if sotw { of.version.clone() } else { String::new() }),
            nonce: nonce.unwrap_or(usual_nonce),
            error: (is_nack || send.error).then(|| (ERROR.0, ERROR.1.to_owned())),
            node: (first && !send.nodeless).then_some(node),
        };
        self.transmit(peer, &request)
    }

    /// Reads and answers every response that has come on the current stream.
    pub(super) fn answer_all(&mut self, peer: &mut dyn Peer, nack: bool) -> Result<(), Stop> {
        let unread: Vec<String> = self.here()?.unread.iter().map(|response| response.type_url.clone()).collect();
        for type_url in unread {
            self.read(&type_url);
        }
        let types: Vec<String> = self.here()?.types.keys().cloned().collect();
        for type_url in types {
            let pending = self.here()?.types[&type_url].pending.clone();
            for response in pending {
                self.answer(peer, &response, nack)?;
            }
        }
        Ok(())
    }

    /// Returns the next response of a type to answer, if there is one: an unread one, or else one that was read before.
    fn next_to_answer(&mut self, type_url: &str) -> Option<Response> {
        if let Some(response) = self.read(type_url) {
            return Some(response);
        }
        let of = self.streams.get(&self.current)?.types.get(type_url)?;
        of.pending.first().cloned()
    }

    /// Answers the next response of a type, if one has come.
    pub(super) fn answer_one(&mut self, peer: &mut dyn Peer, type_name: &str, nack: bool) -> Result<(), Stop> {
        let type_url = self.type_url(type_name);
        match self.next_to_answer(&type_url) {
            Some(response) => self.answer(peer, &response, nack),
            None => Ok(()),
        }
    }

    /// Answers one response that was read.
    pub(super) fn answer(&mut self, peer: &mut dyn Peer, response: &Response, nack: bool) -> Result<(), Stop> {
        let sotw = self.variant == Variant::Sotw;
        let of = self.here()?.types.entry(response.type_url.clone()).or_default();
        of.answer(response, nack);
        let request = Request {
            type_url: response.type_url.clone(),
            names: if sotw { of.names.clone() } else { Vec::new() },
            version: if sotw { of.version.clone() } else { String::new() },
            nonce: response.nonce.clone(),
            error: nack.then(|| (ERROR.0, ERROR.1.to_owned())),
            ..Request::default()
        };
        self.transmit(peer, &request)
    }

    fn transmit(&mut self, peer: &mut dyn Peer, request: &Request) -> Result<(), Stop> {
        let line = self.write_request(request);
        let mark = if self.streams.len() > 1 { self.current.to_string() } else { String::new() };
        self.ladder.push(format!("C{mark}> {line}"));
        let variant = self.variant;
        let stream = self.here()?;
        stream.referee.request(request);
        let id = stream.id;
        Ok(peer.send(id, variant, request)?)
    }

    /// Returns the response that a request answers.
    fn answered(&mut self, type_url: &str, variable: Option<&str>) -> Result<Response, Stop> {
        let response = match variable {
            Some(variable) => self.bound.get(variable).and_then(|responses| responses.last()).cloned(),
            None => {
                let of = self.here()?.types.get(type_url);
                of.and_then(|of| of.pending.last()).cloned()
            }
        };
        response.ok_or_else(|| Stop::Inconclusive("there is nothing to answer".into()))
    }

    fn literal(&self, text: Option<&Text>, version: bool) -> Result<Option<String>, Stop> {
        match text {
            None => Ok(None),
            Some(Text::Literal(text)) => Ok(Some(text.clone())),
            Some(Text::Of(variable)) => {
                let last = self.bound.get(variable).and_then(|responses| responses.last());
                let last = last.ok_or_else(|| Stop::Inconclusive(format!("${variable} is bound to nothing")))?;
                Ok(Some(if version { last.version.clone() } else { last.nonce.clone() }))
            }
        }
    }

    /// Returns the version that a bound response gave a resource.
    fn version_of(&self, variable: &str, name: &str) -> Result<String, Stop> {
        let items = self.bound.get(variable).into_iter().flatten().flat_map(|response| &response.resources);
        let version = items.filter(|item| item.name == name).map(|item| item.version.clone()).last();
        version.ok_or_else(|| Stop::Inconclusive(format!("${variable} has no {name}")))
    }

    fn write_request(&self, request: &Request) -> String {
        let names = |names: &[String]| {
            let more = names.len().saturating_sub(20);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            names.iter().take(20).map(|name| self.short_name(name)).collect::<Vec<_>>().join(",") + &more
        };
        let mut line = resource::short(&request.type_url).to_owned();
        if self.variant == Variant::Sotw {
            line += &format!(" [{}] v={}", names(&request.names), request.version);
        } else {
            if !request.names.is_empty() {
                line += &format!(" +[{}]", names(&request.names));
            }
            if !request.unsubscribe.is_empty() {
                line += &format!(" -[{}]", names(&request.unsubscribe));
            }
            for (name, version) in &request.initial {
                line += &format!(" irv{{{}:{version}}}", self.short_name(name));
            }
        }
        line += &format!(" n={}", request.nonce);
        line + if request.error.is_some() { " NACK" } else { "" }
    }
}

impl OfType {
    /// Records that a response is answered.
    fn answer(&mut self, response: &Response, nack: bool) {
        self.pending.retain(|pending| pending.nonce != response.nonce);
        if nack {
            return;
        }
        self.version.clone_from(&response.version);
        if self.first_version.is_empty() {
            self.first_version.clone_from(&response.version);
        }
        for item in response.resources.iter().filter(|item| item.body.is_some()) {
            self.held.insert(item.name.clone(), item.version.clone());
            self.first_held.entry(item.name.clone()).or_insert_with(|| item.version.clone());
        }
        for name in &response.removed {
            self.held.remove(name);
            self.first_held.remove(name);
        }
    }

    /// Returns the claims of a client that had these names on an earlier stream: in SotW its version, in delta its
    /// resources.
    fn claims(&self, resume: Resume, names: &[String]) -> (String, BTreeMap<String, String>) {
        let (version, held) = match resume {
            Resume::No => return Default::default(),
            Resume::Last => (&self.version, &self.held),
            Resume::Older => (&self.first_version, &self.first_held),
        };
        let wanted = |name: &String| names.iter().any(|of| of == "*" || of == name);
        let held = held.iter().filter(|(name, _)| wanted(name));
        (version.clone(), held.map(|(name, version)| (name.clone(), version.clone())).collect())
    }
}
