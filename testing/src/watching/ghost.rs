//! The reference, derived from the inputs and outputs of the layer: the true state of each resource, and the state that
//! each watcher received last. The pending events of a watcher are exactly the difference.

use std::collections::{BTreeMap, BTreeSet};

use xds_machine::client::{Action, DataErrors, Effect, Failed, Rejection, Resource, Verdict};
use xds_machine::watch::{Event, News, WatchId};
use xds_machine::{Code, ResourceName, Status, WILDCARD};

use super::{Goal, content_of, is_part, is_whole};

/// The true state of a resource, or the state that a watcher received.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Known {
    pub content: Option<u8>,
    pub error: Option<Status>,
}

#[derive(Clone, Debug, Hash)]
pub(super) struct Watcher {
    pub name: ResourceName,
    pub told: BTreeMap<ResourceName, Known>,
    /// A resource was already held when the watcher was added.
    late: bool,
    synced: bool,
    /// The number of events that the watcher has received and not finished.
    pub unfinished: usize,
}

#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Ghost {
    pub truth: BTreeMap<ResourceName, Known>,
    /// The resources that the last update removed from a watched wildcard or collection, for watchers that come later;
    /// and those that were watched by aliases, as long as one of these is watched.
    removed: BTreeMap<ResourceName, (Status, BTreeSet<ResourceName>)>,
    /// By alias that was reported not to exist, its former target, which will be removed.
    lost: BTreeMap<ResourceName, ResourceName>,
    /// By alias, the resource that its content comes from, and whether the alias still stands for that.
    aliases: BTreeMap<ResourceName, (ResourceName, bool)>,
    pub away: Option<Status>,
    pub watchers: BTreeMap<WatchId, Watcher>,
    /// An update without verdict: the resources to reject, and the watchers to wait for.
    pub judging: Option<(Vec<ResourceName>, BTreeSet<WatchId>)>,
    /// The pairs of watchers of which the first received an event while the second waited.
    passed: BTreeSet<(WatchId, WatchId)>,
    /// The server has answered the wildcard since it is watched.
    answered: bool,
}

/// A watcher that knows everything has no pending events.
pub(super) const NOTHING: [ResourceName; 0] = [];

fn error(code: Code, message: &str) -> Option<Status> {
    Some(Status::new(code, message))
}

impl Ghost {
    pub(super) fn is_watched(&self, name: &ResourceName) -> bool {
        self.watchers.values().any(|watcher| watcher.name == *name)
    }

    pub(super) fn is_covered(&self, name: &ResourceName) -> bool {
        self.watchers.values().any(|watcher| watcher.name == *name || is_part(name, &watcher.name))
    }

    /// Returns whether a resource is subscribed to by any of its names.
    pub(super) fn wants(&self, resource: &Resource<'_>) -> bool {
        let stands = |(name, still): &(ResourceName, bool)| *still && name == resource.name();
        self.is_covered(resource.name())
            || resource.aliases().iter().any(|alias| self.is_watched(alias))
            || self.aliases.values().any(stands)
    }

    // Inputs.

    pub(super) fn watch(&mut self, watch: WatchId, name: &ResourceName) {
        let held = self.truth.iter().any(|(of, truth)| truth.content.is_some() && (of == name || is_part(of, name)));
        let told = BTreeMap::from([(name.clone(), Known::default())]);
        let synced = self.answered && name.is_wildcard();
        let watcher = Watcher { name: name.clone(), told, late: held, synced, unfinished: 0 };
        assert!(self.watchers.insert(watch, watcher).is_none(), "a watcher has an id of its own");
        // The state known by an alias is the state of its target.
        let stands = |(_, of): &(&ResourceName, &(ResourceName, bool))| of.1 && of.0 == *name;
        let by_alias = self.aliases.iter().find(stands).and_then(|(alias, _)| self.truth.get(alias)).cloned();
        if let Some(known) = by_alias.filter(|_| !self.truth.contains_key(name)) {
            self.truth.insert(name.clone(), known);
        }
        if let Some((error, _)) = self.removed.get(name) {
            let unknown = || Known { content: None, error: Some(error.clone()) };
            self.truth.entry(name.clone()).or_insert_with(unknown);
        }
    }

