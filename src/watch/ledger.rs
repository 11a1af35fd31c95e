//! Who watches what, what is known of it, and what each watcher has not been told.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use super::event::{Event, News, WatchId};
use crate::error::Status;
use crate::globs::Globs;
use crate::name::{ResourceName, WILDCARD};
use crate::xdstp::Parts;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Ledger<T> {
    /// How many watchers there were.
    watches: u64,
    watchers: BTreeMap<WatchId, Watcher<T>>,
    /// What somebody watches by name; what is held and somebody watches as a part of a whole; and what is to be told of
    /// what is not held.
    known: BTreeMap<ResourceName, Known<T>>,
    /// What the last update removes of the wholes that somebody watches, and why: the machine does not say it again to who
    /// comes to watch it by name.
    removed: BTreeMap<ResourceName, Status>,
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
    /// Of what there is something new to it, and nothing else.
    fresh: BTreeMap<ResourceName, Fresh<T>>,
    /// The errors that it was told last, beside what it has or in its place.
    errors: BTreeMap<ResourceName, Status>,
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

/// What is to be told next of a resource.
enum Due {
    Content,
    /// There is none.
    Failure,
    /// The error beside it, or that it is over.
    Error,
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
        let (watchers, known, removed) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (globs, turns) = (Globs::default(), VecDeque::new());
        Self { watches: 0, watchers, known, removed, globs, turns, unreachable: None }
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
        let (fresh, errors) = (BTreeMap::new(), BTreeMap::new());
        let watcher = Watcher { name: name.clone(), fresh, errors, synced: false, queued: false, unfinished: 0 };
        self.watchers.insert(watch, watcher);
        let known = self.known.entry(name.clone()).or_default();
        known.watchers.insert(watch);
        if known.value.is_none() && known.error.is_none() {
            known.error = self.removed.get(&name).cloned();
        }
        self.globs.insert(&name);
        let parts = Parts::of(name.as_str()).filter(|_| name.is_glob());
        let has = |of: &ResourceName| {
            name.is_wildcard() || *of == name || parts.as_ref().is_some_and(|parts| parts.has(of.as_str()))
        };
        let Self { watchers, known, turns, unreachable, .. } = self;
        for (of, known) in known.iter_mut().filter(|(of, _)| has(of)) {
            // What is not there is no part of the whole, whoever else is still to be told so.
            if *of == name || known.value.is_some() {
                note(watchers, turns, watch, of, known, unreachable.as_ref(), Some(None));
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
        if whole {
            let mut removed = core::mem::take(&mut self.removed);
            removed.retain(|name, _| self.wholes(name).next().is_some());
            self.removed = removed;
        }
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
                None
            }
            Change::Fine => {
                known.error = None;
                None
            }
        };
        self.tell(name, changed);
    }

    /// An update comes, with what it removes.
    pub(super) fn begin(&mut self, removed: &[ResourceName]) {
        self.removed.retain(|name, _| removed.binary_search(name).is_ok());
    }

    /// An error that the server reports removes a resource, before the update does.
    pub(super) fn remove_for(&mut self, name: &ResourceName, why: Status) {
        self.note_removed(name, &why);
        self.change(name, Change::Gone(why));
    }

    /// An update removes a resource, unless it is gone already.
    pub(super) fn remove(&mut self, name: &ResourceName, why: Status) {
        if self.get(name.as_str()).is_some() {
            self.note_removed(name, &why);
            self.change(name, Change::Gone(why));
        } else if !self.removed.contains_key(name) {
            self.note_removed(name, &why);
        }
    }

    fn note_removed(&mut self, name: &ResourceName, why: &Status) {
        if self.wholes(name).next().is_some() {
            self.removed.insert(name.clone(), why.clone());
        }
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
        self.unreachable = status;
        // An error of its own says more.
        let others = self.known.iter().filter(|(_, known)| known.error.is_none());
        let names: alloc::vec::Vec<ResourceName> = others.map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.tell(name, None));
    }

    /// Notes for each watcher of a name that there may be something new: the content, if it is known what it was before.
    fn tell(&mut self, name: &ResourceName, changed: Option<Option<T>>) {
        let all: BTreeSet<WatchId> = self.wholes(name).flat_map(|whole| &whole.watchers).copied().collect();
        let Some(known) = self.known.get_mut(name) else { return };
        let by_name = known.watchers.clone();
        // What is not there, and about which nothing was said, is no part of everything.
        let all = if known.value.is_none() && known.error.is_none() { BTreeSet::new() } else { all };
        for watch in by_name.union(&all) {
            let unreachable = self.unreachable.as_ref();
            note(&mut self.watchers, &mut self.turns, *watch, name, known, unreachable, changed.clone());
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
        let mut watcher = self.watchers.get_mut(&watch)?;
        while let Some(mut entry) = watcher.fresh.first_entry() {
            let name = entry.key().clone();
            let Some(known) = self.known.get_mut(&name) else {
                entry.remove();
                continue;
            };
            let error = known.error.as_ref().or(self.unreachable.as_ref());
            let due = due(&name, known, error, entry.get(), watcher.errors.get(&name));
            let news = match (&due, &known.value) {
                (Some(Due::Content), Some(value)) => {
                    watcher.errors.remove(&name);
                    Some(News::Changed(Ok(value.clone())))
                }
                (Some(Due::Failure), _) => error.cloned().map(|error| News::Changed(Err(error))),
                (Some(Due::Error), _) => Some(News::Ambient(error.cloned())),
                _ => None,
            };
            let content = matches!(due, Some(Due::Content));
            entry.get_mut().changed = None;
            if content && error.is_some() {
                return Some((name, news?)); // and the error next
            }
            if let (false, Some(error)) = (content, error) {
                watcher.errors.insert(name.clone(), error.clone());
            } else {
                watcher.errors.remove(&name);
            }
            entry.remove();
            known.untold -= 1;
            self.tidy(&name);
            if let Some(news) = news {
                return Some((name, news));
            }
            watcher = self.watchers.get_mut(&watch)?;
        }
        core::mem::take(&mut watcher.synced).then(|| (WILDCARD.into(), News::Synced))
    }

    /// Forgets what is not there, nobody watches by name, and everybody was told of.
    fn tidy(&mut self, name: &ResourceName) {
        let done = |known: &Known<T>| known.value.is_none() && known.watchers.is_empty() && known.untold == 0;
        if !self.known.get(name).is_some_and(done) {
            return;
        }
        self.known.remove(name);
        let wholes: BTreeSet<WatchId> = self.wholes(name).flat_map(|whole| &whole.watchers).copied().collect();
        for watch in wholes {
            if let Some(watcher) = self.watchers.get_mut(&watch) {
                watcher.errors.remove(name);
            }
        }
    }
}

