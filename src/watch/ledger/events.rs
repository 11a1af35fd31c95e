//! The events of a ledger, made when a watcher asks for them.

use super::super::event::{Event, News, WatchId};
use super::super::known::{Due, due};
use super::Ledger;
use super::watcher::queue;
use crate::name::{ResourceName, WILDCARD};

impl<T: Clone + PartialEq> Ledger<T> {
    pub(in crate::watch) fn next(&mut self, waits: bool) -> Option<Event<T>> {
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

    /// Takes the next watcher with pending events out of the turns.
    pub(in crate::watch) fn next_ready(&mut self) -> Option<WatchId> {
        while let Some(watch) = self.turns.pop_front() {
            if let Some(watcher) = self.watchers.get_mut(&watch) {
                watcher.queued = false;
                if !watcher.fresh.is_empty() || watcher.synced {
                    return Some(watch);
                }
            }
        }
        None
    }

    pub(in crate::watch) fn next_of(&mut self, watch: WatchId, waits: bool) -> Option<Event<T>> {
        let (name, news) = self.news_of(watch)?;
        if waits {
            self.watchers.get_mut(&watch)?.unfinished += 1;
        }
        Some(Event { watch, name, news })
    }

    fn news_of(&mut self, watch: WatchId) -> Option<(ResourceName, News<T>)> {
        loop {
            let Self { watchers, named, parts, unreachable, .. } = self;
            let watcher = watchers.get_mut(&watch)?;
            let Some((name, fresh)) = watcher.fresh.first_mut() else {
                return core::mem::take(&mut watcher.synced).then(|| (WILDCARD.into(), News::Synced));
            };
            let known = match *name == watcher.name {
                true => named.get_mut(name).map(|named| &mut named.known),
                false => parts.get_mut(name),
            };
            let Some(known) = known else {
                watcher.fresh.pop_first();
                continue;
            };
            let error = known.error.as_deref().or_else(|| unreachable.error(name.as_str()));
            let due = due(name, known.value.as_ref(), error, fresh, watcher.errors.get(name));
            let news = match (&due, &known.value) {
                (Some(Due::Content), Some(value)) => {
                    watcher.errors.remove(name);
                    Some(News::Changed(Ok(value.clone())))
                }
                (Some(Due::Failure), _) => error.cloned().map(|error| News::Changed(Err(error))),
                (Some(Due::Error), _) => Some(News::Ambient(error.cloned())),
                _ => None,
            };
            let content = matches!(due, Some(Due::Content));
            fresh.changed = None;
            if content && error.is_some() {
                return Some((name.clone(), news?)); // and the error next
            }
            if let (false, Some(error)) = (content, error) {
                watcher.errors.insert(name.clone(), error.clone());
            } else {
                watcher.errors.remove(name);
            }
            known.pending -= 1;
            let is_there = known.value.is_some();
            let (name, _) = watcher.fresh.pop_first()?;
            if !is_there {
                self.tidy(&name);
            }
            if let Some(news) = news {
                return Some((name, news));
            }
        }
    }
}
