//! The application's resources and its knowledge of them, tracked independently of the machines.

use std::collections::{BTreeMap, BTreeSet};

use xds_machine::client::{Effect, Failed, Rejection, Update};
use xds_machine::{Instant, ResourceName};

use super::{Both, Bug, Goal, Made, Pair, is_alias, stands_for};

/// The application's view of one type.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Application {
    /// The subscribed names.
    pub wanted: BTreeSet<ResourceName>,
    /// The applied contents, by name.
    pub applied: BTreeMap<ResourceName, u8>,
    /// The contents that were rejected last, by name.
    pub rejected: BTreeMap<ResourceName, u8>,
    /// The names that were reported not to exist; `true` if that may be reported again, because content was rejected
    /// until then, so that the resource may exist.
    pub missing: BTreeMap<ResourceName, bool>,
    /// The resources with a reported error and no later report.
    pub failed: BTreeSet<ResourceName>,
    /// The update that waits for a verdict.
    pub judging: Option<Update>,
    /// The server has responded since the wildcard was subscribed to.
    pub heard: bool,
    /// The number of pauses of the type.
    pub paused: u8,
    /// No verdict is given any more.
    pub silent: bool,
    /// The targets of subscribed aliases, as far as a resource arrived by them: before that, an existing resource can't
    /// be known to be subscribed to by the alias.
    pub linked: BTreeMap<ResourceName, ResourceName>,
    /// The former targets of aliases that do not exist now; these wait to be removed.
    pub lost: BTreeMap<ResourceName, ResourceName>,
    /// The time when a resource with a TTL expires.
    pub until: BTreeMap<ResourceName, Instant>,
    /// The resources that live longer because newer content waits for its verdict, each with the time when it expires if
    /// that content is rejected; `None`: never.
    pub extended: BTreeMap<ResourceName, Option<Instant>>,
    /// The resources in responses that wait behind the update that is judged.
    pub waiting: BTreeSet<ResourceName>,
    /// The expired resources without a later report.
    pub expired: BTreeSet<ResourceName>,
    /// The names that were unsubscribed from at some time since the update is in flight.
    pub left: BTreeSet<ResourceName>,
}

impl Application {
    /// Returns the subscribed names, without the wildcard.
    pub fn names(&self) -> impl Iterator<Item = &ResourceName> {
        self.wanted.iter().filter(|name| !name.is_wildcard())
    }

    /// Returns whether a resource with this content is subscribed to.
    pub fn wants(&self, name: &ResourceName, content: Option<u8>) -> bool {
        self.wanted.iter().any(|wanted| stands_for(wanted, name, content)) || self.is_linked(name)
    }

    fn is_linked(&self, name: &ResourceName) -> bool {
        self.linked.values().any(|linked| linked == name)
    }

    /// Returns whether a held resource stays: an alias that no resource arrived by keeps none.
    fn keeps(&self, name: &ResourceName) -> bool {
        let by_name = |wanted: &&ResourceName| !is_alias(wanted);
        self.is_linked(name) || self.wanted.iter().filter(by_name).any(|wanted| stands_for(wanted, name, None))
    }

    /// Returns whether a resource that is held, or waits for a verdict, is subscribed to by this name.
    fn is_by(&self, wanted: &ResourceName, name: &ResourceName) -> bool {
        let judged = self.judging.as_ref().and_then(|update| update.resource(name.as_str()));
        let content = judged.and_then(|resource| resource.body().last().copied());
        // A client can tell what an alias stands for if a resource arrived by it, and the application did not lose it. A
        // rejected resource that waits to be removed with another alias did not arrive by this one.
        let waits = || self.lost.values().any(|lost| lost == name);
        let arrived = judged.is_some() || (self.rejected.contains_key(name) && !waits());
        (stands_for(wanted, name, content) && (arrived || !is_alias(wanted)))
            || [&self.linked, &self.lost].iter().any(|links| links.get(wanted) == Some(name))
    }

    /// Lets a resource live longer, because newer content of it was received, or a heartbeat of that content.
    pub fn extend(&mut self, name: &ResourceName, until: Option<Instant>) {
        let own = self.extended.get(name).copied().or(self.until.get(name).map(|until| Some(*until)));
        let Some(own) = own else { return };
        self.extended.insert(name.clone(), own);
        self.until.remove(name);
        self.until.extend(own.zip(until).map(|(own, until)| (name.clone(), own.max(until))));
    }

