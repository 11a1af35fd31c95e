//! Who watches what, what is known of it, and what each watcher has not been told.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Event, News, WatchId};
use crate::error::Status;
use crate::name::{ResourceName, WILDCARD};
use crate::xdstp::{Globs, Parts};

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Ledger<T> {
    /// How many watchers there were.
    watches: u64,
    watchers: BTreeMap<WatchId, Watcher<T>>,
    /// What somebody watches by name; what is held and somebody watches as a part of a whole; and what is to be told of
    /// what is not held.
    known: BTreeMap<ResourceName, Known<T>>,
    /// The collections that somebody watches.
    globs: Globs,
    /// Watchers with something to be told, each once, and some that were told by now.
    turns: VecDeque<WatchId>,
    /// The server can't be reached.
    unreachable: Option<Status>,
}

/// What is known of a resource.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Known<T> {
    value: Option<T>,
    error: Option<Status>,
    /// Who watches it by its name.
    watchers: BTreeSet<WatchId>,
    /// How many have something of it before them.
    untold: usize,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Watcher<T> {
    name: ResourceName,
    /// What is new to it.
    fresh: BTreeMap<ResourceName, Fresh<T>>,
    /// Of which resources it was told an error beside what it has.
    ambient: BTreeSet<ResourceName>,
    synced: bool,
    /// It has a turn.
    queued: bool,
    /// Events that it was given and is not done with.
    unfinished: usize,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Fresh<T> {
    /// The content may be another than it was told last, which was this.
    changed: Option<Option<T>>,
}

/// What happened to a resource.
pub(super) enum Change<T> {
    Value(T),
    /// There is nothing any more, or still not.
    Gone(Status),
    /// What is there stays.
    Error(Status),
    /// The error is over.
    Fine,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { value: None, error: None, watchers: BTreeSet::new(), untold: 0 }
    }
}

impl<T: Clone + PartialEq> Ledger<T> {
    pub(super) fn new() -> Self {
        let (watchers, known, turns) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Self { watches: 0, watchers, known, globs: Globs::default(), turns, unreachable: None }
    }

    pub(super) fn is_watched(&self, name: &ResourceName) -> bool {
        self.known.get(name).is_some_and(|known| !known.watchers.is_empty())
    }

    pub(super) fn covers(&self, name: &ResourceName) -> bool {
        self.is_watched(name) || self.wholes(name).next().is_some()
    }

