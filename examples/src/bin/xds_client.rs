//! A client that subscribes to resources of a control plane over ADS and prints each event as one line of JSON.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::error::Error;
use std::future::pending;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Write, stdout};
use std::pin::pin;
use std::process::exit;
use std::time::Duration;

use examples::arguments::Arguments;
use examples::codec::{Chunks, ClientCodec};
use examples::dial::{PATIENCE, dial};
use examples::element::names;
use examples::references::{Follower, Target, decode, references};
use http::uri::PathAndQuery;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant as Clock, sleep, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::transport::{Channel, Uri};
use tonic::{Request, Status, Streaming};
use xds_machine::client::{Action, Backoff, Client, Config, Rejection, Update, Variant};
use xds_machine::message::Node;
use xds_machine::proto::Wire;
use xds_machine::service::Method;
use xds_machine::{Delta, Instant, Sotw, TypeUrl};

/// The maximum reconnect delay, low enough to reach a server soon after it returns.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The maximum size of a response, in bytes; larger responses are refused.
const LONGEST_RESPONSE: usize = 1 << 28;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments = Arguments::read(std::env::args().skip(1)).unwrap_or_else(|error| {
        eprintln!("xds_client: {error}\n{}", Arguments::USAGE);
        exit(2)
    });
    let limit = arguments.limit.unwrap_or(Duration::MAX);
    let ends = if arguments.delta {
        timeout(limit, Program::<Delta>::new(arguments).run()).await
    } else {
        timeout(limit, Program::<Sotw>::new(arguments).run()).await
    };
    let Err(_) = ends;
    exit(0) // without waiting for a name that is being looked up
}

struct Program<V: Variant> {
    client: Client<V>,
    server: Uri,
    method: PathAndQuery,
    epoch: Clock,
    streams: u64,
    follower: Option<Follower>,
}

