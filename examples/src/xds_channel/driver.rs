//! The driver: connects the chain to the ledgers, and the ledgers to the client. It passes configurations to the
//! balancer, whose timers it runs.

use std::future::pending;
use std::sync::{Arc, Weak};

use tokio::sync::watch;
use tokio::time::sleep_until;
use xds_machine::servers::ServerId;
use xds_machine_grpc::bootstrap::Bootstrap;
use xds_machine_grpc::chain::Chain;
use xds_machine_grpc::ledgers::Ledgers;
use xds_machine_tonic::client::{Report, Updates, XdsClient};

use super::Inner;
use crate::grpc::dns::Dns;
use crate::grpc::resource::{Resource, decode};
use crate::grpc::wishes::Wishes;

/// Runs until the channel ends.
pub(super) async fn run(
    bootstrap: Bootstrap,
    client: XdsClient,
    mut chain: Chain<Arc<Resource>>,
    mut dns: Dns,
    channel: Weak<Inner>,
) {
    let Ok(mut updates) = client.updates().await else { return };
    let mut ledgers = Ledgers::new();
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

/// Runs the timers of the priorities, so that the next priority is tried in time even if there are no calls. Runs until
/// the channel ends.
pub(super) async fn run_timers(channel: Weak<Inner>, mut changed: watch::Receiver<()>) {
    loop {
        changed.mark_unchanged();
        let Some(inner) = channel.upgrade() else { return };
        let timeout = inner.with(|balancer| {
            balancer.handle_changes();
            balancer.poll_timeout()
        });
        drop(inner);
        let timer = async {
            match timeout {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
        };
        tokio::select! {
            change = changed.changed() => if change.is_err() { return },
            () = timer => {}
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
        let changed = outcome.is_some();
        if let Some(outcome) = outcome {
            let config = outcome.map_err(|failure| failure.to_string());
            channel.upgrade()?.with(|balancer| balancer.apply(config));
        }
        if !wishes.carry_out(ledgers, chain, updates).await.ok()? && !changed {
            return Some(());
        }
    }
}
