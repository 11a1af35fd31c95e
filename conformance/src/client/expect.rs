//! The steps that expect messages of a client, or their absence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::item::kit_item;
use super::player::{Player, Stop, not_asked};
use super::session::{Entry, Session};
use super::story::{Applied, How, Wish};
use crate::message::{Request, Response, Variant};
use crate::referee::Merit;
use crate::resource;

impl Player {
    /// Checks that requests with these parts come: in SotW one request with all of them, in delta any number of
    /// requests.
    pub(super) fn must(&mut self, session: &mut Session<'_>, wish: &Wish) -> Result<(), Stop> {
        let type_url = self.type_url(&wish.type_name);
        if wish.version.as_deref() == Some("") && session.accepted.contains(&type_url) {
            let short = resource::short(&type_url);
            return Err(Stop::Inconclusive(format!("the client has accepted a response of {short} before")));
        }
        let mark = self.mark(&type_url);
        // A client that has no stream may wait before it opens the next.
        let wants = session.wanted.get(&type_url).is_none_or(|names| !names.is_empty());
        if wants && !session.wait_asked(&type_url) {
            return Err(match &session.gone {
                Some(why) => Stop::Late(why.clone()),
                None => not_asked(session, &type_url),
            });
        }
        let found = |session: &Session<'_>| self.find(session, wish, &type_url, mark);
        // A client that wants nothing more on a stream may end it instead.
        let wants_none = session.wanted.get(&type_url).is_some_and(BTreeSet::is_empty);
        let ended = |session: &Session<'_>| {
            let has_ended = session.log[mark..].iter().any(|entry| matches!(entry, Entry::Closed));
            wants_none && has_ended && !session.is_asked(&type_url)
        };
        session.wait_until(session.timing.answer, |session| found(session).is_ok() || ended(session));
        let found = found(session);
        if found.is_err() && ended(session) {
            self.ended_stream = true;
            return Ok(());
        }
        match found {
            Ok(used) => {
                self.used.extend(used);
                self.asked_at = session.peer.now();
                Ok(())
            }
            Err(lacks) => Err(Stop::Late(self.said(session, wish, &lacks))),
        }
    }

    fn said(&self, session: &Session<'_>, wish: &Wish, lacks: &str) -> String {
        let type_url = self.type_url(&wish.type_name);
        let last = session.log.iter().rev().find_map(|entry| match entry {
            Entry::Request { request, .. } if request.type_url == type_url => Some(session.write_request(request)),
            _ => None,
        });
        let last = last.unwrap_or_else(|| "none".into());
        format!("must come on {}, and did not: {lacks}; the last request: {last}", resource::short(&type_url))
    }

    /// Checks that no request of the type, or none with these parts, comes.
    pub(super) fn must_not(&mut self, session: &mut Session<'_>, wish: &Wish) -> Result<(), Stop> {
        session.rest();
        let type_url = self.type_url(&wish.type_name);
        let mark = self.mark(&type_url);
        let mut all = requests(session, &type_url, mark).filter(|(at, ..)| !self.used.contains(at));
        match all.find(|(_, first, request)| self.fits(session, wish, *first, request)) {
            Some((_, _, request)) => {
                Err(Stop::Fail(format!("must not come, and did: {}", session.write_request(request))))
            }
            None => Ok(()),
        }
    }

    /// Reports whether requests with these parts come.
    pub(super) fn maybe(&mut self, session: &mut Session<'_>, wish: &Wish) {
        session.rest();
        let type_url = self.type_url(&wish.type_name);
        let mark = self.mark(&type_url);
        let found = self.find(session, wish, &type_url, mark).is_ok();
        let last = requests(session, &type_url, mark).last().map(|(_, _, request)| session.write_request(request));
        self.notes.push(match (found, last) {
            (true, Some(last)) => format!("yes: {last}"),
            (_, Some(last)) => format!("no: {last}"),
            (_, None) => "no: nothing came".into(),
        });
    }

    /// Returns the places of the requests that the step needs, or what is missing.
    fn find(&self, session: &Session<'_>, wish: &Wish, type_url: &str, mark: usize) -> Result<Vec<usize>, String> {
        let parts = if session.variant == Variant::Sotw { vec![wish.clone()] } else { parts(wish) };
        let find = |part: &Wish| {
            // An answer may have come before a later response was sent.
            let answers = part.ack.as_ref().or(part.nack.as_ref()).or(part.answer.as_ref());
            let mark = answers.and_then(|of| self.bound_at.get(of)).map_or(mark, |at| (*at).min(mark));
            let mut all = requests(session, type_url, mark);
            let hit = all.find(|(_, first, request)| self.fits(session, part, *first, request));
            hit.map(|(at, ..)| at).ok_or_else(|| self.describe(part))
        };
        parts.iter().map(find).collect()
    }

    /// Returns whether one request has all parts.
    fn fits(&self, session: &Session<'_>, wish: &Wish, first: bool, request: &Request) -> bool {
        let wire = |names: &[String]| names.iter().map(|name| self.name(name)).collect::<BTreeSet<_>>();
        let has: BTreeSet<String> = request.names.iter().cloned().collect();
        let nonce = |variable: &Option<String>| match variable {
            None => true,
            Some(variable) => self.bound.get(variable).is_some_and(|response| response.nonce == request.nonce),
        };
        let lacks = |name: &String| match session.variant {
            Variant::Sotw => !has.contains(name),
            Variant::Delta => request.unsubscribe.contains(name),
        };
        let version = wish.version.as_ref().is_none_or(|variable| match self.bound.get(variable) {
            Some(response) => response.version == request.version,
            None => variable.is_empty() && request.version.is_empty(),
        });
        wish.names.as_ref().is_none_or(|names| wire(names) == has)
            && wire(&wish.add).is_subset(&has)
            && wire(&wish.remove).iter().all(lacks)
            && nonce(&wish.ack)
            && nonce(&wish.nack)
            && nonce(&wish.answer)
            && (wish.ack.is_none() || request.error.is_none())
            && (wish.nack.is_none() || request.error.is_some())
            && version
            && (!wish.no_nonce || request.nonce.is_empty())
            && (!wish.first || first)
            && (!wish.error || request.error.is_some())
            && (!wish.no_error || request.error.is_none())
    }

    /// Returns whether a request since the last `want` asks for a name that the request before did not have; in delta,
    /// whether a request subscribes to the name.
    pub(super) fn has_asked_anew(&self, session: &Session<'_>, type_url: &str, name: &str) -> bool {
        let (mark, mut had) = (self.mark(type_url), false);
        requests(session, type_url, self.start).any(|(at, first, request)| {
            let has = request.names.iter().any(|other| other == name);
            let is_new = session.variant == Variant::Delta || first || !had;
            had = has;
            at >= mark && has && is_new
        })
    }

    fn describe(&self, wish: &Wish) -> String {
        let mut words = Vec::new();
        words.extend(wish.names.iter().map(|names| format!("the names [{}]", names.join(","))));
        words.extend(wish.add.iter().map(|name| format!("+{name}")));
        words.extend(wish.remove.iter().map(|name| format!("-{name}")));
        let nonce = |variable: &String| self.bound.get(variable).map_or_else(String::new, |of| of.nonce.clone());
        words.extend(wish.ack.iter().map(|of| format!("the ACK of {}", nonce(of))));
        words.extend(wish.nack.iter().map(|of| format!("the NACK of {}", nonce(of))));
        words.extend(wish.answer.iter().map(|of| format!("an answer to {}", nonce(of))));
        words.extend(wish.version.iter().map(|of| {
            format!("the version {:?}", self.bound.get(of).map_or_else(String::new, |of| of.version.clone()))
        }));
        let flags = [(wish.no_nonce, "no nonce"), (wish.first, "the first of a stream")];
        words.extend(flags.into_iter().filter(|(has, _)| *has).map(|(_, word)| word.to_owned()));
        words.extend(
            [(wish.error, "an error"), (wish.no_error, "no error")]
                .into_iter()
                .filter(|(has, _)| *has)
                .map(|(_, word)| word.to_owned()),
        );
        if words.is_empty() { "a request".into() } else { words.join(" ") }
    }

    /// Checks that the client is subscribed to exactly these names.
    pub(super) fn names(&mut self, session: &mut Session<'_>, type_name: &str, names: &[String]) -> Result<(), Stop> {
        let type_url = self.type_url(type_name);
        if !names.is_empty() && !session.wait_asked(&type_url) {
            return Err(not_asked(session, &type_url));
        }
        let wanted: BTreeSet<String> = names.iter().map(|name| self.name(name)).collect();
        let has = |session: &Session<'_>| -> BTreeSet<String> {
            let streams = session.streams.values();
            streams.flat_map(|stream| stream.referee.names(&type_url)).collect()
        };
        session.wait_until(session.timing.answer, |session| has(session) == wanted);
        session.rest();
        let has = has(session);
        if has == wanted {
            return Ok(());
        }
        let list = |names: &BTreeSet<String>| session.short_names(&names.iter().cloned().collect::<Vec<_>>());
        Err(Stop::Late(format!("the client wants [{}], and is subscribed to [{}]", list(&wanted), list(&has))))
    }

    /// Checks that the first request of a stream claims the resources that the client holds.
    pub(super) fn claims(
        &mut self,
        session: &mut Session<'_>,
        type_name: &str,
        held: &[(String, String)],
    ) -> Result<(), Stop> {
        let type_url = self.type_url(type_name);
        self.must(session, &Wish { type_name: type_name.to_owned(), first: true, ..Wish::default() })?;
        let claimed = {
            let mut all = requests(session, &type_url, self.start);
            all.rfind(|(_, first, _)| *first).map(|(_, _, request)| request.initial.clone()).unwrap_or_default()
        };
        let version = |(name, of): &(String, String)| {
            let name = self.name(name);
            let items = self.bound.get(of).into_iter().flat_map(|response| &response.resources);
            let version = items.filter(|item| item.name == name).map(|item| item.version.clone()).last();
            (name, version.unwrap_or_default())
        };
        let wanted: BTreeMap<String, String> = held.iter().map(version).collect();
        let list = |map: &BTreeMap<String, String>| {
            let held = map.iter().map(|(name, version)| format!("{}:{version}", session.short_name(name)));
            held.collect::<Vec<_>>().join(",")
        };
        let wrong = claimed.iter().any(|(name, version)| wanted.get(name) != Some(version));
        let has_all = session.wanted.get(&type_url).is_some_and(|names| names.contains("*"));
        let lists = format!("holds {{{}}}, and claims {{{}}}", list(&wanted), list(&claimed));
        match claimed.len() {
            _ if wrong => Err(Stop::Fail(lists)),
            all if all == wanted.len() => Ok(()),
            0 if has_all => self.drops_unclaimed(session, &type_url, &wanted),
            // The server cannot announce the removal of a resource that the client does not claim.
            _ if has_all => Err(Stop::Fail(lists)),
            // The client asks for the resource by its name, and the server answers for that name anyway.
            _ => {
                self.notes.push(lists);
                Ok(())
            }
        }
    }

    /// Checks that a client that claims nothing drops the resources that are gone: the server cannot announce their
    /// removal.
    fn drops_unclaimed(
        &mut self,
        session: &mut Session<'_>,
        type_url: &str,
        held: &BTreeMap<String, String>,
    ) -> Result<(), Stop> {
        // For a resource that is asked for by its name, the server answers anyway.
        let named = |name: &&String| session.wanted.get(type_url).is_some_and(|names| names.contains(*name));
        let Some(first) = held.keys().find(named).or_else(|| held.keys().next()).cloned() else {
            self.notes.push("the client does not claim what it holds".into());
            return Ok(());
        };
        let gone: BTreeSet<String> = held.keys().filter(|name| **name != first && !named(name)).cloned().collect();
        if !session.says_apply {
            return Err(Stop::Inconclusive("the client claims nothing, and does not say what it has removed".into()));
        }
        let (resources, version) = (vec![kit_item(type_url, &first, 9)], session.next_version());
        let mut response = Response { type_url: type_url.to_owned(), version, resources, ..Response::default() };
        let mark = session.log.len();
        session.send(&mut response, None, Merit::Good);
        let removed = |session: &Session<'_>| {
            let (_, removed) = self.applies(session, type_url, mark);
            gone.is_subset(&removed)
        };
        if session.wait_until(session.timing.answer, removed) {
            self.notes.push("the client does not claim what it holds, and drops it".into());
            return Ok(());
        }
        let why = "the client did not say that it holds a resource, and keeps it although the server does not have it";
        Err(Stop::Late(why.into()))
    }

    /// Checks what the client reports that it has applied.
    pub(super) fn applied(&mut self, session: &mut Session<'_>, wish: &Applied) -> Result<(), Stop> {
        let type_url = self.type_url(&wish.type_name);
        let mark = self.mark_of_events(&type_url);
        let wire = |names: &[String]| names.iter().map(|name| self.name(name)).collect::<BTreeSet<_>>();
        let (names, gone) = (wire(&wish.names), wire(&wish.removed));
        let are_all = |session: &Session<'_>| {
            let (applied, removed) = self.applies(session, &type_url, mark);
            names.is_subset(&applied) && gone.is_subset(&removed)
        };
        let list = format!("{{{}}} rm[{}]", wish.names.join(","), wish.removed.join(","));
        match wish.how {
            How::Must => {
                if session.wait_until(session.timing.answer, are_all) {
                    return Ok(());
                }
                if !session.says_apply {
                    return Err(Stop::Inconclusive("the client does not say what it applies".into()));
                }
                Err(Stop::Late(format!("must be applied, and was not: {list}")))
            }
            How::MustNot | How::NotYet => {
                if wish.how == How::MustNot {
                    session.rest();
                }
                if wish.how == How::MustNot && !session.says_apply {
                    return Err(Stop::Inconclusive("the client does not say what it applies".into()));
                }
                let (applied, removed) = self.applies(session, &type_url, mark);
                let hit = names.intersection(&applied).chain(gone.intersection(&removed)).next().cloned();
                match hit {
                    Some(name) => Err(Stop::Fail(format!("must stay as it is: {}", session.short_name(&name)))),
                    None => Ok(()),
                }
            }
            How::Maybe => {
                session.rest();
                let so = are_all(session);
                self.notes.push(format!("{}: {list}", if so { "applied" } else { "not applied" }));
                Ok(())
            }
        }
    }

    /// Checks whether the client reports that a resource does not exist.
    pub(super) fn missing(
        &mut self,
        session: &mut Session<'_>,
        type_name: &str,
        name: &str,
        within: Option<(Duration, Duration)>,
    ) -> Result<(), Stop> {
        let (type_url, wire) = (self.type_url(type_name), self.name(name));
        if session.reference.is_some() {
            return Err(Stop::Inconclusive("the client does not say what does not exist".into()));
        }
        let from = self.start;
        let said = |session: &Session<'_>| {
            session.log[from..].iter().find_map(|entry| match entry {
                Entry::Missing { type_url: of, name, at } if *of == type_url && *name == wire => Some(*at),
                _ => None,
            })
        };
        let Some((earliest, latest)) = within else {
            session.rest();
            return match said(session) {
                Some(_) => Err(Stop::Fail(format!("the client says that {name} does not exist"))),
                None => Ok(()),
            };
        };
        let left = (self.asked_at + latest).saturating_sub(session.peer.now()).max(session.timing.answer);
        session.wait_until(left, |session| said(session).is_some());
        match said(session).map(|at| at.saturating_sub(self.asked_at)) {
            None => Err(Stop::Late(format!(
                "the client does not say within {} s that {name} does not exist",
                latest.as_secs()
            ))),
            Some(time) if time < earliest => {
                Err(Stop::Fail(format!("the client says after {} ms that {name} does not exist", time.as_millis())))
            }
            Some(time) => {
                self.notes.push(format!("does not exist after {:.1} s", time.as_secs_f64()));
                Ok(())
            }
        }
    }

    /// Returns all names that the client applied and removed since the last response.
    fn applies(&self, session: &Session<'_>, type_url: &str, mark: usize) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut applied, mut gone) = (BTreeSet::new(), BTreeSet::new());
        for entry in &session.log[mark..] {
            match entry {
                Entry::Apply { type_url: of, names, removed } if of == type_url => {
                    applied.extend(names.iter().cloned());
                    gone.extend(removed.iter().cloned());
                }
                // The client may report either way that a resource does not exist any more.
                Entry::Missing { type_url: of, name, .. } if of == type_url => _ = gone.insert(name.clone()),
                _ => {}
            }
        }
        (applied, gone)
    }

    fn mark(&self, type_url: &str) -> usize {
        self.marks.get(type_url).copied().unwrap_or(self.start)
    }

    fn mark_of_events(&self, type_url: &str) -> usize {
        self.sent_marks.get(type_url).copied().unwrap_or(self.start)
    }
}

