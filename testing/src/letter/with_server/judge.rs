//! The rules for this crate's server: the contents of each response, and a naive client's resources at rest.

use std::time::Duration;

use xds_machine::ResourceName;
use xds_machine::server::Server;

use super::super::client::is_wanted;
use super::super::setup::Ttls;
use super::super::truth::{State, Truth, covers};
use super::super::walk::{Fault, ensure};
use super::super::wire::{Ask, Item, Said, Variant, short};
use super::{View, WithServer};

// Known faults of the server, each with a trace: `true` searches for the fault.

/// A resource that was sent for another name, and that the client keeps for an alias that the server has not yet
/// received, or not with that name, is not removed when the alias moves: `+c; put c [x] -> {c}` crosses `-c +x`, and
/// the client holds `c` as the target of `x`; `put c []; put b [x] -> {b}`: the client keeps `c`.
/// `put a [x]; +* -> {a}; ACK; put a []; +x -*` leads to `removed=[x]`: the client keeps `a`. And a client that claims
/// `a` by its name: `put a [x]; +a has a; +x; -a; delete a` leads to `removed=[x]`. The same for an alias that is
/// unsubscribed and subscribed to again.
pub(super) const KNOWN_RACE_OF_ALIASES: bool = false;
/// `put a/90s; +a -> {a}; NACK`, and 30 s later a heartbeat of `a`, which a client that rejected `a` does not have.
const KNOWN_HEARTBEATS_OF_REJECTED: bool = false;
/// `put a [x]; fail a; put c [x]; del c; +a` is silence: the error is lost when the alias goes back to unknown. And
/// `put a [x]; fail a; put c [x]; doubt c; put a [x]; +x` is silence, though `x` is `a`.
const KNOWN_ALIASES_OF_UNKNOWN: bool = false;

/// The number of resources that an alias stood for and that the store remembers, beside the present one.
const FORMER_TARGETS: usize = 4;
/// A store with fewer tombstones than this forgets aliases during a walk.
const FEW: usize = 100;

impl<V: Variant> WithServer<V> {
    // At rest.

    pub(super) fn rest(&mut self) -> Result<(), Fault> {
        self.open(1);
        self.flow()?;
        self.late = Duration::ZERO;
        let (from, lives) = (self.now, self.setup.ttls != Ttls::None);
        for _ in 0..100 {
            self.open(1); // a stream that was behind was closed
            self.flow()?;
            let due = self.server.as_ref().and_then(Server::poll_timeout);
            let Some(due) = due.into_iter().chain(self.client.due()).min() else { break };
            if lives && due > from + Duration::from_secs(200) {
                break;
            }
            self.advance(due)?;
        }
        self.open(1);
        self.flow()?;
        for t in 0..self.setup.types.len() {
            self.settled(t)?;
        }
        Ok(())
    }

    /// Checks that the client has the existing resources that it is subscribed to.
    fn settled(&self, t: usize) -> Result<(), Fault> {
        let (truth, of) = (&self.truth[t], &self.client.types[t]);
        let kind = short(self.setup.url(t));
        let deletes = V::DELTA || self.setup.types[t].is_full_state();
        ensure(self.views[t].asked.wanted == of.wanted, "the views of what is wanted differ", || {
            format!("{kind}: {:?} and {:?}", self.views[t].asked.wanted, of.wanted)
        })?;
        for name in &self.setup.names {
            let has = of.held.get(name).map(|held| held.content);
            let is_rejected = |what: &Option<u8>| of.rejected.get(name).is_some_and(|all| all.contains(what));
            match truth.state(name) {
                State::Present(there) if truth.is_wanted(&of.wanted, name) => {
                    let is_sure = |wish: &ResourceName| covers(wish, name) || !truth.is_doubtful(wish);
                    let mut wishes = of.wanted.iter().filter(|wish| truth.is_asked_by(wish, name));
                    let excused = is_rejected(&Some(there.content))
                        || (has.is_none() && of.lapsed.contains(name))
                        || (!KNOWN_ALIASES_OF_UNKNOWN && !wishes.any(is_sure));
                    ensure(has == Some(there.content) || excused, "what is there is not held", || {
                        format!("{kind}: {name} is {}, held is {has:?}", there.content)
                    })?;
                }
                // The alias of the resource has moved.
                State::Unknown(_) if !KNOWN_ALIASES_OF_UNKNOWN && truth.had_alias(name) => {}
                State::Unknown(code) if code != 0 => {
                    let knows = of.errors.contains_key(name) || !of.wanted.contains(name);
                    ensure(knows || is_rejected(&None), "an error is not told", || format!("{kind}: {name}"))?;
                }
                State::Unknown(_) => {}
                _ => {
                    let raced = self.views[t].known.get(name).is_some_and(|known| {
                        let both = known.intersection(&of.wanted).cloned().collect();
                        of.held.get(name).is_some_and(|held| !is_wanted(&both, name, &held.aliases))
                    });
                    // The target of an alias is unknown if the alias belonged to an unknown resource. The store remembers
                    // some former targets of an alias, as long as it remembers the alias.
                    let forgets = |wish| truth.targets(wish) > FORMER_TARGETS || self.setup.tombstones < FEW;
                    let mut aliases = of.wanted.iter().filter(|wish| truth.was_asked_by(wish, name));
                    let excused = is_rejected(&None)
                        || !deletes
                        || raced
                        || aliases.any(|wish| truth.is_doubtful(wish) || forgets(wish));
                    ensure(has.is_none() || excused, "what is gone is held", || {
                        format!("{kind}: {name} is {:?}, held is {has:?}", truth.state(name))
                    })?;
                }
            }
        }
        for wish in of.wanted.iter().filter(|wish| V::DELTA && !wish.as_str().ends_with('*')) {
            let unknown = matches!(truth.state(wish), State::Unknown(_)) || truth.is_doubtful(wish);
            let knows = of.answered.contains(wish)
                || of.held.iter().any(|(name, held)| name == wish || held.aliases.contains(wish));
            ensure(knows || unknown, "a name has no answer", || format!("{kind}: {wish}"))?;
        }
        Ok(())
    }

