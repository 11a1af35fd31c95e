//! Who watches what, what is known of it, and what each watcher has not been told.

mod questions;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::aliases::Aliases;
use super::event::{Event, News, WatchId};
use super::known::{Change, Due, Fresh, Known, due, is_whole};
use super::unreachable::Unreachable;
use crate::error::{Code, Status};
use crate::globs::Globs;
use crate::name::{ResourceName, WILDCARD};
use crate::xdstp::Parts;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Ledger<T> {
    /// How many watchers there were.
    watches: u64,
    watchers: BTreeMap<WatchId, Watcher<T>>,
    /// What somebody watches by its name, which may be that of a resource, an alias, or that of a whole.
    named: BTreeMap<ResourceName, Known<T>>,
    /// What is held of the wholes that somebody watches; and what is to be told of what is not held.
    parts: BTreeMap<ResourceName, Known<T>>,
    aliases: Aliases,
    /// What the last update removes of what somebody watches by a whole or an alias: the machine does not say it again to
    /// who comes to watch it by name.
    removed: BTreeMap<ResourceName, Removed>,
    /// The collections that somebody watches.
    globs: Globs,
    /// Watchers with something to be told, each once, and some that were told by now.
    turns: VecDeque<WatchId>,
    unreachable: Unreachable,
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
struct Removed {
    why: Status,
    /// The aliases that it was watched by. Once nobody watches any of them or a whole, the machine asks for it anew.
    aliases: BTreeSet<ResourceName>,
}

impl<T: Clone + PartialEq> Ledger<T> {
    pub(super) fn new() -> Self {
        Self {
            watches: 0,
            watchers: BTreeMap::new(),
            named: BTreeMap::new(),
            parts: BTreeMap::new(),
            aliases: Aliases::default(),
            removed: BTreeMap::new(),
            globs: Globs::default(),
            turns: VecDeque::new(),
            unreachable: Unreachable::default(),
        }
    }

    pub(super) fn is_watched(&self, name: &ResourceName) -> bool {
        self.named.contains_key(name)
    }

    /// Whether somebody watches a resource, by its name, as a part of a whole, or by an alias that it had before.
    pub(super) fn covers(&self, name: &ResourceName) -> bool {
        self.is_watched(name) || self.is_part(name) || !self.aliases.of(name, false).is_empty()
    }

    fn is_part(&self, name: &ResourceName) -> bool {
        self.wholes(name).next().is_some()
    }

    /// What is known of the wholes that somebody watches and a name is part of.
    fn wholes(&self, name: &ResourceName) -> impl Iterator<Item = &Known<T>> {
        let all = self.named.get(WILDCARD).filter(|_| !name.is_wildcard());
        let glob = self.globs.of(name.as_str()).and_then(|glob| self.named.get(glob));
        all.into_iter().chain(glob)
    }

    fn known(&self, name: &str) -> Option<&Known<T>> {
        self.named.get(name).or_else(|| self.parts.get(name))
    }

    // Watchers.

    pub(super) fn watch(&mut self, name: ResourceName) -> WatchId {
        self.watches += 1;
        let watch = WatchId(self.watches);
        let (fresh, errors) = (BTreeMap::new(), BTreeMap::new());
        let watcher = Watcher { name: name.clone(), fresh, errors, synced: false, queued: false, unfinished: 0 };
        self.watchers.insert(watch, watcher);
        if !self.is_watched(&name) {
            let of_alias = || self.aliases.of(&name, false).first().and_then(|alias| self.named.get(alias));
            let known = self.parts.get(&name).or_else(of_alias).map(Known::copy).unwrap_or_default();
            self.named.insert(name.clone(), known);
            self.globs.insert(&name);
            if is_whole(&name) {
                self.add_parts(&name);
            }
        }
        let Self { watchers, named, turns, unreachable, removed, .. } = self;
        let known = named.entry(name.clone()).or_default();
        known.watchers.insert(watch);
        if known.value.is_none() && known.error.is_none() {
            known.error = removed.get(&name).map(|removed| removed.why.clone());
        }
        note(watchers, turns, watch, &name, known, unreachable, Some(None));
        let known = known.copy();
        if self.is_part(&name) {
            // While somebody watches it by name, what is known of it is known of the part.
            self.parts.entry(name.clone()).or_insert(known);
        }
        let Self { watchers, parts, turns, unreachable, .. } = self;
        if is_whole(&name) {
            let has = has(&name);
            // What is not there is no part of the whole, whoever else is still to be told so.
            for (of, known) in parts.iter_mut().filter(|(of, known)| known.value.is_some() && has(of)) {
                note(watchers, turns, watch, of, known, unreachable, Some(None));
            }
        }
        watch
    }

    /// What is known by name of a whole that nobody watched.
    fn add_parts(&mut self, whole: &ResourceName) {
        let has = has(whole);
        let named = self.named.iter().filter(|(name, _)| !self.aliases.is_alias(name));
        let by_alias = self.aliases.targets().filter_map(|(name, alias)| Some((name, self.named.get(alias)?)));
        let known = named.chain(by_alias).filter(|(name, _)| *name != whole && has(name));
        let known = known.map(|(name, known)| (name.clone(), known.copy()));
        for (name, known) in known.collect::<Vec<_>>() {
            self.parts.entry(name).or_insert(known);
        }
    }

    /// The name, if nobody watches it any more.
    pub(super) fn unwatch(&mut self, watch: WatchId) -> Option<ResourceName> {
        let Watcher { name, fresh, queued, .. } = self.watchers.remove(&watch)?;
        if queued {
            self.turns.retain(|&turn| turn != watch);
        }
        for of in fresh.keys() {
            let known = if *of == name { self.named.get_mut(of) } else { self.parts.get_mut(of) };
            if let Some(known) = known {
                known.untold -= 1;
            }
            self.tidy(of);
        }
        let known = self.named.get_mut(&name)?;
        known.watchers.remove(&watch);
        if !known.watchers.is_empty() {
            return None;
        }
        self.named.remove(&name);
        self.aliases.unbind(&name);
        if self.globs.remove(name.as_str()) || name.is_wildcard() {
            let mut parts = core::mem::take(&mut self.parts);
            parts.retain(|name, _| self.is_part(name));
            self.parts = parts;
        }
        let mut removed = core::mem::take(&mut self.removed);
        removed.retain(|of, Removed { aliases, .. }| {
            aliases.remove(&name);
            !aliases.is_empty() || self.is_part(of)
        });
        self.removed = removed;
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

    /// Something happened to a resource, and so to all that its aliases stand for.
    pub(super) fn change(&mut self, name: &ResourceName, change: Change<T>) {
        let gone = matches!(change, Change::Gone(_));
        self.change_own(name, change.clone());
        if gone {
            self.aliases.lose(name);
        }
        for alias in self.aliases.of(name, gone) {
            self.change_alias(&alias, change.clone());
        }
    }

    /// The same, of what has the name itself.
    fn change_own(&mut self, name: &ResourceName, change: Change<T>) {
        let is_alias = self.aliases.is_alias(name); // which is no part of a whole
        if self.is_part(name) && !is_alias {
            let none = self.parts.get(name).is_none_or(|known| known.error.is_none());
            if !(none && matches!(change, Change::Fine)) {
                let changed = self.parts.entry(name.clone()).or_default().change(change.clone());
                changed.into_iter().for_each(|changed| self.tell_part(name, changed));
            }
        }
        self.change_named(name, change);
    }

    /// The same, for who watches it by this name.
    fn change_named(&mut self, name: &ResourceName, change: Change<T>) {
        let changed = self.named.get_mut(name).and_then(|known| known.change(change));
        changed.into_iter().for_each(|changed| self.tell_named(name, changed));
    }

    /// The same, by an alias that has what happened to the resource.
    fn change_alias(&mut self, alias: &ResourceName, change: Change<T>) {
        if matches!(change, Change::Gone(_)) {
            self.aliases.unbind(alias);
        }
        self.change_named(alias, change);
    }

    /// An update comes, with what it removes.
    pub(super) fn begin(&mut self, removed: &[ResourceName]) {
        self.removed.retain(|name, _| removed.binary_search(name).is_ok());
        for name in removed {
            let aliases = self.aliases.had(name);
            if !aliases.is_empty() {
                let unknown = || Removed { why: gone(), aliases: BTreeSet::new() };
                self.removed.entry(name.clone()).or_insert_with(unknown).aliases.extend(aliases);
            }
        }
    }

    /// An update has a resource, which these watched aliases stand for.
    pub(super) fn put(&mut self, name: &ResourceName, aliases: &[ResourceName], value: T) {
        self.came(name);
        self.aliases.unbind(name);
        aliases.iter().for_each(|alias| self.aliases.bind(alias, name));
        self.change(name, Change::Value(value));
    }

    /// A resource of an update is rejected: `Gone` or `Error`.
    pub(super) fn reject(&mut self, name: &ResourceName, aliases: &[ResourceName], change: &Change<T>) {
        let known = self.aliases.of(name, false);
        self.change(name, change.clone());
        for alias in aliases.iter().filter(|alias| !known.contains(alias)) {
            self.change_alias(alias, change.clone());
        }
    }

    /// An alias stands for a resource of an update, or is one.
    pub(super) fn moves(&mut self, alias: &ResourceName, to: Option<&ResourceName>) {
        self.aliases.leave(alias, to);
    }

    /// An error that the server reports removes a resource, before the update does.
    pub(super) fn remove_for(&mut self, name: &ResourceName, why: Status) {
        self.note_removed(name, &why);
        self.change(name, Change::Gone(why));
    }

    /// An update removes a resource, unless it is gone already. What went with an error that came before has its reason, and
    /// so has what is rejected and dropped.
    pub(super) fn remove(&mut self, name: &ResourceName, drops: bool) {
        let known = if self.aliases.is_alias(name) { self.parts.get(name) } else { self.known(name.as_str()) };
        let there = known.is_some_and(|known| known.value.is_some());
        let why = known.and_then(|known| known.reason(drops)).unwrap_or_else(gone);
        if there || !self.removed.contains_key(name) {
            self.note_removed(name, &why);
        }
        if there {
            self.change_own(name, Change::Gone(why));
            self.aliases.unbind(name);
        } else if self.removed.get(name).is_some_and(|removed| !removed.aliases.is_empty()) {
            // By an alias that stands for nothing: who came to watch it by name since then knows nothing of it.
            let unknown = |known: &&Known<T>| known.value.is_none() && known.error.is_none();
            if self.named.get(name).filter(unknown).is_some() {
                self.change_named(name, Change::Gone(why));
            }
        }
        for alias in self.aliases.of(name, true) {
            let known = self.named.get(&alias);
            let why = known.and_then(|known| known.reason(drops || self.aliases.has_left(&alias)));
            self.change_alias(&alias, Change::Gone(why.unwrap_or_else(gone)));
        }
        self.aliases.forget_lost(name);
    }

    fn note_removed(&mut self, name: &ResourceName, why: &Status) {
        let mut aliases = self.aliases.had(name);
        aliases.extend(self.removed.remove(name).into_iter().flat_map(|removed| removed.aliases));
        if self.is_part(name) || !aliases.is_empty() {
            self.removed.insert(name.clone(), Removed { why: why.clone(), aliases });
        }
    }

    /// Content came: errors of the wholes that it is part of are over.
    fn came(&mut self, name: &ResourceName) {
        if let Some(glob) = self.globs.of(name.as_str()).cloned() {
            self.change(&glob, Change::Fine);
        }
    }

    pub(super) fn synced(&mut self) {
        self.change(&WILDCARD.into(), Change::Fine);
        let all = self.named.get(WILDCARD).map(|all| all.watchers.clone()).unwrap_or_default();
        for watch in all {
            if let Some(watcher) = self.watchers.get_mut(&watch) {
                watcher.synced = true;
                queue(watcher, &mut self.turns, watch);
            }
        }
    }

    pub(super) fn set_unreachable(&mut self, set: impl FnOnce(&mut Unreachable)) {
        let before = self.unreachable.clone();
        set(&mut self.unreachable);
        // An error of its own says more.
        let other = |name: &&ResourceName| before.error(name.as_str()) != self.unreachable.error(name.as_str());
        let names = |known: &BTreeMap<ResourceName, Known<T>>| -> Vec<ResourceName> {
            let others = known.iter().filter(|(_, known)| known.error.is_none()).map(|(name, _)| name);
            others.filter(other).cloned().collect()
        };
        let (named, parts) = (names(&self.named), names(&self.parts));
        named.iter().for_each(|name| self.tell_named(name, None));
        parts.iter().for_each(|name| self.tell_part(name, None));
    }

    /// Notes for each who watches a name that there may be something new: the content, if it is known what it was before.
    fn tell_named(&mut self, name: &ResourceName, changed: Option<Option<T>>) {
        let Self { watchers, named, turns, unreachable, .. } = self;
        let Some(known) = named.get_mut(name) else { return };
        for watch in known.watchers.clone() {
            note(watchers, turns, watch, name, known, unreachable, changed.clone());
        }
    }

    /// The same for each who watches a whole that the name is part of.
    fn tell_part(&mut self, name: &ResourceName, changed: Option<Option<T>>) {
        let all: BTreeSet<WatchId> = self.wholes(name).flat_map(|whole| &whole.watchers).copied().collect();
        let Self { watchers, parts, turns, unreachable, .. } = self;
        // What is not there, and about which nothing was said, is no part of everything.
        let said = |known: &&mut Known<T>| known.value.is_some() || known.error.is_some();
        if let Some(known) = parts.get_mut(name).filter(said) {
            for watch in all {
                note(watchers, turns, watch, name, known, unreachable, changed.clone());
            }
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
            let known = if name == watcher.name { self.named.get_mut(&name) } else { self.parts.get_mut(&name) };
            let Some(known) = known else {
                entry.remove();
                continue;
            };
            let error = known.error.as_ref().or_else(|| self.unreachable.error(name.as_str()));
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

    /// Forgets of the parts what is not there, nobody watches by name, and everybody was told of.
    fn tidy(&mut self, name: &ResourceName) {
        let done = |known: &Known<T>| known.value.is_none() && !self.is_watched(name) && known.untold == 0;
        if !self.parts.get(name).is_some_and(done) {
            return;
        }
        self.parts.remove(name);
        let wholes: BTreeSet<WatchId> = self.wholes(name).flat_map(|whole| &whole.watchers).copied().collect();
        for watch in wholes {
            if let Some(watcher) = self.watchers.get_mut(&watch) {
                watcher.errors.remove(name);
            }
        }
    }
}

/// Whether names are of parts of this whole.
fn has(whole: &ResourceName) -> impl Fn(&ResourceName) -> bool {
    let parts = Parts::of(whole.as_str()).filter(|_| whole.is_glob());
    move |of| whole.is_wildcard() || parts.as_ref().is_some_and(|parts| parts.has(of.as_str()))
}

/// Notes what there is of a resource that a watcher was not told, or that there is nothing any more.
fn note<T: PartialEq>(
    watchers: &mut BTreeMap<WatchId, Watcher<T>>,
    turns: &mut VecDeque<WatchId>,
    watch: WatchId,
    name: &ResourceName,
    known: &mut Known<T>,
    unreachable: &Unreachable,
    changed: Option<Option<T>>,
) {
    let Some(watcher) = watchers.get_mut(&watch) else { return };
    let before = watcher.fresh.remove(name);
    known.untold -= usize::from(before.is_some());
    // What it was told last is what was there when the first change came that it has not been told.
    let fresh = Fresh { changed: before.and_then(|before| before.changed).or(changed) };
    let error = known.error.as_ref().or_else(|| unreachable.error(name.as_str()));
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

fn gone() -> Status {
    Status::new(Code::NotFound, "the server removed the resource")
}