    /// What is known of the wholes that somebody watches and a name is part of.
    fn wholes(&self, name: &ResourceName) -> impl Iterator<Item = &Known<T>> {
        let all = self.known.get(WILDCARD).filter(|_| !name.is_wildcard());
        let glob = self.globs.of(name.as_str()).and_then(|glob| self.known.get(glob));
        all.into_iter().chain(glob).filter(|whole| !whole.watchers.is_empty())
    }

    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.known.get(name)?.value.as_ref()
    }

    pub(super) fn error(&self, name: &(impl AsRef<str> + ?Sized)) -> Option<&Status> {
        self.known.get(name.as_ref())?.error.as_ref()
    }

    // Watchers.

    pub(super) fn watch(&mut self, name: ResourceName) -> WatchId {
        self.watches += 1;
        let watch = WatchId(self.watches);
        let (fresh, ambient) = (BTreeMap::new(), BTreeSet::new());
        let watcher = Watcher { name: name.clone(), fresh, ambient, synced: false, queued: false, unfinished: 0 };
        self.watchers.insert(watch, watcher);
        self.known.entry(name.clone()).or_default().watchers.insert(watch);
        self.globs.insert(&name);
        let parts = Parts::of(name.as_str()).filter(|_| name.is_glob());
        let has = |of: &ResourceName| {
            name.is_wildcard() || *of == name || parts.as_ref().is_some_and(|parts| parts.has(of.as_str()))
        };
        let Self { watchers, known, turns, unreachable, .. } = self;
        for (of, known) in known.iter_mut().filter(|(of, _)| has(of)) {
            let failing = *of == name && unreachable.is_some();
            if known.value.is_some() || known.error.is_some() || failing {
                note(watchers, turns, watch, of, known, Some(None));
            }
        }
        watch
    }

    /// The name, if nobody watches it any more.
    pub(super) fn unwatch(&mut self, watch: WatchId) -> Option<ResourceName> {
        let Watcher { name, fresh, queued, .. } = self.watchers.remove(&watch)?;
        if queued {
            self.turns.retain(|&turn| turn != watch);
        }
        for of in fresh.keys() {
            if let Some(known) = self.known.get_mut(of) {
                known.untold -= 1;
            }
            self.tidy(of);
        }
        let known = self.known.get_mut(&name)?;
        known.watchers.remove(&watch);
        if !known.watchers.is_empty() {
            return None;
        }
        let whole = name.is_wildcard() || self.globs.remove(name.as_str());
        let mut known = core::mem::take(&mut self.known);
        let all = known.get(WILDCARD).is_some_and(|all| !all.watchers.is_empty());
        let wanted = |name: &ResourceName| all || self.globs.cover(name.as_str());
        if whole {
            known.retain(|name, known| !known.watchers.is_empty() || wanted(name));
        } else if !wanted(&name) {
            known.remove(&name);
        }
        self.known = known;
        self.tidy(&name);
        Some(name)
    }

    pub(super) fn done(&mut self, watch: WatchId) {
        if let Some(watcher) = self.watchers.get_mut(&watch) {
            watcher.unfinished = watcher.unfinished.saturating_sub(1);
        }
    }

    pub(super) fn is_busy(&self, watch: WatchId) -> bool {
        self.watchers.get(&watch).is_some_and(|watcher| !watcher.fresh.is_empty() || watcher.unfinished > 0)
    }

    pub(super) fn busy(&self) -> BTreeSet<WatchId> {
        self.watchers.keys().copied().filter(|&watch| self.is_busy(watch)).collect()
    }

    // What happened.

    pub(super) fn change(&mut self, name: &ResourceName, change: Change<T>) {
        if !self.covers(name) {
            return;
        }
        if let (Change::Fine, None) = (&change, self.error(name)) {
            return;
        }
        let known = self.known.entry(name.clone()).or_default();
        // What was there before, if there is something else now.
        let changed = match change {
            Change::Value(value) if known.value.as_ref() == Some(&value) => {
                if known.error.take().is_none() {
                    return; // nothing is new
                }
                None
            }
            Change::Value(value) => {
                known.error = None;
                Some(known.value.replace(value))
            }
            Change::Gone(status) => {
                if known.value.is_none() && known.error.as_ref() == Some(&status) {
                    return;
                }
                known.error = Some(status);
                Some(known.value.take())
            }
            Change::Error(status) => {
                if known.error.as_ref() == Some(&status) {
                    return; // C-RES-21
                }
                known.error = Some(status);
                known.value.is_none().then_some(None)
            }
            Change::Fine => {
                known.error = None;
                None
            }
        };
        self.tell(name, changed);
    }

    /// Content came: errors of the wholes that it is part of are over.
    pub(super) fn came(&mut self, name: &ResourceName) {
        if let Some(glob) = self.globs.of(name.as_str()).cloned() {
            self.change(&glob, Change::Fine);
        }
    }

    pub(super) fn synced(&mut self) {
        self.change(&WILDCARD.into(), Change::Fine);
        let all = self.known.get(WILDCARD).map(|all| all.watchers.clone()).unwrap_or_default();
        for watch in all {
            if let Some(watcher) = self.watchers.get_mut(&watch) {
                watcher.synced = true;
                queue(watcher, &mut self.turns, watch);
            }
        }
    }

    pub(super) fn set_unreachable(&mut self, status: Option<Status>) {
        if self.unreachable == status {
            return;
        }
        let fails = status.is_some();
        self.unreachable = status;
        let names: alloc::vec::Vec<ResourceName> = self.known.keys().cloned().collect();
        for name in names {
            let known = &self.known[&name];
            // An error of its own says more; and who has nothing is not told that nothing has come yet.
            if known.error.is_none() && (fails || known.value.is_some() || is_whole(&name)) {
                let changed = known.value.is_none().then_some(None);
                self.tell(&name, changed);
            }
        }
    }

    /// Notes for each watcher of a name that there is something new: the content, if it is known what it was before.
    fn tell(&mut self, name: &ResourceName, changed: Option<Option<T>>) {
        let all: BTreeSet<WatchId> = self.wholes(name).flat_map(|whole| &whole.watchers).copied().collect();
        let Some(known) = self.known.get_mut(name) else { return };
        let by_name = known.watchers.clone();
        // What is not there, and about which nothing was said, is no part of everything.
        let all = if known.value.is_none() && known.error.is_none() { BTreeSet::new() } else { all };
        for watch in by_name.union(&all) {
            note(&mut self.watchers, &mut self.turns, *watch, name, known, changed.clone());
        }
        self.tidy(name);
    }

    // What to tell.

    pub(super) fn next(&mut self, waits: bool) -> Option<Event<T>> {
        while let Some(watch) = self.turns.pop_front() {
            let Some(watcher) = self.watchers.get_mut(&watch) else { continue };
            watcher.queued = false;
            let event = self.next_of(watch, waits);
            if let Some(watcher) = self.watchers.get_mut(&watch) {
                if !watcher.fresh.is_empty() || watcher.synced {
                    queue(watcher, &mut self.turns, watch);
                }
            }
            if event.is_some() {
                return event;
            }
        }
        None
    }

    pub(super) fn next_of(&mut self, watch: WatchId, waits: bool) -> Option<Event<T>> {
        let (name, news) = self.news_of(watch)?;
        if waits {
            self.watchers.get_mut(&watch)?.unfinished += 1;
        }
        Some(Event { watch, name, news })
    }

    fn news_of(&mut self, watch: WatchId) -> Option<(ResourceName, News<T>)> {
        let watcher = self.watchers.get_mut(&watch)?;
        while let Some(mut entry) = watcher.fresh.first_entry() {
            let name = entry.key().clone();
            let Some(known) = self.known.get_mut(&name) else {
                entry.remove();
                continue;
            };
            let error = known.error.as_ref().or(self.unreachable.as_ref());
            let news = match (entry.get_mut().changed.take(), &known.value) {
                (Some(before), Some(value)) if before.as_ref() != Some(value) => {
                    watcher.ambient.remove(&name);
                    Some(News::Changed(Ok(value.clone())))
                }
                (Some(_), None) if !is_whole(&name) => {
                    watcher.ambient.remove(&name);
                    error.map(|error| News::Changed(Err(error.clone())))
                }
                _ => None,
            };
            let beside = (known.value.is_some() || is_whole(&name)) && error.is_some();
            if news.is_some() && beside {
                return Some((name, news?)); // and the error next
            }
            entry.remove();
            known.untold -= 1;
            let ambient = || match error {
                Some(error) => {
                    watcher.ambient.insert(name.clone());
                    Some(News::Ambient(Some(error.clone())))
                }
                _ => watcher.ambient.remove(&name).then_some(News::Ambient(None)),
            };
            let news = news.or_else(ambient);
            tidy(&mut self.known, &name);
            if let Some(news) = news {
                return Some((name, news));
            }
        }
        core::mem::take(&mut watcher.synced).then(|| (WILDCARD.into(), News::Synced))
    }

    fn tidy(&mut self, name: &ResourceName) {
        tidy(&mut self.known, name);
    }
}