    pub(super) fn unwatch(&mut self, watch: WatchId) -> u128 {
        self.watchers.remove(&watch).expect("a watcher");
        let before = std::mem::take(&mut self.truth);
        self.truth = before.into_iter().filter(|(name, _)| self.is_covered(name)).collect();
        let aliases = std::mem::take(&mut self.aliases);
        self.aliases = aliases.into_iter().filter(|(alias, _)| self.is_watched(alias)).collect();
        self.answered &= self.watchers.values().any(|watcher| watcher.name.is_wildcard());
        let watchers = self.watchers.values();
        let wholes: Vec<ResourceName> = watchers.map(|watcher| watcher.name.clone()).collect();
        self.lost.retain(|alias, _| wholes.contains(alias));
        self.removed.retain(|name, (_, aliases)| {
            aliases.retain(|alias| wholes.contains(alias));
            !aliases.is_empty() || wholes.iter().any(|whole| is_part(name, whole))
        });
        let waits = self.is_waited_for();
        self.tidy();
        if waits && !self.is_waited_for() { Goal::Left.bit() } else { 0 }
    }

    pub(super) fn hear(&mut self, action: &Action, data_errors: DataErrors, waits: bool) -> u128 {
        let drops = data_errors == DataErrors::Drop;
        let mut goals = 0;
        match action {
            Action::Apply(update) => {
                if !update.has_collection_error() {
                    self.change(&WILDCARD.into(), |truth| truth.error = None);
                }
                let stood = self.aliases.iter().map(|(alias, (of, _))| (alias, of)).chain(&self.lost);
                let by_alias: Vec<(ResourceName, ResourceName)> = stood
                    .filter(|(_, of)| update.removed().contains(of))
                    .map(|(alias, of)| (of.clone(), alias.clone()))
                    .collect();
                self.lost.retain(|_, of| !update.removed().contains(of));
                let mut rejected = Vec::new();
                for resource in update.resources() {
                    for alias in resource.aliases() {
                        let of = self.aliases.get_mut(alias).filter(|(name, _)| name != resource.name());
                        of.into_iter().for_each(|(_, still)| *still = false);
                    }
                }
                for resource in update.resources() {
                    let name = resource.name();
                    if !self.wants(&resource) {
                        goals |= Goal::Unwatched.bit();
                        continue;
                    }
                    let stands = |(_, of): &(&ResourceName, &(ResourceName, bool))| of.1 && of.0 == *name;
                    let mut aliases: BTreeSet<ResourceName> =
                        self.aliases.iter().filter(stands).map(|(alias, _)| alias.clone()).collect();
                    aliases.extend(resource.aliases().iter().filter(|alias| self.is_watched(alias)).cloned());
                    match content_of(&resource) {
                        Ok(content) => {
                            let wholes: Vec<ResourceName> = self.globs_of(name).cloned().collect();
                            wholes.iter().for_each(|whole| self.change(whole, |truth| truth.error = None));
                            self.change(name, |truth| *truth = Known { content: Some(content), error: None });
                            for alias in aliases {
                                self.change(&alias, |truth| *truth = Known { content: Some(content), error: None });
                                self.lost.remove(&alias);
                                let before = self.aliases.insert(alias, (name.clone(), true));
                                let moved = before.is_some_and(|(before, _)| before != *name);
                                goals |= if moved { Goal::Moved.bit() } else { 0 };
                            }
                        }
                        Err(reason) => {
                            rejected.push(name.clone());
                            let error = error(Code::InvalidArgument, &reason);
                            for of in std::iter::once(name).chain(&aliases) {
                                self.change(of, |truth| {
                                    truth.content = truth.content.filter(|_| !drops);
                                    truth.error = error.clone();
                                });
                                let moved = self.aliases.get(of).is_some_and(|(_, still)| !still);
                                goals |= if moved { Goal::MovedToBad.bit() } else { 0 };
                                self.aliases.retain(|alias, _| alias != of || !drops);
                            }
                        }
                    }
                }
                self.removed.retain(|name, _| update.removed().contains(name));
                for (name, alias) in by_alias {
                    let gone = || error(Code::NotFound, "the server removed the resource").expect("a reason");
                    self.removed.entry(name).or_insert_with(|| (gone(), BTreeSet::new())).1.insert(alias);
                }
                for name in update.removed() {
                    let by_alias = self.removed.get(name).is_some_and(|(_, aliases)| !aliases.is_empty());
                    let by_alias = by_alias && self.is_watched(name);
                    self.change(name, |truth| {
                        if truth.content.take().is_some() || (by_alias && truth.error.is_none()) {
                            let why = truth.error.take().filter(|why| drops && why.is(Code::InvalidArgument));
                            truth.error = why.or_else(|| error(Code::NotFound, "the server removed the resource"));
                        }
                    });
                    let of_this = |(_, of): &(&ResourceName, &(ResourceName, bool))| of.0 == *name;
                    let aliases: Vec<_> =
                        self.aliases.iter().filter(of_this).map(|(a, of)| (a.clone(), of.1)).collect();
                    for (alias, still) in aliases {
                        self.aliases.remove(&alias);
                        self.change(&alias, |truth| {
                            truth.content = None;
                            let why =
                                truth.error.take().filter(|why| (drops || !still) && why.is(Code::InvalidArgument));
                            truth.error = why.or_else(|| error(Code::NotFound, "the server removed the resource"));
                        });
                    }
                    let known = self.truth.get(name).and_then(|truth| truth.error.clone());
                    let why = known.or_else(|| self.removed.get(name).map(|(why, _)| why.clone()));
                    let why = why.or_else(|| error(Code::NotFound, "the server removed the resource"));
                    self.remember(name, why.expect("a reason"));
                }
                if update.answers_wildcard() && !self.answered {
                    self.all_answered();
                }
                assert!(self.judging.is_none(), "one update is out at a time");
                let busy = self.watchers.keys().copied().filter(|&watch| waits && self.is_busy(watch)).collect();
                self.judging = Some((rejected, busy));
                goals |= if self.is_waited_for() { Goal::Waited.bit() } else { 0 };
            }
            Action::Errors { errors, .. } => {
                for Failed { name, status, effect } in errors {
                    if *effect == Effect::Removes {
                        self.remember(name, status.clone());
                    }
                    self.change(name, |truth| {
                        truth.content = truth.content.filter(|_| *effect != Effect::Removes);
                        truth.error = Some(status.clone());
                    });
                }
            }
            Action::DoesNotExist { names, .. } => {
                for name in names {
                    if let Some((of, _)) = self.aliases.remove(name) {
                        self.lost.insert(name.clone(), of);
                    }
                    self.change(name, |truth| {
                        if !truth.error.as_ref().is_some_and(|error| error.is(Code::NotFound)) {
                            let error = error(Code::NotFound, "the resource does not exist");
                            *truth = Known { content: None, error };
                        }
                    });
                }
            }
            Action::Synced { answers_wildcard, .. } => {
                self.change(&WILDCARD.into(), |truth| truth.error = None);
                if *answers_wildcard {
                    self.all_answered();
                }
            }
            other => panic!("{other:?} of a server of ours"),
        }
        self.tidy();
        goals
    }

