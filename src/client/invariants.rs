//! What holds of a client between any two calls, whatever the server sent and the application did.

use alloc::collections::BTreeSet;
use alloc::string::String;

use super::Client;
use super::config::Settings;
use super::subscription::{Held, Out, Subscription};
use super::variant::{Protocol, Variant};
use crate::ensure::ensure;
use crate::name::ResourceName;

impl<V: Variant> Client<V> {
    /// Checks what must hold of the machine whatever happened to it: for tests, fuzz targets and models of one's own.
    /// Costs as much as the machine holds.
    ///
    /// # Errors
    ///
    /// What does not hold. That is a bug in this crate.
    pub fn check_invariants(&self) -> Result<(), String> {
        let settings = self.config.settings();
        let limits = &settings.limits;
        let mut types = BTreeSet::new();
        for subscription in &self.types {
            let type_url = subscription.kind.type_url();
            ensure!(types.insert(type_url), "{type_url} is there twice");
            let queued = self.answers.iter().filter(|queued| *queued == type_url).count();
            let answers = subscription.answers.len();
            ensure!(queued == answers, "{type_url}: {answers} answers, {queued} turns to answer");
            let checked = match &self.stream {
                Some(stream) => subscription.check(settings).and_then(|()| subscription.check_stream(stream.sent)),
                None => subscription.check(settings).and_then(|()| subscription.check_no_stream()),
            };
            checked.map_err(|what| alloc::format!("{type_url}: {what}"))?;
            let out = subscription.out.as_ref();
            let epoch = out.map_or(0, |out| out.token.epoch);
            ensure!(epoch <= self.epoch, "{type_url}: an update of stream {epoch}, this is {}", self.epoch);
            let live = out.is_some_and(|out| out.live);
            ensure!(
                !live || epoch == self.epoch,
                "{type_url}: an update of stream {epoch} counts as of {}",
                self.epoch
            );
        }
        ensure!(self.answers.iter().all(|type_url| types.contains(type_url)), "a turn to answer of an unknown type");
        ensure!(self.paused.values().all(|&times| times > 0), "a type that is not paused counts as paused");
        // Each response makes five actions at most, and those that wait are processed at once.
        let (waiting, limit) = (self.actions.len(), limits.waiting_actions + 5 * limits.waiting_responses);
        ensure!(waiting <= limit, "{waiting} actions wait, limit {limit}");
        Ok(())
    }
}

impl<V: Protocol> Subscription<V> {
    /// With a stream or without.
    fn check(&self, settings: &Settings) -> Result<(), String> {
        let untold = self.wishes.values().filter(|wish| !wish.told).count();
        ensure!(self.untold == untold, "{untold} wishes untold, counted as {}", self.untold);
        for (name, wish) in &self.wishes {
            ensure!(!wish.missing || !self.held.contains_key(name), "{name} is missing and held");
            ensure!(!wish.told || !self.departed.contains(name), "{name} is told and departed");
        }
        for name in self.held.keys() {
            ensure!(!name.is_wildcard() && self.covers(name.as_str()), "{name} is held and not wanted");
        }
        let plain = |held: &Held| held.claimed && held.version.is_empty();
        ensure!(self.mixed || self.held.values().all(plain), "something held is not as the last update leaves it");
        let unwanted = self.failures.keys().find(|name| !self.covers(name.as_str()));
        ensure!(unwanted.is_none(), "{unwanted:?} has an error and is not wanted");
        let known = |name: &&ResourceName| self.wishes.contains_key(*name) || self.held.contains_key(*name);
        let others = self.failures.keys().filter(|name| !known(name)).count();
        let limit = settings.limits.resources_per_response;
        ensure!(others <= limit, "{others} errors of what nobody asked for, limit {limit}");
        let limit = settings.limits.waiting_responses;
        ensure!(self.unanswered() <= limit, "{} responses unanswered, limit {limit}", self.unanswered());
        ensure!(self.waiting.is_empty() || self.out.is_some() || self.on_hold, "a response waits for nothing");
        ensure!(self.waiting.iter().all(|incoming| incoming.serial <= self.serial), "a response of the future waits");
        if let Some(out) = &self.out {
            out.check()?;
        }
        let held = |name: &ResourceName| self.held.contains_key(name);
        self.timers.check(|name| self.wishes.contains_key(name) && !held(name), held)?;
        self.check_names()?;
        V::check_told(self)
    }

    fn check_stream(&self, sent: u64) -> Result<(), String> {
        ensure!(!self.asked || sent > 0, "asked on a stream on which nothing was sent");
        ensure!(self.asked || self.serial == 0, "{} responses to no request", self.serial);
        ensure!(self.asked || self.departed.is_empty(), "names left a server that knows of none");
        ensure!(self.asked || self.untold == self.wishes.len(), "something is told that was not said");
        Ok(())
    }

    fn check_no_stream(&self) -> Result<(), String> {
        ensure!(!self.asked && self.untold == self.wishes.len(), "something is told to nobody");
        ensure!(self.departed.is_empty() && !self.unsaid, "something is to be said to a server that is not there");
        ensure!(self.waiting.is_empty() && self.answers.is_empty(), "a closed stream has a backlog");
        ensure!(self.serial == 0 && self.nonce.is_empty(), "a nonce outlived its stream");
        ensure!(self.timers.running() == 0, "silence of a closed stream counts");
        ensure!(!self.out.as_ref().is_some_and(|out| out.live), "an answer is owed to a closed stream");
        Ok(())
    }
}

impl Out {
    fn check(&self) -> Result<(), String> {
        let offer = &self.offer;
        ensure!(!offer.resources.is_empty() || !offer.removed.is_empty(), "an update of nothing is out");
        ensure!(offer.resources.names().is_sorted_by(|a, b| a < b), "an update is not in order");
        ensure!(offer.removed.is_sorted_by(|a, b| a < b), "removals are not in order");
        let twice = offer.removed.iter().find(|name| offer.resources.find(name.as_str()).is_some());
        ensure!(twice.is_none(), "{twice:?} is there and gone");
        let names: BTreeSet<&ResourceName> =
            if self.left.is_empty() { BTreeSet::new() } else { offer.names().collect() };
        ensure!(self.left.iter().all(|name| names.contains(name)), "a name left an update that it is not in");
        Ok(())
    }
}