/// Returns the parts of a step that may come in separate requests.
fn parts(wish: &Wish) -> Vec<Wish> {
    let of = || Wish { type_name: wish.type_name.clone(), ..Wish::default() };
    let mut parts = Vec::new();
    let clean = |part: Wish| Wish { no_nonce: wish.no_nonce, no_error: wish.no_error, first: wish.first, ..part };
    parts.extend(wish.add.iter().map(|name| clean(Wish { add: vec![name.clone()], ..of() })));
    parts.extend(wish.remove.iter().map(|name| clean(Wish { remove: vec![name.clone()], ..of() })));
    if wish.ack.is_some() || wish.nack.is_some() || wish.answer.is_some() {
        let (ack, nack, answer) = (wish.ack.clone(), wish.nack.clone(), wish.answer.clone());
        parts.push(Wish { ack, nack, answer, ..of() });
    }
    if parts.is_empty() || wish.names.is_some() || wish.error {
        parts.push(wish.clone());
    }
    parts
}

/// Returns the requests of a type from a place in the log on.
fn requests<'s>(
    session: &'s Session<'_>,
    type_url: &'s str,
    mark: usize,
) -> impl DoubleEndedIterator<Item = (usize, bool, &'s Request)> {
    session.log.iter().enumerate().skip(mark).filter_map(move |(at, entry)| match entry {
        Entry::Request { first, request } if request.type_url == type_url => Some((at, *first, request)),
        _ => None,
    })
}