/// Whether the name is of a whole, and not of a resource.
fn is_whole(name: &ResourceName) -> bool {
    name.is_wildcard() || name.is_glob()
}

/// What a watcher is to be told next of a resource that has this error, if there is anything. `told` is the error that it
/// was told last.
fn due<T: PartialEq>(
    name: &ResourceName,
    known: &Known<T>,
    error: Option<&Status>,
    fresh: &Fresh<T>,
    told: Option<&Status>,
) -> Option<Due> {
    let differs = |value: &T| fresh.changed.as_ref().is_some_and(|before| before.as_ref() != Some(value));
    match &known.value {
        Some(value) if !is_whole(name) && differs(value) => Some(Due::Content),
        None if !is_whole(name) => {
            // Who has nothing is not told that nothing has come yet.
            let had = matches!(fresh.changed, Some(Some(_)));
            (error.is_some() && (had || error != told)).then_some(Due::Failure)
        }
        _ => (error != told).then_some(Due::Error),
    }
}

/// Notes what there is of a resource that a watcher was not told, or that there is nothing any more.
fn note<T: PartialEq>(
    watchers: &mut BTreeMap<WatchId, Watcher<T>>,
    turns: &mut VecDeque<WatchId>,
    watch: WatchId,
    name: &ResourceName,
    known: &mut Known<T>,
    unreachable: Option<&Status>,
    changed: Option<Option<T>>,
) {
    let Some(watcher) = watchers.get_mut(&watch) else { return };
    let before = watcher.fresh.remove(name);
    known.untold -= usize::from(before.is_some());
    // What it was told last is what was there when the first change came that it has not been told.
    let fresh = Fresh { changed: before.and_then(|before| before.changed).or(changed) };
    let error = known.error.as_ref().or(unreachable);
    if due(name, known, error, &fresh, watcher.errors.get(name)).is_some() {
        watcher.fresh.insert(name.clone(), fresh);
        known.untold += 1;
        queue(watcher, turns, watch);
    }
}

fn queue<T>(watcher: &mut Watcher<T>, turns: &mut VecDeque<WatchId>, watch: WatchId) {
    if !core::mem::replace(&mut watcher.queued, true) {
        turns.push_back(watch);
    }
}
