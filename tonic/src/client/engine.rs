//! The machine of several servers, with the streams to them.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::uri::PathAndQuery;
use tokio::time;
use xds_machine::client::Variant;
use xds_machine::proto::Wire;
use xds_machine::servers::{self, Action, ServerId, Servers};
use xds_machine_driver::Runtime as _;
use xds_machine_driver::client::{Connector, Event, LinkState, Links};

use super::connect::{Dial, StreamError};
use super::inbound::{Responses, open};
use super::outbound::{Requests, SendError};
use super::state::{Phase, Report, ServerState};
use crate::TokioRuntime;

/// How to reach the servers.
#[derive(Clone)]
pub(super) struct Dials {
    pub(super) servers: Arc<[Mutex<Box<dyn Dial>>]>,
    pub(super) limit: usize,
}

/// The aggregated streams of all servers, or those of one type.
pub(super) struct Engine<V: Variant + Wire> {
    pub(super) servers: Servers<V>,
    pub(super) links: Links<V, Streams, TokioRuntime>,
    pub(super) type_url: Option<&'static str>,
    /// The servers that can't be reached, by authority, for watchers of types that are watched later.
    pub(super) unreachable: BTreeMap<Option<Arc<str>>, ServerId>,
    runtime: TokioRuntime,
    /// The servers of the streams whose headers have arrived since the last report.
    opened: Arc<Mutex<Vec<ServerId>>>,
    errors: Vec<Option<String>>,
}

/// Opens the streams of one method.
pub(super) struct Streams {
    dials: Dials,
    path: PathAndQuery,
    opened: Arc<Mutex<Vec<ServerId>>>,
}

type Halves<V> = (Responses<V>, Requests<V>);

impl<V: Variant + Wire> Connector<V> for Streams {
    type Inbound = Responses<V>;
    type Outbound = Requests<V>;
    type Connecting = Pin<Box<dyn Future<Output = Result<Halves<V>, StreamError>> + Send>>;
    type Error = StreamError;
    type SinkError = SendError;

    fn connect(&mut self, server: ServerId) -> Self::Connecting {
        let dialing = self.dials.servers[server.0].lock().unwrap_or_else(PoisonError::into_inner).dial();
        let (path, limit, opened) = (self.path.clone(), self.dials.limit, self.opened.clone());
        Box::pin(async move {
            let note = move || opened.lock().unwrap_or_else(PoisonError::into_inner).push(server);
            Ok(open(dialing.await?, path, limit, note))
        })
    }

    fn random(&mut self) -> u64 {
        fastrand::u64(..)
    }
}

impl<V: Variant + Wire> Engine<V> {
    pub(super) fn new(
        servers: Servers<V>,
        dials: Dials,
        path: PathAndQuery,
        type_url: Option<&'static str>,
        runtime: TokioRuntime,
    ) -> Self {
        let opened = Arc::default();
        let errors = vec![None; dials.servers.len()];
        let links = Links::new(Streams { dials, path, opened: Arc::clone(&opened) }, runtime);
        Self { servers, links, type_url, unreachable: BTreeMap::new(), runtime, opened, errors }
    }

    /// Drives the streams as far as possible. Returns the reports of them; the machine may have actions too.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Vec<Report>> {
        let polled = self.links.poll(cx, &mut self.servers);
        let opened = std::mem::take(&mut *self.opened.lock().unwrap_or_else(PoisonError::into_inner));
        let type_url = self.type_url;
        let mut reports: Vec<_> = opened.into_iter().map(|server| Report::Opened { server, type_url }).collect();
        let (server, reason, again) = match polled {
            Poll::Pending if reports.is_empty() => return Poll::Pending,
            Poll::Ready(Event::Ended { server, ended, again }) => (server, ended.reason.to_string(), again),
            Poll::Ready(Event::Closed(server)) => {
                let again = self.servers.next_attempt(server);
                let reason = match again {
                    Some(_) => "the server has to be told anew what is here",
                    None => "the server is not used any more",
                };
                (server, reason.to_string(), again)
            }
            Poll::Ready(Event::Response(server)) => {
                self.errors[server.0] = None;
                return Poll::Ready(reports);
            }
            _ => return Poll::Ready(reports),
        };
        self.errors[server.0] = Some(reason.clone());
        let again_in = again.map(|again| again.saturating_since(self.runtime.now()));
        reports.push(Report::Closed { server, type_url, reason, again_in });
        Poll::Ready(reports)
    }

    /// Returns the next action, and notes which servers are unreachable.
    pub(super) fn poll_action(&mut self) -> Option<Action> {
        let action = self.servers.poll_action()?;
        match &action {
            Action::Unreachable { authority, server } => _ = self.unreachable.insert(authority.clone(), *server),
            Action::Reachable { authority } => _ = self.unreachable.remove(authority),
            _ => {}
        }
        Some(action)
    }

    /// Returns the state of each server.
    pub(super) fn states(&self) -> impl Iterator<Item = ServerState> {
        let now = (time::Instant::now(), self.runtime.now());
        self.errors.iter().enumerate().map(move |(server, last_error)| {
            let server = ServerId(server);
            let phase = match self.links.state(server) {
                Some(LinkState::Connecting) => Phase::Connecting,
                Some(LinkState::Open) => Phase::Connected,
                Some(LinkState::Answered) => Phase::Answering,
                None => match self.servers.next_attempt(server) {
                    Some(at) => Phase::Waiting(now.0 + at.saturating_since(now.1)),
                    None => Phase::Unused,
                },
            };
            ServerState { server, type_url: self.type_url, phase, last_error: last_error.clone() }
        })
    }
}

/// Returns the type of an action; `None` if it is about servers.
pub(super) fn type_of(action: &Action) -> Option<&xds_machine::TypeUrl> {
    match action {
        servers::Action::Client { action, .. } => Some(action.type_url()),
        _ => None,
    }
}
