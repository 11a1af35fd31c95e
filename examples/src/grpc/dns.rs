//! DNS names, which the system resolves.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use xds_machine_grpc::ledgers::Lookup;
use xds_machine_grpc::links::HostPort;

/// The delays after failures: from the first to the last, each twice the one before.
const DELAYS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));

/// The addresses of a name, or why there are none.
type Resolved = (HostPort, Result<Vec<SocketAddr>, String>);

/// The names that are being resolved, and their results.
pub struct Dns {
    tasks: BTreeMap<HostPort, JoinHandle<()>>,
    sender: UnboundedSender<Resolved>,
    results: UnboundedReceiver<Resolved>,
}

impl Default for Dns {
    fn default() -> Self {
        Self::new()
    }
}

impl Dns {
    pub fn new() -> Self {
        let (sender, results) = unbounded_channel();
        Self { tasks: BTreeMap::new(), sender, results }
    }

    pub fn handle(&mut self, lookup: Lookup) {
        match lookup {
            Lookup::Begin(host) => {
                let task = tokio::spawn(resolve(host.clone(), self.sender.clone()));
                self.tasks.insert(host, task);
            }
            Lookup::End(host) => self.tasks.remove(&host).into_iter().for_each(|task| task.abort()),
        }
    }

    /// Waits for a result.
    pub async fn resolved(&mut self) -> Option<Resolved> {
        self.results.recv().await
    }
}

/// Resolves a name until it succeeds. Like gRPC's resolver, it then rests: a client that lost its connections would ask
/// for another resolution, and this program makes none.
async fn resolve(host: HostPort, results: UnboundedSender<Resolved>) {
    let (mut delay, longest) = DELAYS;
    loop {
        let resolved = match lookup_host((host.host.as_str(), host.port)).await {
            Ok(addresses) => {
                let mut unique: Vec<SocketAddr> = Vec::new();
                addresses.for_each(|address| {
                    if !unique.contains(&address) {
                        unique.push(address)
                    }
                });
                Ok(unique)
            }
            Err(error) => Err(error.to_string()),
        };
        let succeeded = resolved.is_ok();
        if results.send((host.clone(), resolved)).is_err() || succeeded {
            return;
        }
        sleep(delay).await;
        delay = (delay * 2).min(longest);
    }
}
