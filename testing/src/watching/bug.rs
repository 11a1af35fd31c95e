//! The layer, and faulty layers with one defect each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use xds_machine::client::{Action, Resource, Verdict};
use xds_machine::watch::{Event, News, Subscribe, WatchId, Watches};
use xds_machine::{ResourceName, Status, TypeUrl};

/// A defect of a layer of watchers. The check must find each.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Bug {
    /// A late watcher waits for the next change (envoy#47302).
    StarvesLate,
    /// A late watcher does not receive the ambient error of a held resource.
    HidesErrorFromLate,
    /// Queues events, which become outdated.
    QueuesEvents,
    /// Reports a resource again without a change.
    TellsEqual,
    /// An error replaces the held content, as in tonic's client.
    ReplacesByError,
    /// The verdict is given when the first watcher has finished.
    WaitsForOne,
    /// The verdict waits for a watcher that left.
    WaitsForTheGone,
    /// The first watcher that leaves unsubscribes for all.
    UnsubscribesEarly,
    /// The last watcher that leaves does not unsubscribe.
    NeverUnsubscribes,
    /// The server's return is not reported.
    StaysAway,
}

/// The layer. Its inputs and outputs pass through here, to be modified.
#[derive(Clone, Hash)]
pub(super) struct Layer {
    pub watches: Watches<u8>,
    pub bug: Option<Bug>,
    /// Events to return first.
    queue: VecDeque<Event<u8>>,
    by_name: BTreeMap<ResourceName, BTreeSet<WatchId>>,
    muted: BTreeSet<WatchId>,
    /// The watchers that do not receive an error.
    deaf: BTreeSet<WatchId>,
}

/// A target that ignores subscriptions.
struct Nothing;

impl Subscribe for Nothing {
    fn subscribe(&mut self, _: &TypeUrl, _: ResourceName) -> Result<(), xds_machine::Misuse> {
        Ok(())
    }

    fn unsubscribe(&mut self, _: &TypeUrl, _: &ResourceName) {}
}

impl Layer {
    pub(super) fn new(watches: Watches<u8>) -> Self {
        let (by_name, muted, deaf) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { watches, bug: None, queue: VecDeque::new(), by_name, muted, deaf }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    pub(super) fn watch(&mut self, client: &mut impl Subscribe, name: &ResourceName) -> WatchId {
        let watch = self.watches.watch(client, name.clone()).expect("a name");
        let late = !self.by_name.entry(name.clone()).or_default().is_empty();
        self.by_name.entry(name.clone()).or_default().insert(watch);
        if late && self.has(Bug::StarvesLate) {
            while self.watches.poll_watch(watch).is_some() {
                self.watches.handle_done(watch);
            }
        }
        if late && self.has(Bug::HidesErrorFromLate) && self.watches.error(name.as_str()).is_some() {
            self.deaf.insert(watch);
        }
        watch
    }

    pub(super) fn unwatch(&mut self, client: &mut impl Subscribe, watch: WatchId) {
        let (name, watchers) = self.by_name.iter_mut().find(|(_, of)| of.contains(&watch)).expect("a watcher");
        watchers.remove(&watch);
        let (name, last) = (name.clone(), watchers.is_empty());
        if self.has(Bug::WaitsForTheGone) && !last {
            self.muted.insert(watch);
            return;
        }
        if self.has(Bug::UnsubscribesEarly) {
            client.unsubscribe(&self.watches.type_url().clone(), &name);
        }
        if self.has(Bug::NeverUnsubscribes) {
            return self.watches.unwatch(&mut Nothing, watch);
        }
        for muted in std::mem::take(&mut self.muted) {
            self.watches.unwatch(client, muted);
        }
        self.watches.unwatch(client, watch);
    }

    pub(super) fn handle_action(
        &mut self,
        action: Action,
        decode: impl FnMut(Resource<'_>) -> Result<u8, String>,
    ) -> Option<Action> {
        let names: Vec<ResourceName> = match &action {
            Action::Apply(update) => update.resources().map(|resource| resource.name().clone()).collect(),
            _ => Vec::new(),
        };
        let had: Vec<_> = names.into_iter().map(|name| (self.watches.get(name.as_str()).copied(), name)).collect();
        let other = self.watches.handle_action(action, decode);
        for (before, name) in had {
            let Some(content) = before.filter(|before| self.watches.get(name.as_str()) == Some(before)) else {
                continue;
            };
            if self.has(Bug::TellsEqual) && self.watches.error(name.as_str()).is_none() {
                for &watch in self.by_name.get(&name).into_iter().flatten() {
                    let news = News::Changed(Ok(content));
                    self.queue.push_back(Event::new(watch, name.clone(), news));
                }
            }
        }
        if self.has(Bug::QueuesEvents) {
            self.queue.extend(std::iter::from_fn(|| self.watches.poll_event()));
        }
        other
    }

    pub(super) fn handle_done(&mut self, watch: WatchId) {
        self.watches.handle_done(watch);
        if self.has(Bug::WaitsForOne) {
            for &other in self.by_name.values().flatten().filter(|other| **other != watch) {
                self.watches.handle_done(other);
            }
        }
    }

    pub(super) fn handle_unreachable(&mut self, status: Status) {
        self.watches.handle_unreachable(status);
    }

    pub(super) fn handle_reachable(&mut self) {
        if !self.has(Bug::StaysAway) {
            self.watches.handle_reachable();
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<Event<u8>> {
        let mut next = || self.queue.pop_front().or_else(|| self.watches.poll_event());
        let mut event = next()?;
        let beside = |event: &Event<u8>| matches!(event.news, News::Ambient(_));
        while self.muted.contains(&event.watch) || (self.deaf.contains(&event.watch) && beside(&event)) {
            event = next()?;
        }
        Some(self.spoil(event))
    }

    pub(super) fn poll_watch(&mut self, watch: WatchId) -> Option<Event<u8>> {
        let queued = self.queue.iter().position(|event| event.watch == watch).and_then(|at| self.queue.remove(at));
        let event = queued.or_else(|| self.watches.poll_watch(watch))?;
        Some(self.spoil(event))
    }

    fn spoil(&self, event: Event<u8>) -> Event<u8> {
        match event.news {
            News::Ambient(Some(error)) if self.has(Bug::ReplacesByError) => {
                Event::new(event.watch, event.name, News::Changed(Err(error)))
            }
            _ => event,
        }
    }

    pub(super) fn poll_verdict(&mut self) -> Option<Verdict> {
        self.watches.poll_verdict()
    }
}
