//! `--variant rest`: one poll for each `--subscribe`.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::LazyLock;
use std::task::Poll as Ready;

use examples::element::names;
use examples::reader::DESCRIPTORS;
use examples::references::{Follower, Target};
use serde_json::json;
use xds_machine::client::{self, Client, Rejection};
use xds_machine::csds::Clock;
use xds_machine::poll::{Action, Poll};
use xds_machine::{Instant, ResourceName, Sotw, TypeUrl, WILDCARD, service};
use xds_machine_tonic::client::{Polled, Poller};

use super::arguments::Arguments;
use super::http::{Http, Server};
use super::judge::{Judged, judge};
use super::status::{self, Status};
use super::{by_type, print, print_rejected};

/// Polls until the program ends.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), String> {
    LazyLock::force(&DESCRIPTORS); // not while the first poll waits
    let uri = arguments.server()?;
    let server = Server::new(&uri, &arguments.tls_files())?;
    let targets = arguments.targets();
    let mut program = Program {
        arguments,
        url: uri.to_string(),
        server,
        polls: Vec::new(),
        follower: arguments.follow.then(|| Follower::new(targets)),
        opened: 0,
        is_open: None,
        status: Status::open(arguments.csds.as_ref()).await?,
    };
    for (type_url, names) in arguments.subscriptions() {
        program.add(type_url, names, false)?;
    }
    program.run().await
}

/// A poll and how its last request ended.
struct Polling {
    poller: Poller<Http>,
    /// The clock of the poller's machine.
    clock: Clock,
    has_failed: bool,
    /// Whether the poll is for resources that other resources refer to.
    followed: bool,
}

struct Program<'a> {
    arguments: &'a Arguments,
    url: String,
    server: Server,
    polls: Vec<Polling>,
    follower: Option<Follower>,
    opened: u64,
    /// Whether the server answers; unknown at first.
    is_open: Option<bool>,
    status: Option<Status>,
}

