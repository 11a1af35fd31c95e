//! The driver: the chain over the ledgers, and these over the client. Configurations go to the balancer.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use futures_util::future::join_all;
use xds_machine::servers::ServerId;
use xds_machine::watch::{News, Subscribe};
use xds_machine::{Code, Misuse, ResourceName, Status, TypeUrl};
use xds_machine_grpc::bootstrap::Bootstrap;
use xds_machine_grpc::chain::{Chain, Target};
use xds_machine_grpc::ledgers::Ledgers;
use xds_machine_tonic::client::{Report, Updates, XdsClient};

use super::Inner;
use crate::grpc::dns::Dns;
use crate::grpc::resource::{Resource, decode};

/// Runs until the channel ends.
pub(super) async fn run(
    bootstrap: Bootstrap,
    client: XdsClient,
    mut chain: Chain<Arc<Resource>>,
    channel: Weak<Inner>,
) {
    let Ok(mut updates) = client.updates().await else { return };
    let (mut ledgers, mut dns) = (Ledgers::new(), Dns::new());
    loop {
        if settle(&mut chain, &mut ledgers, &mut dns, &updates, &channel).await.is_none() {
            return;
        }
        tokio::select! {
            report = updates.next() => match report {
                Some(Report::Action(action)) => {
                    ledgers.handle_servers_action(action, |ServerId(server), target, resource| {
                        decode(target, resource, &bootstrap.context(server as u64))
                    });
                }
                Some(_) => {}
                None => return,
            },
            Some((host, result)) = dns.resolved() => chain.handle_resolved(&host, result),
        }
    }
}

/// Moves everything between the chain and the client, until nothing moves. Returns `None` at the end of either.
async fn settle(
    chain: &mut Chain<Arc<Resource>>,
    ledgers: &mut Ledgers<Arc<Resource>>,
    dns: &mut Dns,
    updates: &Updates,
    channel: &Weak<Inner>,
) -> Option<()> {
    loop {
        let mut wishes = Wishes::default();
        let outcome = ledgers.settle(chain, &mut wishes, |lookup| dns.handle(lookup));
        let verdicts: Vec<_> = std::iter::from_fn(|| ledgers.poll_verdict()).collect();
        if outcome.is_none() && wishes.0.is_empty() && verdicts.is_empty() {
            return Some(());
        }
        if let Some(outcome) = outcome {
            let config = outcome.map_err(|failure| failure.to_string());
            channel.upgrade()?.with(|balancer| balancer.apply(config));
        }
        // All commands are sent before the client's task takes any, so that they are one request for each type.
        let judged = join_all(verdicts.into_iter().map(|verdict| updates.verdict(verdict)));
        let wished = join_all(wishes.0.into_iter().map(|wish| wish.fulfil(updates)));
        let (judged, refused) = tokio::join!(judged, wished);
        judged.into_iter().collect::<Result<Vec<()>, _>>().ok()?;
        for (target, why) in refused.into_iter().flatten() {
            chain.handle_news(&target, News::Changed(Err(Status::new(Code::Unavailable, why))));
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
