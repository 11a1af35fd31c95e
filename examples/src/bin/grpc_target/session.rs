//! The driver: connects the chain to the ledgers, and the ledgers to the client.

use std::future::ready;
use std::sync::Arc;

use serde_json::{Value, json};
use xds_machine::client::{Action, Rejection};
use xds_machine::servers::{self, ServerId};
use xds_machine::{Nonce, TypeUrl};
use xds_machine_grpc::bootstrap::Bootstrap;
use xds_machine_grpc::chain::Chain;
use xds_machine_grpc::ledgers::Ledgers;
use xds_machine_tonic::client::{Report, Updates};

use crate::show::{config, print, rejected};
use examples::grpc::dns::Dns;
use examples::grpc::resource::{Resource, decode};
use examples::grpc::wishes::Wishes;
use examples::printable;

pub(crate) struct Session {
    bootstrap: Bootstrap,
    updates: Updates,
    chain: Chain<Arc<Resource>>,
    ledgers: Ledgers<Arc<Resource>>,
    /// No name is resolved again after a success: only a lost connection requires that, and this program makes no
    /// connections.
    dns: Dns,
    /// The faults that the machine found in a response. Resources in the rest of the response may be rejected too.
    faults: Option<(TypeUrl, Nonce, Vec<Rejection>)>,
    /// The configuration that was printed last, unless it is not to be used any more.
    printed: Option<Value>,
}

impl Session {
    pub(crate) fn new(bootstrap: Bootstrap, updates: Updates, chain: Chain<Arc<Resource>>) -> Self {
        Self { bootstrap, updates, chain, ledgers: Ledgers::new(), dns: Dns::new(), faults: None, printed: None }
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
                        eprintln!("grpc_target: {uri}: {}", printable::text(&reason.to_string()));
                    }
                    _ => {}
                },
                // No report is ready, so nothing is left of the response.
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
            // One line for a response, with the faults found by the machine and by this program.
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
                Some(Ok(complete)) => {
                    let shown = Some(config(self.chain.listener(), complete));
                    // A change of what is not shown is no news.
                    if shown != self.printed {
                        shown.iter().for_each(print);
                        self.printed = shown;
                    }
                }
                Some(Err(failure)) => {
                    print(&json!({ "error": failure.to_string() }));
                    self.printed = None;
                }
                None => {}
            }
            let moved = wishes.carry_out(&mut self.ledgers, &mut self.chain, &self.updates).await?;
            if outcome.is_none() && !moved {
                return Ok(());
            }
        }
    }
}