impl Program<'_> {
    async fn run(&mut self) -> Result<(), String> {
        let mut first = 0;
        loop {
            let (polls, status) = (&mut self.polls, &mut self.status);
            let (at, polled) = poll_fn(|cx| {
                if let Some(status) = status {
                    while status.poll_answer(cx, || clients(polls)).is_ready() {}
                }
                for step in 0..polls.len() {
                    let at = (first + step) % polls.len(); // each poll has its turn
                    if let Ready::Ready(polled) = polls[at].poller.poll_next(cx) {
                        return Ready::Ready((at, polled));
                    }
                }
                Ready::Pending
            })
            .await;
            first = at;
            self.take(at, polled)?;
            if self.polls[at].poller.get().asked().is_some() {
                first = at + 1;
            }
        }
    }

    fn take(&mut self, at: usize, polled: Polled) -> Result<(), String> {
        match polled {
            Polled::Answered => {
                self.polls[at].has_failed = false;
                if self.is_open != Some(true) {
                    self.is_open = Some(true);
                    self.opened += 1;
                    print(json!({ "open": { "stream": self.opened, "server": self.url } }));
                }
                Ok(())
            }
            Polled::Action(Action::Failed { reason }) => {
                self.polls[at].has_failed = true;
                if self.is_open != Some(false) && self.polls.iter().all(|polling| polling.has_failed) {
                    self.is_open = Some(false);
                    let again = self.until_next();
                    let server = &self.url;
                    print(json!({ "close": { "reason": reason, "server": server, "again_in_ms": again } }));
                }
                Ok(())
            }
            Polled::Action(Action::Client(action)) => self.act(at, action),
            _ => Ok(()), // missing resources were printed before
        }
    }

    /// Returns the time until the next poll, in milliseconds. All polls have failed, so all wait.
    fn until_next(&self) -> u64 {
        let left = self.polls.iter().filter_map(|polling| polling.poller.until_next());
        left.min().map_or(0, |left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
    }

    fn act(&mut self, at: usize, action: client::Action) -> Result<(), String> {
        match action {
            client::Action::Apply(update) => self.apply(at, update, Vec::new()),
            client::Action::DoesNotExist { type_url, names } => {
                print_missing(&type_url, &names);
                Ok(())
            }
            client::Action::Expired { type_url, names: gone } => {
                print(json!({ "expired": { "type_url": type_url.as_str(), "names": names(&gone) } }));
                self.follow(gone.into_iter().map(|name| ((type_url.clone(), name), None)).collect())
            }
            client::Action::Rejected { type_url, faults, .. } => {
                // One line for a response, with the faults found by the machine and by this program.
                match self.polls[at].poller.ready() {
                    Some(Polled::Action(Action::Client(client::Action::Apply(update)))) => {
                        self.apply(at, update, faults)
                    }
                    other => {
                        print_rejected(&type_url, &faults);
                        other.map_or(Ok(()), |other| self.take(at, other))
                    }
                }
            }
            _ => Ok(()),
        }
    }

    fn apply(&mut self, at: usize, update: client::Update, faults: Vec<Rejection>) -> Result<(), String> {
        let type_url = update.type_url().clone();
        let Judged { line, changes, rejections } = judge(&update);
        line.into_iter().for_each(print);
        if !self.arguments.is_full_state(&type_url) {
            let interest = self.polls[at].poller.get().client().resources(&type_url).interest();
            let wanted = |name: &&ResourceName| interest.names().any(|wanted| wanted == *name);
            print_missing(&type_url, update.removed().iter().filter(wanted));
        }
        let all: Vec<Rejection> = faults.into_iter().chain(rejections.iter().cloned()).collect();
        print_rejected(&type_url, &all);
        if let Some(status) = &mut self.status {
            status.note_update(&update);
        }
        let id = update.client_id();
        self.polls[at].poller.verdict(update.reject(rejections.clone())).map_err(|error| error.to_string())?;
        if let Some(status) = &mut self.status {
            status.note_verdict((id, &type_url), &rejections, &clients(&self.polls));
        }
        self.follow(changes)
    }

    /// Polls for resources that are now referred to, and no longer for those that no longer are.
    fn follow(&mut self, changes: Vec<(Target, Option<BTreeSet<Target>>)>) -> Result<(), String> {
        let Some(follower) = &mut self.follower else { return Ok(()) };
        let (more, less) = follower.follow(changes);
        for (type_url, names) in by_type(more) {
            if service::rest_path(&type_url).is_some() {
                self.add(type_url, names, true)?;
            } else {
                eprintln!("xds_client: {type_url} can't be polled");
            }
        }
        for (type_url, names) in by_type(less) {
            let of_type = |polling: &&mut Polling| polling.followed && *polling.poller.get().type_url() == type_url;
            if let Some(polling) = self.polls.iter_mut().find(of_type) {
                polling.poller.unsubscribe(names);
            }
        }
        Ok(())
    }

    fn add(&mut self, type_url: TypeUrl, names: Vec<ResourceName>, followed: bool) -> Result<(), String> {
        let error = |error: xds_machine::Misuse| error.to_string();
        let of_type = |polling: &&mut Polling| polling.followed && *polling.poller.get().type_url() == type_url;
        if let Some(polling) = self.polls.iter_mut().find(of_type).filter(|_| followed) {
            return polling.poller.subscribe(names).map_err(error);
        }
        let config = self.arguments.poll_config(self.polls.len() as u64)?;
        let http = Http::new(self.server.clone(), config.request_timeout());
        let mut poll = Poll::new(config, type_url).map_err(error)?;
        poll.subscribe(names).map_err(error)?;
        self.polls.push(Polling {
            poller: Poller::new(poll, http),
            clock: status::clock(Instant::EPOCH),
            has_failed: false,
            followed,
        });
        Ok(())
    }
}

/// Returns the machines of the polls.
fn clients(polls: &[Polling]) -> Vec<(&Client<Sotw>, Clock)> {
    polls.iter().map(|polling| (polling.poller.get().client(), polling.clock)).collect()
}

fn print_missing<'a>(type_url: &TypeUrl, names: impl IntoIterator<Item = &'a ResourceName>) {
    for name in names.into_iter().filter(|name| *name != WILDCARD) {
        print(json!({ "missing": { "type_url": type_url.as_str(), "name": name.as_str() } }));
    }
}
