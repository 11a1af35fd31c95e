//! DNS names, which the system resolves.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use xds_machine_grpc::ledgers::Lookup;
use xds_machine_grpc::links::HostPort;

/// The delays after failures: from the first to the last, each twice the one before.
const DELAYS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));

/// The least time between a success and the next resolution, as in gRPC.
const REST: Duration = Duration::from_secs(30);

/// The addresses of a name, or why there are none.
type Resolved = (HostPort, Result<Vec<SocketAddr>, String>);

/// The names that are being resolved, and their results.
pub struct Dns {
    tasks: BTreeMap<HostPort, JoinHandle<()>>,
    sender: UnboundedSender<Resolved>,
    results: UnboundedReceiver<Resolved>,
    again: Again,
}

/// Asks for another resolution of all names (R-CHAIN-32): a connection was lost, or could not be made.
#[derive(Clone)]
pub struct Again(watch::Sender<()>);

impl Again {
    pub fn ask(&self) {
        self.0.send_replace(());
    }
}

impl Default for Dns {
    fn default() -> Self {
        Self::new()
    }
}

impl Dns {
    pub fn new() -> Self {
        let (sender, results) = unbounded_channel();
        Self { tasks: BTreeMap::new(), sender, results, again: Again(watch::Sender::new(())) }
    }

    pub fn again(&self) -> Again {
        self.again.clone()
    }

    pub fn handle(&mut self, lookup: Lookup) {
        match lookup {
            Lookup::Begin(host) => {
                let task = tokio::spawn(resolve(host.clone(), self.sender.clone(), self.again.0.subscribe(), look_up));
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

async fn look_up(host: HostPort) -> io::Result<Vec<SocketAddr>> {
    Ok(lookup_host((host.host.as_str(), host.port)).await?.collect())
}

/// Resolves a name: again after each failure, and after a success on request.
async fn resolve<L: Future<Output = io::Result<Vec<SocketAddr>>>>(
    host: HostPort,
    results: UnboundedSender<Resolved>,
    mut again: watch::Receiver<()>,
    look_up: impl Fn(HostPort) -> L,
) {
    let mut delay = DELAYS.0;
    loop {
        again.mark_unchanged();
        let resolved = look_up(host.clone()).await.map(unique).map_err(|error| error.to_string());
        let succeeded = resolved.is_ok();
        if results.send((host.clone(), resolved)).is_err() {
            return;
        }
        if !succeeded {
            sleep(delay).await;
            delay = (delay * 2).min(DELAYS.1);
            continue;
        }
        delay = DELAYS.0;
        sleep(REST).await;
        if again.changed().await.is_err() {
            return;
        }
    }
}

/// Drops repetitions, and keeps the order.
fn unique(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let mut unique: Vec<SocketAddr> = Vec::new();
    for address in addresses {
        if !unique.contains(&address) {
            unique.push(address);
        }
    }
    unique
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::time::{Instant, advance};

    use super::*;

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    /// Time stands still, and passes at once when every task waits.
    #[tokio::test(start_paused = true)]
    async fn a_dns_name_is_resolved_again_after_failures_and_on_request() {
        let answers = Mutex::new(vec![
            Ok(vec![address(3)]),
            Err("away"),
            Ok(vec![address(2), address(1), address(2)]),
            Err("no name"),
        ]);
        let (sender, mut results) = unbounded_channel();
        let (again, start) = (Again(watch::Sender::new(())), Instant::now());
        let host = HostPort { host: "h".into(), port: 1 };
        let asked = again.0.subscribe();
        tokio::spawn(resolve(host, sender, asked, move |_| {
            let answer = answers.lock().expect("no panic").pop().expect("no further look-up");
            async move { answer.map_err(io::Error::other) }
        }));
        let mut next = async || {
            let (_, resolved) = results.recv().await.expect("the task runs");
            (start.elapsed().as_secs(), resolved)
        };
        assert_eq!(next().await, (0, Err("no name".into())));
        assert_eq!(next().await, (1, Ok(vec![address(2), address(1)])));
        again.ask(); // too soon: takes effect later
        assert_eq!(next().await, (31, Err("away".into())));
        assert_eq!(next().await, (32, Ok(vec![address(3)])));
        advance(REST * 10).await;
        assert!(results.is_empty(), "nobody asked");
    }
}
