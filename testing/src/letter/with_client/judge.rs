//! The rules for this crate's client: the contents of each request, and the application's resources at rest.

use std::time::Duration;

use super::super::setup::Ttls;
use super::super::truth::{State, covers};
use super::super::walk::{Fault, ensure};
use super::super::wire::{Ask, Variant, short};
use super::{Applied, Names, WithClient};

// Known faults of the client, each with a trace: `true` searches for the fault.

/// `+y +z -> {b [z]}; ACK; -> {b [y], c [z]}`: `c` is accepted and `b` removed, because `b` was the target of `z`; but
/// now `b` is the target of `y`.
const KNOWN_ALIASES_CHANGE_HANDS: bool = false;

/// `+c +y -> {c [y]}; ACK; -> {c []}; ACK; -c`: the client keeps `c` for `y`, though `c` arrived without that alias.
/// And the content of such a `c` is applied, but an older version is claimed.
pub(super) const KNOWN_ALIASES_TAKEN_AWAY: bool = false;

/// `+* -> {b}; -*; +T/*; delete b`, and the application accepts `b` after that, or gets `b` only then, because an earlier
/// response waits for its verdict: the client keeps `b` for the collection, of which a server that has forgotten `*`
/// reports no removal.
pub(super) const KNOWN_ACCEPTED_AFTER_LEAVING: bool = false;

/// `+* -> {c}; delete c`, and at once `+c -* +* -c`: the client holds `c` throughout, and sends `-*; +*`, after which a
/// server that has forgotten `*` reports no removal.
pub(super) const KNOWN_NAMES_BEHIND_RETURNING: bool = false;

/// `+* +b -> {} err[b]; ACK; -* +* -b; delete b` leads to `{}`: the client keeps `b`, because an error stands until the
/// server reports otherwise (C-ERR-07), and the server has forgotten the error with the name. A response without `b` may
/// as well be from before. The same with `+T/* +b` and `-b +b`, if the error is repeated for the collection in between.
const KNOWN_ERRORS_OUTLIVE_NAMES: bool = false;

impl<V: Variant> WithClient<V> {
    // The contents of a request.

    pub(super) fn check_request(&mut self, ask: &Ask) -> Result<(), Fault> {
        let t = self.setup.type_number(&ask.type_url);
        let (app, what) = (&mut self.apps[t], || ask.to_string());
        let first = !std::mem::replace(&mut app.asked, true);
        ensure(
            ask.node.is_some() || std::mem::replace(&mut self.greeted, true),
            "the first request has no node",
            what,
        )?;
        self.greeted = true;
        let all: Names = ask.names.iter().chain(&ask.leave).cloned().collect();
        ensure(all.len() == ask.names.len() + ask.leave.len(), "a name is in a request twice", what)?;
        let empty = all.is_empty();
        let legacy = app.wanted.contains("*");
        ensure(!first || !empty || legacy, "a first request asks for everything by mistake", what)?;
        ensure(first || ask.claims.is_empty(), "a later request has claims", what)?;
        for (name, version) in &ask.claims {
            // A claim without a version belongs to a resource of a former stream, judged or not: the server must send
            // it again.
            let same = |applied: &Applied| applied.version == *version;
            let taken_away = !KNOWN_ALIASES_TAKEN_AWAY && self.truth[t].had_alias(name);
            let had = taken_away || version.as_str().is_empty() || app.applied.get(name).is_some_and(same);
            ensure(had, "a claim of what is not held", || {
                let held = app.applied.get(name).map(|applied| &applied.version);
                format!("{name} {version}, held is {held:?}, in {ask}")
            })?;
        }
        if first {
            return ensure(ask.nonce.as_str().is_empty() && ask.error.is_none(), "a first request answers", what);
        }
        // In SotW an answer stands for the responses before it that were merged while they waited for a verdict.
        let place = app.reads.iter().position(|(nonce, ..)| *nonce == ask.nonce).filter(|_| !V::DELTA);
        if let Some(at) = place.filter(|&at| app.reads.iter().take(at).all(|(.., verdict)| verdict.is_none())) {
            app.reads.drain(..at);
        }
        let answers = app.reads.front().is_some_and(|(nonce, ..)| *nonce == ask.nonce);
        if V::DELTA {
            ensure(answers || ask.nonce.as_str().is_empty(), "a nonce is not of what waits for an answer", what)?;
        } else {
            let last = app.nonce == ask.nonce;
            ensure(answers || last, "a nonce is not the last", what)?;
        }
        if !answers {
            return ensure(ask.error.is_none(), "a request that answers nothing rejects", what);
        }
        let (_, version, rejected) = app.reads.pop_front().expect("it is there");
        app.forget_judged();
        let rejects = ask.error.is_some();
        // In delta the rejected content may have come with an earlier response that was merged.
        let merged = V::DELTA && rejects && rejected.is_none() && app.reads.iter().any(|read| read.2 == Some(true));
        let excused = merged || (std::mem::replace(&mut app.blamed, merged) && !rejects && rejected == Some(true));
        ensure(rejects == (rejected == Some(true)) || excused, "a verdict is not what was said", what)?;
        if !V::DELTA && !rejects {
            app.accepted = version;
            app.unsent.clear();
        }
        let is_accepted = ask.version == app.accepted || app.unsent.contains(&ask.version);
        ensure(V::DELTA || is_accepted || ask.version.as_str().is_empty(), "another version", what)
    }

