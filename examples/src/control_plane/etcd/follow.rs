//! Follows an etcd for ever: lists, watches, and goes on at any member after an outage.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tonic::transport::Uri;
use xds_machine::client::Backoff;

use super::arguments::{Etcd, short};
use super::client::{Client, said};
use super::history::History;
use super::keys::Keys;
use super::listing::Listing;
use super::watching::{End, Step, Watching};
use crate::control_plane::news::News;

/// The time after which a watch counts as a success: an immediate new attempt will not meet the same fault.
const LASTED: Duration = Duration::from_secs(1);

/// The time in which members agree on the current state, even if they elect a leader; longer after each failed attempt.
const AGREEMENT: Duration = Duration::from_millis(1500);

/// The longest wait for the next attempt.
const WAIT: Duration = Duration::from_secs(5);

/// Follows the keys of a prefix.
pub struct Follower<T> {
    etcd: Etcd,
    keys: Keys,
    take: T,
    /// The history that was read, and the position of the watch; `None` before the first listing.
    known: Option<(History, Watching)>,
    backoff: Backoff,
    /// Attempts in a row that failed.
    failed: u32,
    /// The time at which the watch of this attempt began.
    watched: Option<Instant>,
    /// Faults of this outage that were logged already.
    faults: BTreeSet<String>,
}

/// The log event for the resources of the first listing.
pub const LOADED: &str = "loaded";
/// The log event for all later changes.
pub const CHANGED: &str = "changed";

impl<T: FnMut(&'static str, &Keys, &News)> Follower<T> {
    /// Creates a follower that passes its news to `take`.
    pub fn new(etcd: Etcd, keys: Keys, take: T) -> Self {
        let backoff = Backoff::envoy().with_max(WAIT);
        Self { etcd, keys, take, known: None, backoff, failed: 0, watched: None, faults: BTreeSet::new() }
    }

    /// Follows for ever.
    pub async fn run(mut self) {
        let urls = self.etcd.urls.clone();
        for url in urls.iter().cycle() {
            self.watched = None;
            let Err(error) = self.follow(url).await;
            if self.watched.is_some_and(|since| since.elapsed() > LASTED) {
                self.failed = 0;
                self.backoff.reset();
                tracing::info!("etcd {}: the watch has ended: {error}", short(url));
                continue; // another member may be there
            }
            self.note_fault(url, &error);
            self.failed += 1;
            if (self.failed as usize).is_multiple_of(urls.len()) {
                tokio::time::sleep(self.backoff.next_delay(fastrand::u64(..))).await;
            }
        }
    }

    fn note_fault(&mut self, url: &Uri, error: &str) {
        let meaning = match self.known {
            Some(_) => "what it held before is still served",
            None => "nothing of it is served yet",
        };
        let line = format!("etcd {}: {error} ({meaning})", short(url));
        if self.faults.insert(line.clone()) {
            tracing::warn!("{line}");
        }
        (self.take)(CHANGED, &self.keys, &News::default());
    }

    fn note_there(&mut self, url: &Uri) {
        self.watched = Some(Instant::now());
        if !self.faults.is_empty() {
            self.faults.clear();
            tracing::info!("etcd {}: it is there", short(url));
        }
        (self.take)(CHANGED, &self.keys, &News { is_there: true, ..News::default() });
    }

    /// Follows one member until that fails.
    async fn follow(&mut self, url: &Uri) -> Result<std::convert::Infallible, String> {
        let mut client = Client::connect(&self.etcd, url).await?;
        if let Some((history, _)) = &self.known {
            let header = client.now(self.keys.range().0, AGREEMENT.saturating_mul(self.failed + 1)).await?;
            if !history.goes_on(&header) {
                tracing::warn!("etcd {}: another history than before, so all of it is compared", short(url));
                self.list(&mut client, false).await?;
            }
        }
        loop {
            if self.known.is_none() {
                self.list(&mut client, false).await?;
            }
            match self.watch(&mut client, url).await? {
                End::Compacted => {
                    tracing::info!("etcd {}: the history is compacted, so all of it is listed again", short(url));
                    self.list(&mut client, true).await?;
                }
                End::Canceled(reason) => return Err(reason),
            }
        }
    }

    async fn list(&mut self, client: &mut Client, same_history: bool) -> Result<(), String> {
        let listed = client.list(Listing::new(self.keys.range())).await?;
        let event = if self.known.is_some() { CHANGED } else { LOADED };
        self.known = Some((History::of(&listed.header), Watching::after(listed.header.revision)));
        let news = self.keys.list(listed.keys, same_history);
        (self.take)(event, &self.keys, &news);
        Ok(())
    }

    /// Watches until the server ends the watch.
    async fn watch(&mut self, client: &mut Client, url: &Uri) -> Result<End, String> {
        let Some((_, watching)) = &mut self.known else { return Err("nothing is listed".into()) };
        let mut responses = client.watch(watching.request(self.keys.range())).await?;
        while let Some(response) = responses.message().await.map_err(said)? {
            let Some((history, watching)) = &mut self.known else { break };
            match watching.take(response) {
                Ok(Step::Begun) => self.note_there(url),
                Ok(Step::Events(events)) => {
                    history.advance(watching.revision());
                    if !events.is_empty() {
                        let news = self.keys.apply(events);
                        (self.take)(CHANGED, &self.keys, &news);
                    }
                }
                Err(end) => return Ok(end),
            }
        }
        Err("the server ended the stream".into())
    }
}