    /// Renews a resource after a heartbeat of what is held.
    pub fn renew(&mut self, name: &ResourceName, until: Option<Instant>) {
        let extended = self.extended.contains_key(name).then(|| self.until.get(name).copied());
        self.until.remove(name);
        let later = match (extended, until) {
            (Some(None), _) => None,
            (Some(Some(extended)), Some(until)) => Some(extended.max(until)),
            _ => until,
        };
        self.until.extend(later.map(|until| (name.clone(), until)));
        if let Some(own) = self.extended.get_mut(name) {
            *own = until;
        }
    }

    /// Gives resources their own expiry back, of which no newer content waits any more.
    pub fn end_extensions(&mut self) {
        if self.judging.is_none() {
            self.waiting.clear();
        }
        let judged = |name: &ResourceName| self.judging.as_ref().is_some_and(|it| it.resource(name.clone()).is_some());
        let ended: Vec<_> =
            self.extended.keys().filter(|name| !judged(name) && !self.waiting.contains(*name)).cloned().collect();
        for name in ended {
            self.until.remove(&name);
            let own = self.extended.remove(&name).flatten();
            self.until.extend(own.map(|own| (name, own)));
        }
    }

    /// Receives an update, to be judged later.
    pub fn take(&mut self, update: Update) {
        self.waiting.clear();
        self.left.clear();
        assert_eq!(self.judging.replace(update), None, "one update of a type at a time");
    }

    /// Records an error of a resource.
    pub fn fail(&mut self, error: Failed) {
        let Failed { name, effect, .. } = error;
        assert!(self.wants(&name, None), "{name} has an error, and nobody asked");
        let has = self.applied.contains_key(&name);
        assert_eq!(has, effect != Effect::Fails, "{name} has an error that {effect:?}");
        self.failed.insert(name);
    }

    /// Records expired resources.
    pub fn expire(&mut self, now: Instant, names: Vec<ResourceName>) {
        for name in names {
            assert!(self.applied.contains_key(&name), "{name} expires, and is not there");
            let until = self.until.get(&name).copied();
            self.lose(&name);
            assert!(until.is_some_and(|until| until <= now), "{name} expires at {now:?}, and may stay until {until:?}");
            self.expired.insert(name);
        }
    }

    /// Removes a resource, and unbinds its aliases.
    fn lose(&mut self, name: &ResourceName) {
        self.applied.remove(name);
        self.linked.retain(|_, linked| linked != name);
        self.lost.retain(|_, lost| lost != name);
        self.rejected.remove(name);
        self.until.remove(name);
        self.extended.remove(name);
        self.expired.remove(name);
    }

    /// Records that resources do not exist.
    pub fn miss(&mut self, names: Vec<ResourceName>) {
        let mut ended = BTreeMap::new();
        for name in names {
            assert!(self.wanted.contains(&name), "{name} is missing, and nobody asked");
            assert!(!self.applied.contains_key(&name), "{name} is missing, and there");
            ended.extend(self.linked.remove_entry(&name));
            // A resource that had an error when it was removed is reported again.
            let may_be_again = self.missing.insert(name.clone(), false).unwrap_or(true);
            let once = may_be_again || self.failed.contains(&name);
            assert!(once, "{name} is missing twice");
        }
        // A resource that another name covers does not wait to be removed.
        ended.retain(|_, linked| !self.keeps(linked));
        self.lost.extend(ended);
    }
}

impl<V: Both> Pair<V> {
    pub(super) fn subscribe(&mut self, setup: &Made, now: Instant, t: usize, name: &ResourceName) {
        self.client.resources_mut(&setup.types[t]).subscribe([name.clone()]).expect("a good name");
        let app = &mut self.apps[t];
        app.wanted.insert(name.clone());
        app.heard &= !name.is_wildcard();
        self.ghost.mentions(t, name);
        self.drain(setup, now);
    }

    pub(super) fn unsubscribe(&mut self, setup: &Made, now: Instant, t: usize, name: &ResourceName) {
        self.client.resources_mut(&setup.types[t]).unsubscribe([name.as_str()]);
        let app = &mut self.apps[t];
        let by_name: Vec<&ResourceName> = setup.names.iter().filter(|other| app.is_by(name, other)).collect();
        app.wanted.remove(name);
        app.missing.remove(name);
        app.linked.remove(name);
        app.lost.remove(name);
        self.ghost.mentions(t, name);
        let unwanted: Vec<&ResourceName> = by_name.into_iter().filter(|other| !app.keeps(other)).collect();
        for unwanted in unwanted {
            app.left.insert(unwanted.clone());
            let rejected = app.rejected.get(unwanted).copied();
            app.lose(unwanted);
            // A resource that arrived by an alias and was rejected is not sent again.
            let still = |content: &u8| app.wants(unwanted, Some(*content));
            app.rejected.extend(rejected.filter(still).map(|content| (unwanted.clone(), content)));
            app.failed.remove(unwanted);
        }
        self.drain(setup, now);
    }