/// Whether the name is of a whole, and not of a resource.
fn is_whole(name: &ResourceName) -> bool {
    name.is_wildcard() || name.is_glob()
}

/// Forgets what is not there, nobody watches by name, and everybody was told of.
fn tidy<T>(known: &mut BTreeMap<ResourceName, Known<T>>, name: &ResourceName) {
    let done = |known: &Known<T>| known.value.is_none() && known.watchers.is_empty() && known.untold == 0;
    if known.get(name).is_some_and(done) {
        known.remove(name);
    }
}

fn note<T>(
    watchers: &mut BTreeMap<WatchId, Watcher<T>>,
    turns: &mut VecDeque<WatchId>,
    watch: WatchId,
    name: &ResourceName,
    known: &mut Known<T>,
    changed: Option<Option<T>>,
) {
    let Some(watcher) = watchers.get_mut(&watch) else { return };
    let fresh = watcher.fresh.entry(name.clone()).or_insert_with(|| {
        known.untold += 1;
        Fresh { changed: None }
    });
    // What it was told last is what was there when the first change came that it has not been told.
    if fresh.changed.is_none() {
        fresh.changed = changed;
    }
    queue(watcher, turns, watch);
}

fn queue<T>(watcher: &mut Watcher<T>, turns: &mut VecDeque<WatchId>, watch: WatchId) {
    if !core::mem::replace(&mut watcher.queued, true) {
        turns.push_back(watch);
    }
}