    // The contents of a response.

    pub(super) fn judge(&mut self, said: &Said) -> Result<(), Fault> {
        let t = self.setup.type_number(&said.type_url);
        let (view, truth, setup) = (&mut self.views[t], &self.truth[t], &self.setup);
        let nonce = said.nonce.as_str().to_owned();
        ensure(!nonce.is_empty() && view.nonces.insert(nonce.clone()), "a nonce is not new", || said.to_string())?;
        ensure(view.asked.any, "a response of a type that was not asked for", || said.to_string())?;
        for Item { name, content, aliases, ttl, .. } in &said.items {
            let fault = || format!("{name} in {said}");
            let Some(there) = truth.there(name) else {
                ensure(setup.hold && !V::DELTA, "what is not there is sent", fault)?;
                continue;
            };
            ensure(truth.is_wanted(&view.asked.wanted, name), "what is not wanted is sent", fault)?;
            ensure(*ttl == there.ttl, "another TTL is sent", fault)?;
            let Some(content) = content else {
                let rejected = !KNOWN_HEARTBEATS_OF_REJECTED && view.rejected.contains(name);
                let has = rejected
                    || view.claimed.contains(name)
                    || view.told.get(name).is_some_and(|(content, _)| *content == there.content);
                ensure(has, "a heartbeat of what was not sent", fault)?;
                continue;
            };
            let same = *content == there.content && aliases.iter().all(|alias| there.aliases.contains(alias));
            ensure(same, "another content is sent", fault)?;
            let now = (*content, truth.touched(name));
            let again = view.told.insert(name.clone(), now) == Some(now);
            // With limited responses, a resource that changes before its turn may be sent twice; endpoints are sent
            // with their clusters; in SotW every resource of a full-state type is sent.
            // A resource that gets an alias back is new to the subscribers of the alias.
            let mut aliases = there.aliases.iter();
            let may = setup.response_limit.is_some()
                || aliases.any(|alias| truth.targets(alias) > 1)
                || setup.types.len() > 1
                || (!V::DELTA && setup.types[t].is_full_state());
            ensure(may || !again, "what did not change is sent again", fault)?;
        }
        for name in &said.removed {
            let stands = truth.there(name).is_some() && truth.is_wanted(&view.asked.wanted, name);
            ensure(!stands, "what is there and wanted is removed", || format!("{name} in {said}"))?;
            view.told.remove(name);
        }
        for (name, _) in &said.errors {
            view.told.remove(name);
        }
        let complete = !V::DELTA && setup.types[t].is_full_state() && truth.known;
        for (name, _) in truth.present().filter(|(name, _)| complete && truth.is_wanted(&view.asked.wanted, name)) {
            let has = said.items.iter().any(|item| item.name == *name);
            ensure(has, "a response of a full-state type leaves something out", || format!("{name}: {said}"))?;
        }
        view.out.insert(nonce, said.items.iter().map(|item| item.name.clone()).collect());
        Ok(())
    }
}

impl View {
    pub(super) fn hear(&mut self, ask: &Ask, truth: &Truth, delta: bool, legacy: bool) {
        let before = self.asked.wanted.clone();
        self.asked.hear(ask, delta, legacy);
        let rejected = self.out.remove(ask.nonce.as_str()).filter(|_| ask.error.is_some());
        let rejected = rejected.unwrap_or_default();
        self.rejected.extend(rejected.iter().cloned());
        // A requested resource, or one that was unsubscribed though the wildcard may cover it, may be sent again.
        let asks = |wish: &ResourceName, name: &ResourceName| covers(wish, name) || truth.is_asked_by(wish, name);
        for (name, told) in &mut self.told {
            let may = ask.names.iter().chain(&ask.leave).any(|wish| asks(wish, name));
            told.1 = if may { u64::MAX } else { told.1 };
        }
        self.told.retain(|name, _| !rejected.contains(name));
        // An alias that moved away and back leaves the client with the resource; an unsubscribed name does not.
        let left: Vec<&ResourceName> = before.difference(&self.asked.wanted).collect();
        let is_left = |name: &ResourceName| left.iter().any(|wish| truth.ever_asked_by(wish, name));
        let may_have = |name: &ResourceName| self.asked.wanted.iter().any(|wish| truth.ever_asked_by(wish, name));
        self.told.retain(|name, _| may_have(name) || !is_left(name));
        // A name that is subscribed to again is another subscription.
        self.known.values_mut().for_each(|known| known.retain(|name| !left.contains(&name)));
        self.claimed.extend(ask.claims.keys().cloned());
        for name in ask.claims.keys() {
            self.known.insert(name.clone(), self.asked.wanted.clone());
            if let Some(there) = truth.there(name) {
                self.told.insert(name.clone(), (there.content, u64::MAX));
            }
        }
    }
}