    pub(super) fn pause(&mut self, setup: &Made, t: usize) {
        if setup.bug != Some(Bug::IgnoresPause) {
            self.client.resources_mut(&setup.types[t]).pause();
        }
        self.apps[t].paused += 1;
    }

    pub(super) fn resume(&mut self, setup: &Made, t: usize) {
        let before = self.client.wants_transmit();
        self.apps[t].paused -= 1;
        if setup.bug != Some(Bug::IgnoresPause) {
            self.client.resources_mut(&setup.types[t]).resume().expect("it is paused");
        }
        assert_eq!(self.client.resources(&setup.types[t]).is_paused(), self.apps[t].paused > 0);
        if !before && self.client.wants_transmit() {
            self.goals.reach(Goal::HeldBack);
        }
    }

    pub(super) fn forget(&mut self, setup: &Made, now: Instant, t: usize, name: &ResourceName) {
        self.client.layer_mut(&setup.types[t]).forget([name.as_str()]);
        self.apps[t].lose(name);
        self.ghost.mentions(t, name);
        if self.server.is_some() {
            self.goals.reach(Goal::Lost);
        }
        self.drain(setup, now);
    }

    pub(super) fn judge(&mut self, setup: &Made, now: Instant, t: usize, reject: impl Fn(&ResourceName) -> bool) {
        let app = &mut self.apps[t];
        let update = app.judging.take().expect("an update is out");
        let whole = update.resources().all(|resource| !reject(resource.name()));
        let mut rejections = Vec::new();
        for resource in update.resources() {
            let (name, content) = (resource.name().clone(), *resource.body().last().expect("a body"));
            let rejected = reject(&name);
            if rejected {
                rejections.push(Rejection::new(name.clone(), "no"));
            }
            if !app.wants(&name, Some(content)) {
                continue; // unsubscribed in the meantime
            }
            if setup.bug == Some(Bug::DropsTheGood) && !whole {
                continue;
            }
            app.missing.retain(|missing, _| !stands_for(missing, &name, Some(content)));
            app.expired.remove(&name);
            if !rejected || app.applied.contains_key(&name) {
                // A form that is rejected leaves the former one, which has the alias from now on.
                let aliases = app.wanted.iter().filter(|wanted| is_alias(wanted));
                let by_alias = aliases.filter(|alias| stands_for(alias, &name, Some(content))).cloned();
                app.linked.extend(by_alias.map(|alias| (alias, name.clone())));
            }
            if rejected {
                // An alias leaves its resource even if the other resource is rejected.
                let moves = |alias: &ResourceName, linked: &ResourceName| {
                    stands_for(alias, &name, Some(content)) && *linked != name
                };
                app.linked.retain(|alias, linked| !moves(alias, linked));
                app.rejected.insert(name, content);
            } else {
                app.rejected.remove(&name);
                app.failed.remove(&name);
                app.until.remove(&name);
                app.extended.remove(&name);
                app.until.extend(setup.told_ttl_of(&name, content).map(|ttl| (name.clone(), now + ttl)));
                app.applied.insert(name, content);
            }
        }
        for name in update.removed() {
            let was_rejected = app.rejected.contains_key(name);
            app.lose(name);
            if app.wanted.contains(name) && !app.left.contains(name) {
                app.missing.insert(name.clone(), was_rejected);
            }
        }
        app.left.clear();
        app.lost.clear();
        // The alias's target at the time of the update is removed together with its present target.
        let gone: Vec<ResourceName> = app.applied.keys().filter(|name| !app.keeps(name)).cloned().collect();
        gone.iter().for_each(|name| app.lose(name));
        if !rejections.is_empty() && rejections.len() < update.resources().len() {
            self.goals.reach(Goal::NackInPart);
        }
        let rejected = rejections.iter().filter_map(|rejection| rejection.name.clone()).collect();
        self.ghost.judged::<V>(t, &update, &rejected);
        self.client.handle_verdict(now, update.reject(rejections)).expect("the update is out");
        self.drain(setup, now);
        if self.client.wants_new_stream() {
            self.goals.reach(Goal::NewStream);
            self.close(setup);
        }
    }
}
