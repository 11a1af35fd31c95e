//! The task's end of [`Updates`](super::Updates).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::mpsc::error::SendError;
use tokio::sync::mpsc::{OwnedPermit, Sender, WeakUnboundedSender};
use xds_machine::client::{self, Update};
use xds_machine::servers::Action;
use xds_machine::{ResourceName, TypeUrl};

use super::actor::{Command, Owner};
use super::state::Report;

type Reserving = Pin<Box<dyn Future<Output = Result<OwnedPermit<Report>, SendError<()>>> + Send>>;

/// Lives as long as an update that the program was given: the task learns that no verdict will come.
struct Offered {
    owner: Owner,
    update: Option<Update>,
    commands: WeakUnboundedSender<Command>,
}

impl Drop for Offered {
    fn drop(&mut self) {
        if let (Some(update), Some(commands)) = (self.update.take(), self.commands.upgrade()) {
            _ = commands.send(Command::Dropped { owner: self.owner, update });
        }
    }
}

/// The subscriptions of one owner, and the reports for it.
pub(super) struct Raw {
    owner: Owner,
    commands: WeakUnboundedSender<Command>,
    reports: Sender<Report>,
    /// The reports that do not fit into the channel. No response is read while there are any, so the queue is short.
    waiting: VecDeque<Report>,
    room: Option<Reserving>,
    names: BTreeMap<TypeUrl, BTreeSet<ResourceName>>,
    /// The updates that wait for a verdict.
    updates: Vec<Update>,
}

impl Raw {
    pub(super) fn new(owner: Owner, reports: Sender<Report>, commands: WeakUnboundedSender<Command>) -> Self {
        let (names, updates) = (BTreeMap::new(), Vec::new());
        Self { owner, commands, reports, waiting: VecDeque::new(), room: None, names, updates }
    }

    pub(super) fn act(&mut self, action: Action) {
        let action = match action {
            Action::Client { server, action: client::Action::Apply(update) } => {
                self.updates.push(update.clone());
                let (owner, commands) = (self.owner, self.commands.clone());
                let offered = Offered { owner, update: Some(update.clone()), commands };
                Action::Client { server, action: client::Action::Apply(update.guarded_by(Arc::new(offered))) }
            }
            other => other,
        };
        self.report(Report::Action(action));
    }

    pub(super) fn report(&mut self, report: Report) {
        self.waiting.push_back(report);
        self.fill();
    }

    /// Moves reports into the channel as long as it has room.
    fn fill(&mut self) {
        while let Some(report) = self.waiting.pop_front() {
            match self.reports.try_reserve() {
                Ok(room) => room.send(report),
                Err(_) => {
                    self.waiting.push_front(report);
                    return;
                }
            }
        }
    }

    /// Returns `Ready` once nothing waits for room in the channel.
    pub(super) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.fill();
            if self.waiting.is_empty() {
                return Poll::Ready(());
            }
            let reports = &self.reports;
            let room = self.room.get_or_insert_with(|| Box::pin(reports.clone().reserve_owned()));
            let room = ready!(room.as_mut().poll(cx));
            self.room = None;
            match room {
                Ok(room) => {
                    if let Some(report) = self.waiting.pop_front() {
                        room.send(report);
                    }
                }
                // The owner is about to leave.
                Err(_) => self.waiting.clear(),
            }
        }
    }

    pub(super) fn subscribed(&mut self, type_url: TypeUrl, names: Vec<ResourceName>) {
        self.names.entry(type_url).or_default().extend(names);
    }

    /// Returns those of the names that this owner had subscribed to.
    pub(super) fn unsubscribed(&mut self, type_url: &TypeUrl, names: &[ResourceName]) -> Vec<ResourceName> {
        let Some(own) = self.names.get_mut(type_url) else { return Vec::new() };
        names.iter().filter(|name| own.remove(*name)).cloned().collect()
    }

    /// Returns whether nothing of a type is subscribed to, and nothing of it waits for a verdict.
    pub(super) fn is_done(&self, type_url: &TypeUrl) -> bool {
        self.names.get(type_url).is_none_or(BTreeSet::is_empty) && !self.awaits_verdict(type_url)
    }

    /// Returns whether an update of a type waits for the verdict of this owner.
    pub(super) fn awaits_verdict(&self, type_url: &TypeUrl) -> bool {
        self.updates.iter().any(|update| update.type_url() == type_url)
    }

    /// Returns whether this update waits for the verdict of this owner.
    pub(super) fn awaits_verdict_on(&self, update: &Update) -> bool {
        self.updates.contains(update)
    }

    pub(super) fn judged(&mut self, type_url: &TypeUrl) {
        // The machine has one update of a type out at a time.
        self.updates.retain(|update| update.type_url() != type_url);
    }

    /// Returns the names to unsubscribe from, and the updates without a verdict.
    pub(super) fn into_parts(self) -> (BTreeMap<TypeUrl, BTreeSet<ResourceName>>, Vec<Update>) {
        (self.names, self.updates)
    }
}