    /// The watchers of the wildcard are to be told that they know all.
    fn all_answered(&mut self) {
        let all = self.watchers.values_mut().filter(|watcher| watcher.name.is_wildcard());
        for watcher in all {
            (watcher.synced, self.answered) = (true, true);
        }
    }

    /// Remembers a removal for watchers by name that come while the wildcard or collection is watched.
    fn remember(&mut self, name: &ResourceName, why: Status) {
        if self.watchers.values().any(|watcher| is_part(name, &watcher.name)) {
            let aliases = self.removed.remove(name).map(|(_, aliases)| aliases).unwrap_or_default();
            self.removed.insert(name.clone(), (why, aliases));
        }
    }

    fn globs_of<'a>(&'a self, name: &'a ResourceName) -> impl Iterator<Item = &'a ResourceName> {
        let watched = self.watchers.values().map(|watcher| &watcher.name);
        watched.filter(|whole| !whole.is_wildcard() && is_part(name, whole))
    }

    /// Changes the true state; watchers of a covering wildcard or collection get a pending event, even for a resource
    /// new to them.
    fn change(&mut self, name: &ResourceName, by: impl FnOnce(&mut Known)) {
        if !self.is_covered(name) {
            return;
        }
        let truth = self.truth.entry(name.clone()).or_default();
        let before = truth.clone();
        by(truth);
        if *truth != before {
            let wholes = self.watchers.values_mut().filter(|watcher| is_part(name, &watcher.name));
            wholes.for_each(|watcher| _ = watcher.told.entry(name.clone()).or_default());
        }
    }