    // At rest.

    pub(super) fn rest(&mut self) -> Result<(), Fault> {
        self.open();
        self.flow()?;
        self.late = Duration::ZERO;
        let (from, lives) = (self.now, self.setup.ttls != Ttls::None);
        for _ in 0..100 {
            let Some(due) = self.due() else { break };
            if lives && due > from + Duration::from_secs(200) {
                break;
            }
            self.advance(due)?;
            self.flow()?;
        }
        for t in 0..self.apps.len() {
            self.settled(t)?;
        }
        Ok(())
    }

    fn settled(&self, t: usize) -> Result<(), Fault> {
        let (truth, app) = (&self.truth[t], &self.apps[t]);
        let kind = short(self.setup.url(t));
        let deletes = V::DELTA || self.setup.types[t].is_full_state();
        let heard = self.server.as_ref().map(|server| &server[t].asked.wanted);
        ensure(heard == Some(&app.wanted), "the views of what is wanted differ", || {
            format!("{kind}: {heard:?} and {:?}", app.wanted)
        })?;
        ensure(app.reads.is_empty(), "a response is not answered", || format!("{kind}: {:?}", app.reads))?;
        for name in &self.setup.names {
            let has = app.applied.get(name).map(|applied| applied.content);
            let is_rejected = |what: &Option<u8>| app.rejected.get(name).is_some_and(|all| all.contains(what));
            match truth.state(name) {
                State::Present(there) if truth.is_wanted(&app.wanted, name) => {
                    let by_alias = !app.wanted.iter().any(|wish| covers(wish, name));
                    let excused = is_rejected(&Some(there.content))
                        || (has.is_none() && app.lapsed.contains(name))
                        || (has.is_none() && by_alias && !KNOWN_ALIASES_CHANGE_HANDS);
                    ensure(has == Some(there.content) || excused, "what is there is not held", || {
                        format!("{kind}: {name} is {}, held is {has:?}", there.content)
                    })?;
                }
                State::Unknown(_) => {}
                _ => {
                    let taken_away = !KNOWN_ALIASES_TAKEN_AWAY && truth.had_alias(name);
                    let mut doubts = app.wanted.iter().filter(|wish| truth.was_asked_by(wish, name));
                    let excused = is_rejected(&None)
                        || !deletes
                        || taken_away
                        || app.raced.contains(name)
                        || (!KNOWN_ERRORS_OUTLIVE_NAMES && app.erred.get(name) == Some(&true))
                        || doubts.any(|wish| truth.is_doubtful(wish));
                    ensure(has.is_none() || excused, "what is gone is held", || {
                        format!("{kind}: {name} is {:?}, held is {has:?}", truth.state(name))
                    })?;
                }
            }
        }
        Ok(())
    }
}
