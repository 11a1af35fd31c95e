#![doc = include_str!("README.md")]

mod actor;
mod builder;
mod connect;
mod dial;
mod engine;
mod inbound;
mod load;
mod outbound;
mod poll;
mod raw;
mod state;
mod states;
mod status_service;
mod synced;
mod types;
mod updates;
mod watch;

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;
use xds_machine::csds::ClientConfig;
use xds_machine::{ResourceName, TypeUrl};

use self::actor::Command;
pub use self::builder::Builder;
pub use self::connect::{Connect, StreamError};
pub use self::dial::{Dial, Impatient, dial};
pub use self::load::{LoadBuilder, LoadEvent, LoadReporter};
pub use self::poll::{Polled, Poller, Post};
pub use self::state::{Dumped, Phase, Report, ServerState};
pub use self::states::States;
pub use self::status_service::{ClientStatusService, EncodedStatus, HasStatus, StatusRequest};
use self::types::Wanted;
pub use self::updates::Updates;
pub use self::watch::{Watch, WatchError, XdsResource};

/// The number of unread reports of an [`Updates`] beyond which the servers are held back.
const REPORTS: usize = 64;

/// A client of one or several servers, which runs in a task of its own. Clones are handles to the same client.
///
/// The task ends with [`close`](Self::close), or when all handles, [`Watch`]es and [`Updates`] are dropped; its streams
/// end with it.
#[derive(Clone, Debug)]
pub struct XdsClient {
    commands: UnboundedSender<Command>,
    states: States,
    /// The task, until one of the handles has joined it.
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl XdsClient {
    /// Begins to configure a client. The configuration has the node, time-outs, limits and the
    /// [dialect](xds_machine::client::Dialect).
    pub fn builder(config: xds_machine::client::Config) -> Builder {
        Builder::new(config)
    }

    /// Begins to configure a client whose servers are configured already, each for itself, as by a bootstrap file of
    /// gRPC. Add the connections: one [`server`](Builder::server) for each configured server, in the same order. The
    /// policy is that of the configuration. Returns `None` if there are no servers.
    pub fn builder_of(config: xds_machine::servers::Config) -> Option<Builder> {
        Builder::of(config)
    }

    /// Watches a resource by its name or an alias, all resources of a type ([`WILDCARD`](xds_machine::WILDCARD)), or
    /// those of a collection (`xdstp://../*`). Resources that are known already are news at once.
    ///
    /// # Errors
    ///
    /// If the name can't be watched, the type is in use in another form or has no service of its own, or the client is
    /// closed: see [`WatchError`].
    pub async fn watch<R: XdsResource>(&self, name: impl Into<ResourceName>) -> Result<Watch<R>, WatchError> {
        let (reply, answer) = oneshot::channel();
        let wanted = Wanted { name: name.into(), commands: self.commands.clone(), reply };
        self.send(Command::Watch(Box::new(wanted)));
        answer.await.unwrap_or(Err(WatchError::Closed))
    }

    /// Returns [`Updates`], for subscriptions to types as a whole: with the machine's actions, and a verdict on each
    /// update.
    ///
    /// # Errors
    ///
    /// If the client is closed.
    pub async fn updates(&self) -> Result<Updates, WatchError> {
        let (sender, reports) = mpsc::channel(REPORTS);
        let (reply, answer) = oneshot::channel();
        self.send(Command::Updates { reports: sender, commands: self.commands.downgrade(), reply });
        let owner = answer.await.map_err(|_| WatchError::Closed)?;
        Ok(Updates::new(reports, owner, self.commands.clone()))
    }

    /// Returns the states of all servers, in their order. Once the client has ended, these are the last ones, without
    /// streams.
    pub fn server_states(&self) -> Vec<ServerState> {
        self.states.get()
    }

    /// Returns the states of all servers as they change, to wait for one of them.
    pub fn states(&self) -> States {
        self.states.clone()
    }

    /// Waits until a server answers. Only a response proves that a server works, and the client sends requests only for
    /// watched resources: watch something first.
    ///
    /// Cancel safety: dropping the future ends the wait and nothing else.
    ///
    /// # Errors
    ///
    /// If the client is closed.
    pub async fn ready(&self) -> Result<(), WatchError> {
        let answers = |states: &[ServerState]| states.iter().any(|state| state.phase == Phase::Answering);
        self.states().until(answers).await.map(drop).ok_or(WatchError::Closed)
    }

    /// Waits until each of these types is complete: a server has answered its wildcard, and the answer has its verdict.
    /// For a program that must not start with half a table. Watch, or subscribe to, the wildcard of each type first. A
    /// [`Watch`] may not have returned all of it yet: its own sign is [`News::Synced`](xds_machine::watch::News::Synced).
    ///
    /// Cancel safety: dropping the future ends the wait and nothing else.
    ///
    /// # Errors
    ///
    /// If the client is closed.
    pub async fn synced(&self, types: impl IntoIterator<Item = impl Into<TypeUrl>>) -> Result<(), WatchError> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Synced { types: types.into_iter().map(Into::into).collect(), reply });
        answer.await.map_err(|_| WatchError::Closed)
    }

    /// Returns every resource of every server's client with its status, as for CSDS. Empty once the client is closed.
    pub async fn dump(&self) -> Vec<Dumped> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Dump(reply));
        answer.await.unwrap_or_default()
    }

    /// Returns the status of the client, as CSDS shows it: one item for each resource, of one moment. `contents`:
    /// whether the contents are shown, if the client [keeps](Builder::keep_contents) them. `None` once the client is
    /// closed.
    pub async fn status(&self, contents: bool) -> Option<ClientConfig> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Status { contents, reply });
        answer.await.ok()
    }

    async fn encoded_status(&self, request: StatusRequest) -> Option<EncodedStatus> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::EncodedStatus { request, reply });
        answer.await.ok()
    }

    /// Closes the client, for all handles, and waits until its task has ended. The client half-closes its streams, and
    /// the servers have a second to end them; streams that have not ended then are reset. Watches end after that.
    ///
    /// # Panics
    ///
    /// If the task has panicked, for example in the program's own decoder: with the same panic.
    pub async fn close(&self) {
        self.send(Command::Close);
        let mut task = self.task.lock().await;
        let Some(running) = task.as_mut() else { return };
        let ended = running.await;
        *task = None;
        if let Some(panic) = ended.err().and_then(|error| error.try_into_panic().ok()) {
            std::panic::resume_unwind(panic);
        }
    }

    fn send(&self, command: Command) {
        // A closed client drops the command, and with it the sender of the reply.
        _ = self.commands.send(command);
    }
}