    pub(super) fn done(&mut self, watch: WatchId) {
        self.watchers.get_mut(&watch).expect("a watcher").unfinished -= 1;
        self.tidy();
    }

    // Outputs.

    /// Checks an event that the next watcher in turn received.
    pub(super) fn turn(&mut self, event: Event<u8>, waits: bool) -> u128 {
        let watch = event.watch;
        let others = self.watchers.keys().copied().filter(|&other| other != watch && !self.owed(other).is_empty());
        for other in others.collect::<Vec<_>>() {
            assert!(self.passed.insert((watch, other)), "{watch:?} is told twice, and {other:?} waits");
        }
        self.tell(event, waits)
    }

    pub(super) fn tell(&mut self, event: Event<u8>, waits: bool) -> u128 {
        let Event { watch, name, news, .. } = event;
        let Some(watcher) = self.watchers.get(&watch) else { panic!("{watch:?} has left, and is told {news:?}") };
        assert!(watcher.name == name || is_part(&name, &watcher.name), "{} is told of {name}", watcher.name);
        let mut goals = 0;
        if news == News::Synced {
            assert!(watcher.synced, "{watch:?} is told of an answer that did not come");
            assert_eq!(self.owed(watch), NOTHING, "an answer has nothing new after that");
            self.watchers.get_mut(&watch).expect("it is there").synced = false;
            goals |= Goal::Synced.bit();
        } else {
            let heard_of =
                watcher.told.contains_key(&name) || self.truth.get(&name).is_some_and(|of| of.content.is_some());
            assert!(heard_of, "{watch:?} is told of {name}, which is not there and never was");
            let expected = self.news(watcher, &name);
            assert_eq!(
                Some(&news),
                expected.as_ref(),
                "{watch:?} is told of {name}, which is {:?}",
                self.truth.get(&name)
            );
            let (away, part, late) = (self.away.clone(), watcher.name != name, watcher.late);
            let watcher = self.watchers.get_mut(&watch).expect("it is there");
            let told = watcher.told.entry(name).or_default();
            let before = told.clone();
            match news {
                News::Changed(Ok(content)) => *told = Known { content: Some(content), error: None },
                News::Changed(Err(error)) => *told = Known { content: None, error: Some(error) },
                News::Ambient(error) => told.error = error,
                other => unreachable!("{other:?}: told above, or not known"),
            }
            let mut reach = |goal: Goal, reached: bool| goals |= if reached { goal.bit() } else { 0 };
            reach(Goal::Late, late && before == Known::default() && told.content.is_some());
            reach(Goal::Gone, before.content.is_some() && told.content.is_none());
            reach(Goal::Failed, before.content.is_none() && told.content.is_none());
            reach(Goal::Beside, told.content.is_some() && told.error.is_some());
            reach(Goal::Over, before.error.is_some() && before.content.is_some() && told.error.is_none());
            reach(Goal::Cured, before.error.is_some() && before.content.is_none() && told.content.is_some());
            reach(Goal::Away, away.is_some() && told.error == away);
            reach(Goal::Behind, watcher.unfinished > 0);
            reach(Goal::Member, part && told.content.is_some());
        }
        self.watchers.get_mut(&watch).expect("it is there").unfinished += usize::from(waits);
        self.passed.retain(|&(_, waiting)| waiting != watch);
        self.tidy();
        goals
    }

