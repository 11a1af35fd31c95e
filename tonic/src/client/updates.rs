//! Types as a whole: the machine's actions, and the verdicts on its updates.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc::{Receiver, UnboundedSender};
use tokio::sync::oneshot;
use xds_machine::client::Verdict;
use xds_machine::{Misuse, ResourceName, TypeUrl};

use super::actor::{Command, Owner};
use super::state::Report;
use super::watch::WatchError;

/// The machine's own actions: for a program that follows references from type to type, that validates several
/// resources together, or that logs what happens. Programs that need single resources
/// [watch](super::XdsClient::watch) them.
///
/// A stream of [`Report`]s: those of the types that are subscribed to here, and those about servers and about types
/// without a recipient. Every update needs a [`verdict`](Self::verdict); the next update of its
/// type waits for that verdict. An update that is dropped without one, as by a match arm that ignores it, is rejected: the
/// server receives a NACK that says so. A program that does not read holds back all servers, by flow control. Dropping
/// this unsubscribes from everything.
#[must_use = "dropped updates are unsubscribed from"]
#[derive(Debug)]
pub struct Updates {
    reports: Receiver<Report>,
    owner: Owner,
    commands: UnboundedSender<Command>,
}

impl Updates {
    pub(super) fn new(reports: Receiver<Report>, owner: Owner, commands: UnboundedSender<Command>) -> Self {
        Self { reports, owner, commands }
    }

    /// Subscribes to resources of a type, in one request. [`WILDCARD`](xds_machine::WILDCARD) stands for all.
    ///
    /// Cancel safety: a call that was polled and then dropped takes effect; only its result is lost.
    ///
    /// # Errors
    ///
    /// If a name can't be subscribed to, the type is in use elsewhere or has no service of its own, or the client is
    /// closed; then nothing is subscribed to.
    pub async fn subscribe(
        &self,
        type_url: impl Into<TypeUrl>,
        names: impl IntoIterator<Item = impl Into<ResourceName>>,
    ) -> Result<(), WatchError> {
        let (reply, answer) = oneshot::channel();
        let names = names.into_iter().map(Into::into).collect();
        self.send(Command::Subscribe { owner: self.owner, type_url: type_url.into(), names, reply });
        answer.await.unwrap_or(Err(WatchError::Closed))
    }

    /// Unsubscribes from resources of a type. Names that are not subscribed to are ignored.
    pub fn unsubscribe(&self, type_url: impl Into<TypeUrl>, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        let names = names.into_iter().map(Into::into).collect();
        self.send(Command::Unsubscribe { owner: self.owner, type_url: type_url.into(), names });
    }

    /// Answers an update. The response is acknowledged, or rejected if the verdict has rejections.
    ///
    /// Cancel safety: a call that was polled and then dropped takes effect; only its result is lost.
    ///
    /// # Errors
    ///
    /// If no update waits for this verdict, for example because the update has a verdict already.
    pub async fn verdict(&self, verdict: Verdict) -> Result<(), Misuse> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Verdict { owner: self.owner, verdict, reply });
        // A closed client has no server to answer.
        answer.await.unwrap_or(Ok(()))
    }

    /// Waits for the next report. Returns `None` once the client is closed.
    ///
    /// Cancel safety: no report is lost if the call is dropped.
    pub async fn next(&mut self) -> Option<Report> {
        self.reports.recv().await
    }

    fn send(&self, command: Command) {
        // A closed client drops the command, and with it the sender of the reply.
        _ = self.commands.send(command);
    }
}

impl Stream for Updates {
    type Item = Report;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Report>> {
        self.reports.poll_recv(cx)
    }
}

impl Drop for Updates {
    fn drop(&mut self) {
        self.send(Command::Leave { owner: self.owner });
    }
}
