//! A client that subscribes to resources of a control plane over ADS, over REST or from files, and prints each event as
//! one line of JSON.

mod arguments;
mod file;
mod http;
mod judge;
mod loads;
mod rest;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::future::{pending, ready};
use std::io::{Write, stdout};
use std::process::exit;
use std::time::Duration;

use arguments::{Arguments, Variant};
use examples::element::names;
use examples::printable;
use examples::references::{Follower, Target};
use judge::{Judged, judge};
use loads::Loads;
use serde_json::{Value, json};
use tokio::time::sleep;
use xds_machine::client::{Action, Backoff, Rejection, Update};
use xds_machine::{Nonce, ResourceName, TypeUrl, servers, service};
use xds_machine_tonic::client::{Report, Updates, XdsClient, dial};

/// The maximum reconnect delay, low enough to reach a server soon after it returns.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments = Arguments::read();
    let loads = match arguments.load_report.then(|| Loads::start(&arguments)).transpose() {
        Ok(loads) => loads,
        Err(error) => {
            eprintln!("xds_client: {error}");
            exit(1);
        }
    };
    let limit = async {
        match arguments.limit {
            Some(limit) => sleep(limit).await,
            None => pending().await,
        }
    };
    let ran = tokio::select! {
        ran = run(&arguments) => ran,
        () = limit => Ok(()),
        () = loads::terminated(loads.is_some()) => Ok(()),
    };
    if let Some(loads) = loads {
        loads.stop().await;
    }
    if let Err(error) = ran {
        eprintln!("xds_client: {error}");
        exit(1);
    }
    exit(0) // without waiting for a name that is being looked up
}

async fn run(arguments: &Arguments) -> Result<(), String> {
    let variant = match arguments.variant {
        Variant::Sotw => service::Variant::Sotw,
        Variant::Delta => service::Variant::Delta,
        Variant::Rest => return rest::run(arguments).await,
        Variant::File => return file::run(arguments).await,
    };
    let endpoint = arguments.endpoint()?;
    let mut client = XdsClient::builder(arguments.config())
        .server(dial(endpoint))
        .variant(variant)
        .backoff(Backoff::grpc().with_max(LONGEST_WAIT));
    if arguments.csds.is_some() {
        client = client.keep_contents();
    }
    let client = client.start().map_err(|error| error.to_string())?;
    if let Some(address) = &arguments.csds {
        status::serve(address, client.clone()).await?;
    }
    let targets = arguments.targets();
    let updates = client.updates().await.map_err(|error| error.to_string())?;
    let mut program = Program {
        follower: arguments.follow.then(|| Follower::new(targets.clone())),
        server: arguments.server()?.to_string(),
        updates,
        streams: 0,
        faults: None,
    };
    program.subscribe(targets).await?;
    program.run().await
}

struct Program {
    updates: Updates,
    server: String,
    streams: u64,
    follower: Option<Follower>,
    /// The faults that the machine found in a response. Resources in the rest of the response may be rejected too.
    faults: Option<(TypeUrl, Nonce, Vec<Rejection>)>,
}

impl Program {
    async fn run(&mut self) -> Result<(), String> {
        loop {
            let report = tokio::select! {
                biased;
                report = self.updates.next() => report.ok_or("the client's task ended")?,
                // No report is ready, so nothing is left of the response.
                () = ready(()), if self.faults.is_some() => {
                    self.print_faults();
                    continue;
                }
            };
            match report {
                Report::Action(servers::Action::Client { action, .. }) => self.act(action).await?,
                Report::Opened { .. } => {
                    self.streams += 1;
                    print(json!({ "open": { "stream": self.streams, "server": self.server } }));
                }
                Report::Closed { reason, again_in, .. } => {
                    let again = again_in.map(|again| u64::try_from(again.as_millis()).unwrap_or(u64::MAX));
                    print(json!({ "close": { "reason": reason, "server": self.server, "again_in_ms": again } }));
                }
                _ => {}
            }
        }
    }

    async fn act(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::Apply(update) => return self.apply(update).await,
            Action::DoesNotExist { type_url, names } => names.iter().for_each(|name| {
                print(json!({ "missing": { "type_url": type_url.as_str(), "name": name.as_str() } }));
            }),
            Action::Expired { type_url, names: gone } => {
                print(json!({ "expired": { "type_url": type_url.as_str(), "names": names(&gone) } }));
                self.follow(gone.into_iter().map(|name| ((type_url.clone(), name), None)).collect()).await?;
            }
            Action::Rejected { type_url, nonce, faults } => {
                self.print_faults();
                self.faults = Some((type_url, nonce, faults));
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks an update resource by resource and applies the valid ones, which here means to print them.
    async fn apply(&mut self, update: Update) -> Result<(), String> {
        let type_url = update.type_url().clone();
        let Judged { line, changes, rejections } = judge(&update);
        line.into_iter().for_each(print);
        if self.faults.as_ref().is_some_and(|(of, nonce, _)| (of, nonce) != (&type_url, update.nonce())) {
            self.print_faults();
        }
        // One line for a response, with the faults found by the machine and by this program.
        let (.., mut faults) = self.faults.take().unwrap_or_else(|| (type_url.clone(), Nonce::default(), Vec::new()));
        faults.extend(rejections.iter().cloned());
        print_rejected(&type_url, &faults);
        let judged = self.updates.verdict(update.reject(rejections)).await;
        judged.map_err(|error| error.to_string())?;
        self.follow(changes).await
    }

    /// Subscribes to resources that are now referred to, and unsubscribes from those that no longer are.
    async fn follow(&mut self, changes: Vec<(Target, Option<BTreeSet<Target>>)>) -> Result<(), String> {
        let Some(follower) = &mut self.follower else { return Ok(()) };
        let (more, less) = follower.follow(changes);
        self.subscribe(more).await?;
        for (type_url, names) in by_type(less) {
            self.updates.unsubscribe(type_url, names);
        }
        Ok(())
    }

    /// Subscribes in one request for each type.
    async fn subscribe(&self, targets: Vec<Target>) -> Result<(), String> {
        for (type_url, names) in by_type(targets) {
            self.updates.subscribe(type_url, names).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn print_faults(&mut self) {
        if let Some((type_url, _, faults)) = self.faults.take() {
            print_rejected(&type_url, &faults);
        }
    }
}

/// Sorts targets by their type; the types stay in the order of their first target.
fn by_type(targets: Vec<Target>) -> Vec<(TypeUrl, Vec<ResourceName>)> {
    let mut order: BTreeMap<TypeUrl, usize> = BTreeMap::new();
    let mut sorted: Vec<(TypeUrl, Vec<ResourceName>)> = Vec::new();
    for (type_url, name) in targets {
        let at = *order.entry(type_url.clone()).or_insert_with(|| {
            sorted.push((type_url, Vec::new()));
            sorted.len() - 1
        });
        sorted[at].1.push(name);
    }
    sorted
}

fn print_rejected(type_url: &TypeUrl, rejections: &[Rejection]) {
    let name = |rejection: &Rejection| rejection.name.as_ref().map(ToString::to_string);
    let errors = rejections.iter().map(|rejection| json!({ "name": name(rejection), "message": rejection.reason }));
    if !rejections.is_empty() {
        print(json!({ "reject": { "type_url": type_url.as_str(), "errors": errors.collect::<Vec<_>>() } }));
    }
}

fn print(line: Value) {
    let mut out = stdout().lock();
    if writeln!(out, "{}", printable::json(&line.to_string())).and_then(|()| out.flush()).is_err() {
        exit(1); // standard output is closed
    }
}
