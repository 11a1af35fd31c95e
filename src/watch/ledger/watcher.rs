//! A watcher, and the notes of its pending events.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::event::WatchId;
use super::super::known::{Fresh, Named, due};
use super::super::sorted::{Entry, SortedMap};
use super::super::unreachable::Unreachable;
use crate::error::Status;
use crate::globs::Globs;
use crate::name::{ResourceName, WILDCARD};

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Watcher<T> {
    pub(super) name: ResourceName,
    /// The names with pending events, and no others.
    pub(super) fresh: SortedMap<ResourceName, Fresh<T>>,
    /// The errors that the watcher received last, as ambient errors or instead of content.
    pub(super) errors: BTreeMap<ResourceName, Status>,
    pub(super) synced: bool,
    /// The watcher is in `turns`.
    pub(super) queued: bool,
    /// The number of events that the watcher has received and not finished.
    pub(super) unfinished: usize,
}

/// The watchers of a wildcard or collection that is not watched.
pub(super) static NOBODY: BTreeSet<WatchId> = BTreeSet::new();

/// Returns the wildcard and the collection, if these are watched and cover the name.
pub(super) fn wholes<'a, T>(
    named: &'a SortedMap<ResourceName, Named<T>>,
    globs: &Globs,
    name: &ResourceName,
) -> [Option<&'a Named<T>>; 2] {
    let all = named.get(WILDCARD).filter(|_| !name.is_wildcard());
    let collection = globs.of(name.as_str()).and_then(|glob| named.get(glob));
    [all, collection]
}

/// The subject of an event.
pub(super) struct Subject<'a, T> {
    name: &'a ResourceName,
    pub(super) value: Option<&'a T>,
    pub(super) error: Option<&'a Status>,
}

impl<'a, T> Subject<'a, T> {
    /// Makes a subject. A resource's own error takes precedence over that of its servers.
    pub(super) fn new(
        name: &'a ResourceName,
        value: &'a Option<T>,
        error: &'a Option<Box<Status>>,
        unreachable: &'a Unreachable,
    ) -> Self {
        let error = error.as_deref().or_else(|| unreachable.error(name.as_str()));
        Self { name, value: value.as_ref(), error }
    }
}

/// Notes a pending event for a watcher, or that none is pending any more.
pub(super) fn note<T: PartialEq>(
    watchers: &mut BTreeMap<WatchId, Watcher<T>>,
    turns: &mut VecDeque<WatchId>,
    watch: WatchId,
    &Subject { name, value, error }: &Subject<'_, T>,
    pending: &mut usize,
    changed: Option<Option<T>>,
) {
    let Some(watcher) = watchers.get_mut(&watch) else { return };
    let sent = watcher.errors.get(name);
    let is_due = |fresh: &Fresh<T>| due(name, value, error, fresh, sent).is_some();
    match watcher.fresh.entry(name) {
        Entry::Occupied(mut entry) => {
            let fresh = entry.get_mut();
            // The content last sent is the one before the first pending change.
            fresh.changed = fresh.changed.take().or(changed);
            if !is_due(fresh) {
                entry.remove();
                *pending -= 1;
                return;
            }
        }
        Entry::Vacant(entry) => {
            let fresh = Fresh { changed };
            if !is_due(&fresh) {
                return;
            }
            entry.insert(fresh);
            *pending += 1;
        }
    }
    queue(watcher, turns, watch);
}

pub(super) fn queue<T>(watcher: &mut Watcher<T>, turns: &mut VecDeque<WatchId>, watch: WatchId) {
    if !core::mem::replace(&mut watcher.queued, true) {
        turns.push_back(watch);
    }
}