impl<V> Program<V>
where
    V: Wire + Variant,
{
    fn new(arguments: Arguments) -> Self {
        let method = Method { variant: V::VARIANT, type_url: None }.path().and_then(|path| path.parse().ok());
        let method = method.expect("the aggregated service has a path");
        let Arguments { server, node, dialect, subscribe, follow, .. } = arguments;
        let mut client = Client::new(Config::new(Node::new(node)).with_dialect(dialect));
        for (type_url, name) in &subscribe {
            client.resources_mut(type_url).subscribe([name.clone()]).expect("names were checked");
        }
        let follower = follow.then(|| Follower::new(subscribe));
        Self { client, server, method, epoch: Clock::now(), streams: 0, follower }
    }

    /// Opens one stream after the other, forever.
    async fn run(mut self) -> Infallible {
        let mut backoff = Backoff::grpc().with_max(LONGEST_WAIT);
        loop {
            let Err(reason) = self.stream(&mut backoff).await;
            self.client.handle_close();
            print(json!({ "close": { "reason": reason } }));
            let wait = backoff.next_delay(RandomState::new().build_hasher().finish());
            self.meanwhile(sleep(wait)).await;
        }
    }

    async fn stream(&mut self, backoff: &mut Backoff) -> Result<Infallible, String> {
        let server = self.server.clone();
        let (channel, heard) = self.meanwhile(dial(&server)).await.map_err(|error| explain(&error))?;
        let (requests, outbound) = mpsc::channel(1);
        let (mut opening, mut patience) =
            (pin!(open::<V>(channel, self.method.clone(), outbound)), pin!(sleep(PATIENCE)));
        let (mut inbound, mut writable, mut patient) = (None, true, true);
        self.client.handle_open();
        loop {
            self.act();
            if self.client.wants_new_stream() {
                return Err("the server has to be told anew what is here".into());
            }
            tokio::select! {
                // The first requests do not wait for the response headers: many servers send them only with the first
                // response.
                opened = &mut opening, if inbound.is_none() => {
                    inbound = Some(opened.map_err(|status| describe(&status))?);
                    self.streams += 1;
                    print(json!({ "open": { "stream": self.streams, "server": self.server.to_string() } }));
                }
                room = requests.reserve(), if writable && self.client.wants_transmit() => match room {
                    Ok(room) => if let Some(transmit) = self.client.poll_transmit() {
                        room.send(vec![V::encode_request(&transmit.request).into()]);
                        self.client.handle_sent(self.now(), transmit.sent);
                    },
                    Err(_) => writable = false, // the stream is about to say why
                },
                message = next(&mut inbound), if self.client.wants_response() => {
                    let response = message.map_err(|status| describe(&status))?;
                    let response = response.ok_or("the server ended the stream")?;
                    backoff.reset();
                    self.client.handle_response(self.now(), response).map_err(|error| error.to_string())?;
                }
                () = self.alarm() => self.client.handle_timeout(self.now()),
                () = &mut patience, if patient => {
                    patient = false;
                    if !heard.anything() {
                        return Err("the server accepts connections and is silent".into());
                    }
                }
            }
        }
    }

    /// Waits for an event other than those of the stream.
    async fn meanwhile<T>(&mut self, event: impl Future<Output = T>) -> T {
        let mut event = pin!(event);
        loop {
            self.act();
            tokio::select! {
                event = &mut event => return event,
                () = self.alarm() => self.client.handle_timeout(self.now()),
            }
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.client.poll_action() {
            match action {
                Action::Apply(update) => self.apply(update),
                Action::DoesNotExist { type_url, names } => names.iter().for_each(|name| {
                    print(json!({ "missing": { "type_url": type_url.as_str(), "name": name.as_str() } }));
                }),
                Action::Expired { type_url, names: gone } => {
                    print(json!({ "expired": { "type_url": type_url.as_str(), "names": names(&gone) } }));
                    self.follow(gone.into_iter().map(|name| ((type_url.clone(), name), None)).collect());
                }
                Action::Rejected { type_url, faults, .. } => print_rejected(&type_url, &faults),
                _ => {}
            }
        }
    }

    /// Checks an update resource by resource and applies the valid ones, which here means to print them.
    fn apply(&mut self, update: Update) {
        let type_url = update.type_url().clone();
        let (mut applied, mut changes, mut rejections) = (Vec::new(), Vec::new(), Vec::new());
        for resource in update.resources() {
            let (name, version, size) = (resource.name(), resource.version().as_str(), resource.body().len());
            match decode(&type_url, resource.body()) {
                Ok(message) => {
                    applied.push(json!({ "name": name.as_str(), "version": version, "size": size }));
                    let references = message.iter().flat_map(references).collect();
                    changes.push(((type_url.clone(), name.clone()), Some(references)));
                }
                Err(reason) => rejections.push(Rejection::new(name.clone(), reason)),
            }
        }
        changes.extend(update.removed().iter().map(|name| ((type_url.clone(), name.clone()), None)));
        if !changes.is_empty() {
            let (version, removed) = (update.version().as_str(), names(update.removed()));
            print(json!({ "apply": {
                "type_url": type_url.as_str(), "version": version, "resources": applied, "removed": removed,
            } }));
        }
        if !rejections.is_empty() {
            print_rejected(&type_url, &rejections);
        }
        self.client.handle_verdict(self.now(), update.reject(rejections)).expect("the update was polled just now");
        self.follow(changes);
    }

    /// Subscribes to resources that are now referred to, and unsubscribes from those that no longer are.
    fn follow(&mut self, changes: Vec<(Target, Option<BTreeSet<Target>>)>) {
        let Some(follower) = &mut self.follower else { return };
        let (more, less) = follower.follow(changes);
        for (type_url, name) in more {
            self.client.resources_mut(&type_url).subscribe([name]).expect("a reference has a name");
        }
        for (type_url, name) in less {
            self.client.resources_mut(&type_url).unsubscribe([name.as_str()]);
        }
    }

    fn now(&self) -> Instant {
        Instant::from_epoch(self.epoch.elapsed())
    }

    fn alarm(&self) -> impl Future<Output = ()> + use<V> {
        let due = self.client.poll_timeout().and_then(|due| self.epoch.checked_add(due.since_epoch()));
        async move {
            match due {
                Some(due) => sleep_until(due).await,
                None => pending().await,
            }
        }
    }
}

async fn open<V: Wire>(
    channel: Channel,
    method: PathAndQuery,
    requests: mpsc::Receiver<Chunks>,
) -> Result<Streaming<V::Response>, Status> {
    let mut grpc = Grpc::new(channel).max_decoding_message_size(LONGEST_RESPONSE);
    grpc.ready().await.map_err(|error| Status::unavailable(explain(&error)))?;
    let requests = Request::new(ReceiverStream::new(requests));
    Ok(grpc.streaming(requests, method, ClientCodec::<V>::default()).await?.into_inner())
}

async fn next<T>(inbound: &mut Option<Streaming<T>>) -> Result<Option<T>, Status> {
    match inbound {
        Some(inbound) => inbound.message().await,
        None => pending().await,
    }
}

fn describe(status: &Status) -> String {
    let message = status.message();
    let cause = status.source().map(explain).filter(|cause| !message.contains(cause.as_str()));
    format!("{:?}: {message}{}", status.code(), cause.map_or(String::new(), |cause| format!(": {cause}")))
}

/// Describes an error, with its cause if that adds information.
fn explain(error: &dyn Error) -> String {
    let text = error.to_string();
    match error.source().map(explain) {
        Some(cause) if !text.contains(&cause) => format!("{text}: {cause}"),
        _ => text,
    }
}

fn print_rejected(type_url: &TypeUrl, rejections: &[Rejection]) {
    let name = |rejection: &Rejection| rejection.name.as_ref().map(ToString::to_string);
    let resources = rejections.iter().map(|rejection| json!({ "name": name(rejection), "reason": rejection.reason }));
    print(json!({ "reject": { "type_url": type_url.as_str(), "resources": resources.collect::<Vec<_>>() } }));
}

fn print(line: Value) {
    let mut out = stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        exit(1); // nobody listens any more
    }
}
