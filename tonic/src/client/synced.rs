//! The types whose wildcard the server has answered, and the callers that wait for them.

use std::collections::BTreeSet;

use tokio::sync::oneshot;
use xds_machine::TypeUrl;
use xds_machine::client;
use xds_machine::servers::Action;

#[derive(Default)]
pub(super) struct Synced {
    types: BTreeSet<TypeUrl>,
    /// The types whose answer waits for its verdict.
    unjudged: BTreeSet<TypeUrl>,
    waiting: Vec<Waiting>,
}

/// A caller, and the types that it waits for.
struct Waiting {
    types: Vec<TypeUrl>,
    reply: oneshot::Sender<()>,
}

impl Synced {
    pub(super) fn wait(&mut self, types: Vec<TypeUrl>, reply: oneshot::Sender<()>) {
        self.waiting.push(Waiting { types, reply });
        self.wake();
    }

    pub(super) fn note_action(&mut self, action: &Action) {
        let Action::Client { action, .. } = action else { return };
        match action {
            client::Action::Apply(update) if update.answers_wildcard() => {
                self.unjudged.insert(update.type_url().clone());
            }
            client::Action::Synced { type_url, answers_wildcard: true } => self.insert(type_url.clone()),
            _ => {}
        }
    }

    pub(super) fn note_verdict(&mut self, type_url: &TypeUrl) {
        if let Some(type_url) = self.unjudged.take(type_url) {
            self.insert(type_url);
        }
    }

    /// Notes that nothing of a type is watched any more.
    pub(super) fn forget(&mut self, type_url: &TypeUrl) {
        self.types.remove(type_url);
        self.unjudged.remove(type_url);
    }

    fn insert(&mut self, type_url: TypeUrl) {
        if self.types.insert(type_url) {
            self.wake();
        }
    }

    /// Answers the callers whose types are complete, and drops those that do not wait any more.
    fn wake(&mut self) {
        let Self { types, waiting, .. } = self;
        let is_done = |of: &Waiting| of.reply.is_closed() || of.types.iter().all(|of| types.contains(of));
        let (done, rest) = std::mem::take(waiting).into_iter().partition(is_done);
        *waiting = rest;
        let done: Vec<Waiting> = done;
        done.into_iter().for_each(|done| _ = done.reply.send(()));
    }
}