    pub(super) fn judge(&mut self, verdict: &Verdict) {
        let (rejected, waited_for) = self.judging.take().expect("a verdict of an update that is out");
        assert!(waited_for.is_empty(), "the verdict is given, and {waited_for:?} is not done");
        let names = |Rejection { name, .. }: &Rejection| name.clone().expect("a name");
        let names: Vec<ResourceName> = verdict.rejections().iter().map(names).collect();
        assert_eq!(names, rejected, "what is rejected");
    }

    /// Returns the next event for a watcher of a resource.
    fn news(&self, watcher: &Watcher, name: &ResourceName) -> Option<News<u8>> {
        let truth = self.truth.get(name).cloned().unwrap_or_default();
        let told = watcher.told.get(name).cloned().unwrap_or_default();
        let error = truth.error.or_else(|| self.away.clone());
        let beside = || (told.error != error).then(|| News::Ambient(error.clone()));
        match truth.content {
            _ if is_whole(name) => beside(),
            Some(content) if told.content != Some(content) => Some(News::Changed(Ok(content))),
            Some(_) => beside(),
            None if told.content.is_some() => Some(News::Changed(Err(error.expect("a reason")))),
            // A watcher without content receives no event as long as none has arrived.
            None => error.filter(|error| told.error.as_ref() != Some(error)).map(|error| News::Changed(Err(error))),
        }
    }

    /// Returns the resources that a watcher has pending events of.
    pub(super) fn owed(&self, watch: WatchId) -> Vec<ResourceName> {
        let watcher = &self.watchers[&watch];
        let held = self.truth.iter().filter(|(_, truth)| truth.content.is_some()).map(|(name, _)| name);
        let parts = held.filter(|name| is_part(name, &watcher.name));
        let all: BTreeSet<&ResourceName> = parts.chain(watcher.told.keys()).collect();
        all.into_iter().filter(|name| self.news(watcher, name).is_some()).cloned().collect()
    }

    fn is_busy(&self, watch: WatchId) -> bool {
        self.watchers.get(&watch).is_some_and(|watcher| watcher.unfinished > 0 || !self.owed(watch).is_empty())
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.judging.as_ref().is_some_and(|(_, waited_for)| !waited_for.is_empty())
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.watchers.iter().all(|(&watch, watcher)| !watcher.synced && self.owed(watch).is_empty())
    }

    /// Forgets a resource that has no content, no watcher by name and no pending event.
    pub(super) fn tidy(&mut self) {
        let owed: BTreeSet<ResourceName> = self.watchers.keys().flat_map(|&watch| self.owed(watch)).collect();
        let before = std::mem::take(&mut self.truth);
        let kept = |name: &ResourceName, truth: &Known| {
            truth.content.is_some() || owed.contains(name) || (self.is_watched(name) && truth.error.is_some())
        };
        self.truth = before.into_iter().filter(|(name, truth)| kept(name, truth)).collect();
        for watcher in self.watchers.values_mut() {
            watcher.told.retain(|name, _| *name == watcher.name || self.truth.contains_key(name));
        }
        if let Some((rejected, waited_for)) = self.judging.take() {
            let waited_for = waited_for.into_iter().filter(|&watch| self.is_busy(watch)).collect();
            self.judging = Some((rejected, waited_for));
        }
        let passed = std::mem::take(&mut self.passed);
        let there = |watch: &WatchId| self.watchers.contains_key(watch);
        let still = |(by, of): &(WatchId, WatchId)| there(by) && there(of) && !self.owed(*of).is_empty();
        self.passed = passed.into_iter().filter(still).collect();
    }
}
