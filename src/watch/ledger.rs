//! The watchers, the known state of what they watch, and the pending events of each watcher.

mod events;
mod questions;
mod watcher;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use self::watcher::{NOBODY, Subject, Watcher, note, queue, wholes};
use super::aliases::Aliases;
use super::event::WatchId;
use super::known::{Change, Known, Named, is_whole};
use super::sorted::SortedMap;
use super::unreachable::Unreachable;
use crate::error::{Code, Status};
use crate::globs::Globs;
use crate::name::{ResourceName, WILDCARD};
use crate::xdstp::Parts;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Ledger<T> {
    /// The number of watchers that were ever added.
    watches: u64,
    watchers: BTreeMap<WatchId, Watcher<T>>,
    /// The state by watched name, which may be a resource, an alias, the wildcard or a collection.
    named: SortedMap<ResourceName, Named<T>>,
    /// The state of the resources that a watched wildcard or collection covers, including pending events of removed
    /// ones.
    parts: SortedMap<ResourceName, Known<T>>,
    aliases: Aliases,
    /// The resources that the last update removes and that are covered by a watched wildcard, collection or alias: the
    /// machine does not report the removal again to a watcher that comes later.
    removed: BTreeMap<ResourceName, Removed>,
    /// The watched collections.
    globs: Globs,
    /// Watchers with pending events that `next_ready` did not return, each once, and possibly some without any.
    turns: VecDeque<WatchId>,
    unreachable: Unreachable,
    /// Whether the server has answered the wildcard since it is watched.
    all_answered: bool,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Removed {
    why: Status,
    /// The watched aliases of the resource. Once none of them, nor a wildcard or collection, is watched, the machine
    /// requests the resource anew.
    aliases: BTreeSet<ResourceName>,
}

impl<T: Clone + PartialEq> Ledger<T> {
    pub(super) fn new() -> Self {
        Self {
            watches: 0,
            watchers: BTreeMap::new(),
            named: SortedMap::new(),
            parts: SortedMap::new(),
            aliases: Aliases::default(),
            removed: BTreeMap::new(),
            globs: Globs::default(),
            turns: VecDeque::new(),
            unreachable: Unreachable::default(),
            all_answered: false,
        }
    }

    pub(super) fn is_watched(&self, name: &ResourceName) -> bool {
        self.named.contains_key(name)
    }

    /// Returns whether a resource is watched: by name, by a wildcard or collection, or by an alias that it had before.
    pub(super) fn covers(&self, name: &ResourceName) -> bool {
        self.is_all_the_wildcard()
            || self.is_watched(name)
            || self.is_part(name)
            || !self.aliases.of(name, false).is_empty()
    }

    /// Returns whether the wildcard is watched, and nothing else, so that a resource needs no look-up but its own.
    fn is_all_the_wildcard(&self) -> bool {
        self.aliases.is_empty() && self.named.only().is_some_and(|(name, _)| name.is_wildcard())
    }

    fn is_part(&self, name: &ResourceName) -> bool {
        self.wholes(name).next().is_some()
    }

    /// Returns each watched wildcard or collection that covers a name.
    fn wholes(&self, name: &ResourceName) -> impl Iterator<Item = &Named<T>> {
        wholes(&self.named, &self.globs, name).into_iter().flatten()
    }

    fn known(&self, name: &str) -> Option<&Known<T>> {
        self.named.get(name).map(|named| &named.known).or_else(|| self.parts.get(name))
    }

    // Watchers.

    pub(super) fn watch(&mut self, name: ResourceName) -> WatchId {
        self.watches += 1;
        let watch = WatchId(self.watches);
        let (fresh, errors) = (SortedMap::new(), BTreeMap::new());
        let watcher = Watcher { name: name.clone(), fresh, errors, synced: false, queued: false, unfinished: 0 };
        self.watchers.insert(watch, watcher);
        if !self.is_watched(&name) {
            let of_alias = || Some(&self.named.get(self.aliases.of(&name, false).first()?)?.known);
            let known = self.parts.get(&name).or_else(of_alias).map(Known::copy).unwrap_or_default();
            self.named.entry(&name).or_insert_with(|| known.into());
            self.globs.insert(&name);
            if is_whole(&name) {
                self.add_parts(&name);
            }
        }
        let Self { watchers, named, turns, unreachable, removed, .. } = self;
        let Named { known, watchers: all } = named.entry(&name).or_insert_with(|| Known::default().into());
        all.insert(watch);
        if known.value.is_none() && known.error.is_none() {
            known.error = removed.get(&name).map(|removed| Box::new(removed.why.clone()));
        }
        let Known { value, error, pending } = &mut *known;
        note(watchers, turns, watch, &Subject::new(&name, value, error, unreachable), pending, Some(None));
        let known = known.copy();
        if self.is_part(&name) {
            // While the name is watched, the state is kept under both keys.
            self.parts.entry(&name).or_insert_with(|| known);
        }
        let Self { watchers, parts, turns, unreachable, .. } = self;
        if is_whole(&name) {
            let has = has(&name);
            // The answer that the others have is complete for a later watcher too, after what is held.
            if let Some(watcher) = watchers.get_mut(&watch).filter(|_| name.is_wildcard() && self.all_answered) {
                watcher.synced = true;
                queue(watcher, turns, watch);
            }
            // A resource without content is not covered, even if other watchers still have its removal pending.
            for (of, known) in parts.iter_mut().filter(|(of, known)| known.value.is_some() && has(of)) {
                let Known { value, error, pending } = known;
                note(watchers, turns, watch, &Subject::new(of, value, error, unreachable), pending, Some(None));
            }
        }
        watch
    }

    /// Adds resources that are known by name and covered by a newly watched wildcard or collection.
    fn add_parts(&mut self, whole: &ResourceName) {
        let has = has(whole);
        let named = self.named.iter().filter(|(name, _)| !self.aliases.is_alias(name));
        let by_alias = self.aliases.targets().filter_map(|(name, alias)| Some((name, self.named.get(alias)?)));
        let known = named.chain(by_alias).filter(|(name, _)| *name != whole && has(name));
        let known = known.map(|(name, named)| (name.clone(), named.known.copy()));
        for (name, known) in known.collect::<Vec<_>>() {
            self.parts.entry(&name).or_insert_with(|| known);
        }
    }

    /// Removes a watcher. Returns its name if no other watcher has that name.
    pub(super) fn unwatch(&mut self, watch: WatchId) -> Option<ResourceName> {
        let Watcher { name, fresh, queued, .. } = self.watchers.remove(&watch)?;
        if queued {
            self.turns.retain(|&turn| turn != watch);
        }
        for of in fresh.keys() {
            let known = match *of == name {
                true => self.named.get_mut(of).map(|named| &mut named.known),
                false => self.parts.get_mut(of),
            };
            if let Some(known) = known {
                known.pending -= 1;
            }
            self.tidy(of);
        }
        let named = self.named.get_mut(&name)?;
        named.watchers.remove(&watch);
        if !named.watchers.is_empty() {
            return None;
        }
        self.named.remove(&name);
        self.all_answered &= !name.is_wildcard();
        self.aliases.unbind(&name);
        if self.globs.remove(name.as_str()) || name.is_wildcard() {
            let mut parts = core::mem::replace(&mut self.parts, SortedMap::new());
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

    // Inputs.

    /// Applies a change to a resource and to the aliases that stand for it.
    pub(super) fn change(&mut self, name: &ResourceName, change: &Change<T>) {
        let gone = matches!(change, Change::Gone(_));
        self.change_own(name, change);
        if gone {
            self.aliases.lose(name);
        }
        for alias in self.aliases.of(name, gone) {
            self.change_alias(&alias, change);
        }
    }

    /// Applies a change to a resource under its own name.
    fn change_own(&mut self, name: &ResourceName, change: &Change<T>) {
        // No wildcard or collection covers an alias.
        if self.is_part(name) && !self.aliases.is_alias(name) {
            self.change_part(name, change);
        }
        self.change_named(name, change);
    }

    /// Applies a change for the watchers of the wildcard and the collection that cover this name.
    fn change_part(&mut self, name: &ResourceName, change: &Change<T>) {
        let known = match change {
            Change::Fine => self.parts.get_mut(name).filter(|known| known.error.is_some()),
            _ => Some(self.parts.entry(name).or_default()),
        };
        if let Some(changed) = known.and_then(|known| known.change(change)) {
            self.note_part(name, changed);
        }
    }

    /// Applies content while the wildcard is watched, and nothing else.
    fn put_part(&mut self, name: &ResourceName, value: T) {
        let Self { watchers, named, parts, turns, unreachable, .. } = self;
        let known = parts.entry(name).or_default();
        let Some(changed) = known.put(value) else { return };
        let Known { value, error, pending } = known;
        let subject = Subject::new(name, value, error, unreachable);
        let all = named.only().into_iter().flat_map(|(_, all)| &all.watchers);
        all.for_each(|&watch| note(watchers, turns, watch, &subject, pending, changed.clone()));
    }

    /// Applies a change for the watchers of this name.
    fn change_named(&mut self, name: &ResourceName, change: &Change<T>) {
        let changed = self.named.get_mut(name).and_then(|named| named.known.change(change));
        changed.into_iter().for_each(|changed| self.note_named(name, changed));
    }

    /// Applies a change of a resource to one of its aliases.
    fn change_alias(&mut self, alias: &ResourceName, change: &Change<T>) {
        if matches!(change, Change::Gone(_)) {
            self.aliases.unbind(alias);
        }
        self.change_named(alias, change);
    }

    /// Begins an update that removes these resources.
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

    /// Applies a resource of an update, and binds the watched aliases that stand for it.
    pub(super) fn put(&mut self, name: &ResourceName, aliases: &[ResourceName], value: T) {
        if aliases.is_empty() && self.is_all_the_wildcard() {
            return self.put_part(name, value);
        }
        self.came(name);
        self.aliases.unbind(name);
        aliases.iter().for_each(|alias| self.aliases.bind(alias, name));
        self.change(name, &Change::Value(value));
    }

    /// Applies the rejection of a resource: `Gone` or `Error`.
    pub(super) fn reject(&mut self, name: &ResourceName, aliases: &[ResourceName], change: &Change<T>) {
        let known = self.aliases.of(name, false);
        self.change(name, change);
        for alias in aliases.iter().filter(|alias| !known.contains(alias)) {
            self.change_alias(alias, change);
        }
    }

    /// Records that an alias stands for a resource of an update, or is itself the name of one.
    pub(super) fn moves(&mut self, alias: &ResourceName, to: Option<&ResourceName>) {
        self.aliases.leave(alias, to);
    }

    /// Records a removal by an error that the server reports, before the update removes the resource.
    pub(super) fn remove_for(&mut self, name: &ResourceName, why: Status) {
        self.note_removed(name, &why);
        self.change(name, &Change::Gone(why));
    }

    /// Records a removal by an update, unless the resource is removed already. A removal after an error, or by a
    /// dropped rejection, keeps that reason.
    pub(super) fn remove(&mut self, name: &ResourceName, drops: bool) {
        let known = if self.aliases.is_alias(name) { self.parts.get(name) } else { self.known(name.as_str()) };
        let there = known.is_some_and(|known| known.value.is_some());
        let why = known.and_then(|known| known.reason(drops)).unwrap_or_else(gone);
        if there || !self.removed.contains_key(name) {
            self.note_removed(name, &why);
        }
        if there {
            self.change_own(name, &Change::Gone(why));
            self.aliases.unbind(name);
        } else if self.removed.get(name).is_some_and(|removed| !removed.aliases.is_empty()) {
            // The resource was known by an alias that stands for nothing: a later watcher of its name has no state yet.
            let unknown = |known: &&Known<T>| known.value.is_none() && known.error.is_none();
            if self.named.get(name).map(|named| &named.known).filter(unknown).is_some() {
                self.change_named(name, &Change::Gone(why));
            }
        }
        for alias in self.aliases.of(name, true) {
            let known = self.named.get(&alias).map(|named| &named.known);
            let why = known.and_then(|known| known.reason(drops || self.aliases.has_left(&alias)));
            self.change_alias(&alias, &Change::Gone(why.unwrap_or_else(gone)));
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

    /// Clears the error of the collection that covers new content.
    fn came(&mut self, name: &ResourceName) {
        if let Some(glob) = self.globs.of(name.as_str()).cloned() {
            self.change(&glob, &Change::Fine);
        }
    }

    /// Returns whether the server has answered the wildcard since it is watched.
    pub(super) fn is_synced(&self) -> bool {
        self.all_answered
    }

    /// Records an answer to the wildcard: its watchers are told after the events that are pending.
    pub(super) fn synced(&mut self) {
        self.all_answered = self.named.contains_key(WILDCARD);
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
        // A resource's own error takes precedence.
        let other = |name: &&ResourceName| before.error(name.as_str()) != self.unreachable.error(name.as_str());
        let names = |known: &mut dyn Iterator<Item = (&ResourceName, &Known<T>)>| -> Vec<ResourceName> {
            let others = known.filter(|(_, known)| known.error.is_none()).map(|(name, _)| name);
            others.filter(other).cloned().collect()
        };
        let named = names(&mut self.named.iter().map(|(name, named)| (name, &named.known)));
        let parts = names(&mut self.parts.iter());
        named.iter().for_each(|name| self.note_named(name, None));
        parts.iter().for_each(|name| self.note_part(name, None));
    }

    /// Notes a possible event for each watcher of a name, with the previous content if that is known to have changed.
    fn note_named(&mut self, name: &ResourceName, changed: Option<Option<T>>) {
        let Self { watchers, named, turns, unreachable, .. } = self;
        let Some(Named { known, watchers: all }) = named.get_mut(name) else { return };
        let Known { value, error, pending } = known;
        let subject = Subject::new(name, value, error, unreachable);
        all.iter().for_each(|&watch| note(watchers, turns, watch, &subject, pending, changed.clone()));
    }

    /// Notes a possible event for each watcher of a wildcard or collection that covers the name.
    fn note_part(&mut self, name: &ResourceName, changed: Option<Option<T>>) {
        let Self { watchers, named, parts, globs, turns, unreachable, .. } = self;
        let Some(Known { value, error, pending }) = parts.get_mut(name) else { return };
        let subject = Subject::new(name, value, error, unreachable);
        // A resource without content and without error is not covered.
        if subject.value.is_some() || subject.error.is_some() {
            let [all, collection] = wholes(named, globs, name).map(|whole| whole.map_or(&NOBODY, |of| &of.watchers));
            all.union(collection).for_each(|&watch| note(watchers, turns, watch, &subject, pending, changed.clone()));
        }
        if subject.value.is_none() {
            self.tidy(name);
        }
    }

    /// Forgets a covered resource that has no content, no watcher by name and no pending event.
    fn tidy(&mut self, name: &ResourceName) {
        let done = |known: &Known<T>| known.value.is_none() && !self.is_watched(name) && known.pending == 0;
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

/// Returns a test for names that this wildcard or collection covers.
fn has(whole: &ResourceName) -> impl Fn(&ResourceName) -> bool {
    let parts = Parts::of(whole.as_str()).filter(|_| whole.is_glob());
    move |of| whole.is_wildcard() || parts.as_ref().is_some_and(|parts| parts.has(of.as_str()))
}

fn gone() -> Status {
    Status::new(Code::NotFound, "the server removed the resource")
}
