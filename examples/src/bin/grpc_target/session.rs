//! The driver: the chain over the ledgers, and these over the client.

use std::collections::VecDeque;
use std::future::ready;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::json;
use xds_machine::client::{Action, Rejection};
use xds_machine::servers::{self, ServerId};
use xds_machine::watch::{News, Subscribe};
use xds_machine::{Code, Misuse, Nonce, ResourceName, Status, TypeUrl};
use xds_machine_grpc::bootstrap::Bootstrap;
use xds_machine_grpc::chain::{Chain, Target};
use xds_machine_grpc::ledgers::Ledgers;
use xds_machine_tonic::client::{Report, Updates};

use crate::show::{config, print, rejected};
use examples::grpc::dns::Dns;
use examples::grpc::resource::{Resource, decode};

pub(crate) struct Session {
    bootstrap: Bootstrap,
    updates: Updates,
    chain: Chain<Arc<Resource>>,
    ledgers: Ledgers<Arc<Resource>>,
    dns: Dns,
    /// The faults that the machine found in a response. What is left of the response may be rejected too.
    faults: Option<(TypeUrl, Nonce, Vec<Rejection>)>,
}

impl Session {
    pub(crate) fn new(bootstrap: Bootstrap, updates: Updates, chain: Chain<Arc<Resource>>) -> Self {
        Self { bootstrap, updates, chain, ledgers: Ledgers::new(), dns: Dns::new(), faults: None }
    }

    /// Runs until the client ends.
    pub(crate) async fn run(&mut self) -> Result<(), String> {
        loop {
            self.settle().await?;
            tokio::select! {
                biased;
                report = self.updates.next() => match report.ok_or("the client's task ended")? {
                    Report::Action(action) => self.act(action),
                    Report::Closed { reason, server, .. } => {
                        let uri = self.bootstrap.servers().get(server.0).map_or("", |server| &server.uri);
                        eprintln!("grpc_target: {uri}: {reason}");
                    }
                    _ => {}
                },
                // Nothing is left of the response.
                () = ready(()), if self.faults.is_some() => self.print_faults(),
                Some((host, result)) = self.dns.resolved() => self.chain.handle_resolved(&host, result),
            }
        }
    }

    fn act(&mut self, action: servers::Action) {
        let mut rejections = Vec::new();
        let response = match &action {
            servers::Action::Client { action: Action::Rejected { type_url, nonce, faults }, .. } => {
                self.print_faults();
                self.faults = Some((type_url.clone(), nonce.clone(), faults.clone()));
                None
            }
            servers::Action::Client { action: Action::Apply(update), .. } => {
                Some((update.type_url().clone(), update.nonce().clone()))
            }
            _ => None,
        };
        self.ledgers.handle_servers_action(action, |ServerId(server), target, resource| {
            let context = self.bootstrap.context(server as u64);
            decode(target, resource, &context).map_err(|faults| {
                let reason = faults.to_string();
                rejections.push(Rejection::new(resource.name().clone(), reason.as_str()));
                reason
            })
        });
        if let Some((type_url, nonce)) = response {
            if self.faults.as_ref().is_some_and(|(of, with, _)| (of, with) != (&type_url, &nonce)) {
                self.print_faults();
            }
            // One line for a response, with what the machine and what this program found.
            let (.., mut faults) = self.faults.take().unwrap_or_else(|| (type_url.clone(), nonce, Vec::new()));
            faults.extend(rejections);
            if !faults.is_empty() {
                print(&rejected(&type_url, &faults));
            }
        }
    }

    fn print_faults(&mut self) {
        if let Some((type_url, _, faults)) = self.faults.take() {
            print(&rejected(&type_url, &faults));
        }
    }

    /// Moves everything between the chain and the client, until nothing moves.
    async fn settle(&mut self) -> Result<(), String> {
        loop {
            let mut wishes = Wishes::default();
            let outcome = self.ledgers.settle(&mut self.chain, &mut wishes, |lookup| self.dns.handle(lookup));
            match &outcome {
                Some(Ok(complete)) => print(&config(self.chain.listener(), complete)),
                Some(Err(failure)) => print(&json!({ "error": failure.to_string() })),
                None => {}
            }
            let verdicts: Vec<_> = std::iter::from_fn(|| self.ledgers.poll_verdict()).collect();
            if outcome.is_none() && wishes.0.is_empty() && verdicts.is_empty() {
                return Ok(());
            }
            let judged = join_all(verdicts.into_iter().map(|verdict| self.updates.verdict(verdict)));
            // All commands are sent before the client's task takes any, so that they are one request for each type.
            let wished = join_all(wishes.0.into_iter().map(|wish| wish.fulfil(&self.updates)));
            let (judged, refused) = tokio::join!(judged, wished);
            judged.into_iter().collect::<Result<Vec<()>, _>>().map_err(|error| error.to_string())?;
            for (target, why) in refused.into_iter().flatten() {
                self.chain.handle_news(&target, News::Changed(Err(Status::new(Code::Unavailable, why))));
            }
        }
    }
}

/// What the ledgers subscribe to and unsubscribe from, in order.
#[derive(Default)]
struct Wishes(VecDeque<Wish>);

struct Wish {
    type_url: TypeUrl,
    name: ResourceName,
    wants: bool,
}

impl Subscribe for Wishes {
    fn subscribe(&mut self, type_url: &TypeUrl, name: ResourceName) -> Result<(), Misuse> {
        self.0.push_back(Wish { type_url: type_url.clone(), name, wants: true });
        Ok(())
    }

    fn unsubscribe(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        self.0.push_back(Wish { type_url: type_url.clone(), name: name.clone(), wants: false });
    }
}

impl Wish {
    /// Tells the client. Returns the target and the reason if the name can't be watched.
    async fn fulfil(self, updates: &Updates) -> Option<(Target, String)> {
        let Self { type_url, name, wants } = self;
        if !wants {
            updates.unsubscribe(type_url, [name]);
            return None;
        }
        let refused = updates.subscribe(type_url.clone(), [name.clone()]).await.err()?;
        Some((Target::of(&type_url, &name)?, refused.to_string()))
    }
}
