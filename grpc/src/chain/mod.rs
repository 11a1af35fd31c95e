//! The dependency manager of gRFC A74: from a Listener to its routes, their clusters and the endpoints of these.
//!
//! A [`Chain`] is a value. The driver passes news to the chain ([`handle_news`](Chain::handle_news),
//! [`handle_resolved`](Chain::handle_resolved)) and polls its outputs: [`poll_want`](Chain::poll_want) returns the
//! watches to begin and to end, [`poll_config`](Chain::poll_config) the configuration when a new one is complete. Both
//! are differences: between wanted and watched targets, and between the complete configuration and the last one that
//! was returned. So the order in which resources arrive does not affect the final state of the chain.
//!
//! ```
//! use xds_machine::watch::News;
//! use xds_machine_grpc::chain::{Chain, Target, Linked, Want};
//! use xds_machine_grpc::links::{ClusterLinks, Links, ListenerLinks, RouteSource, VirtualHost};
//!
//! let mut chain: Chain<&str> = Chain::new("service", "service");
//! let listener = Target::Listener("service".into());
//! assert_eq!(chain.poll_want(), Some(Want::Watch(listener.clone())));
//!
//! let host = VirtualHost { name: "all".into(), domains: vec!["*".into()], clusters: vec!["c".into()] };
//! let links = Links::Listener(ListenerLinks::Api(RouteSource::Inline(vec![host])));
//! chain.handle_news(&listener, News::Changed(Ok(Linked::new(links, "the Listener"))));
//! let cluster = Target::Cluster("c".into());
//! assert_eq!(chain.poll_want(), Some(Want::Watch(cluster.clone())));
//!
//! let links = Links::Cluster(ClusterLinks::Eds("c".into()));
//! chain.handle_news(&cluster, News::Changed(Ok(Linked::new(links, "the Cluster"))));
//! let endpoints = Target::Endpoints("c".into());
//! assert_eq!(chain.poll_want(), Some(Want::Watch(endpoints.clone())));
//! assert_eq!(chain.poll_config(), None);
//! assert_eq!(chain.waits_for(), [endpoints.clone()]);
//!
//! chain.handle_news(&endpoints, News::Changed(Ok(Linked::new(Links::Endpoints(None), "the endpoints"))));
//! let config = chain.poll_config().expect("complete").expect("usable");
//! assert_eq!(config.clusters.len(), 1);
//! assert_eq!(chain.poll_config(), None, "nothing new");
//! ```

mod cluster;
mod clusters;
mod config;
mod failure;
mod held;
mod memo;
mod references;
mod select;
mod state;
mod target;
mod walk;

use alloc::string::String;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::net::SocketAddr;

use xds_machine::ResourceName;
use xds_machine::watch::News;

pub use self::cluster::{Children, Cluster, Entry};
pub use self::clusters::Clusters;
pub use self::config::Config;
pub use self::failure::Failure;
pub use self::held::Linked;
use self::held::Touches;
use self::memo::Memo;
pub use self::references::ClusterRef;
use self::references::References;
use self::state::State;
pub use self::target::{Target, Want};
pub use self::walk::MAX_DEPTH;
use crate::links::HostPort;

/// The dependency manager of one target: see the [module](self).
///
/// `T` is a resource of any of the four types as the caller decoded it. Its equality decides whether a configuration is
/// new; the chain clones it, so an `Arc` is a good choice.
///
/// A change of endpoints costs the same among ten clusters and among ten thousand; a change of links walks all clusters
/// once, when the driver polls next.
#[derive(Clone, Debug)]
pub struct Chain<T> {
    state: State<T>,
    memo: Memo<T>,
}

impl<T: Clone + Eq> Chain<T> {
    /// Makes the chain of a target, from the name of its Listener and its data plane authority, which selects the
    /// virtual host. The Listener is wanted at once (R-CHAIN-01).
    pub fn new(listener: impl Into<ResourceName>, authority: &str) -> Self {
        Self { state: State::new(listener.into(), authority), memo: Memo::new() }
    }

    // Dynamic references.

    /// Takes a dynamic reference to a cluster: the cluster is wanted, and part of the configuration once the cluster is
    /// resolved, until the reference is released (R-CHAIN-46). The configuration does not wait for the cluster
    /// (R-CHAIN-47).
    ///
    /// An RPC that holds a reference to its cluster can go on when the routes change (R-CHAIN-48): the driver takes the
    /// reference before it applies a configuration without the cluster. After a shutdown the reference has no effect
    /// (R-CHAIN-49).
    pub fn subscribe(&mut self, cluster: impl Into<ResourceName>) -> ClusterRef {
        let cluster = cluster.into();
        if self.state.is_shut_down {
            return References::none(cluster);
        }
        let (reference, first) = self.state.references.take(cluster);
        if first && !self.memo.is_root(reference.cluster()) {
            self.memo.forget_all();
        }
        reference
    }

    /// Releases a reference. A second release of the same reference has no effect (R-CHAIN-46).
    pub fn release(&mut self, reference: &ClusterRef) {
        if self.state.references.release(reference) && !self.memo.is_root(reference.cluster()) {
            self.memo.forget_all();
        }
    }

    // Inputs.

    /// Handles news about a resource, as the watches of `xds_machine` return it. News about a target that is not
    /// watched is ignored: the watch may have ended while the news was under way.
    pub fn handle_news(&mut self, target: &Target, news: News<Linked<T>>) {
        if !self.state.asked.contains(target) {
            return;
        }
        let touches = self.state.store.put(target, news);
        if touches == Touches::Links && matches!(target, Target::Listener(_) | Target::Routes(_)) {
            self.state.follow();
        }
        self.memo.touch(&self.state, target, touches);
    }

    /// Handles the addresses of a DNS name, or the reason why there are none. A failure after a success is ignored
    /// (R-CHAIN-32).
    pub fn handle_resolved(&mut self, host: &HostPort, addresses: Result<Vec<SocketAddr>, String>) {
        let target = Target::Dns(host.clone());
        if self.state.asked.contains(&target) {
            let touches = self.state.store.put_resolved(host, addresses.map(Into::into));
            self.memo.touch(&self.state, &target, touches);
        }
    }

    /// Ends all watches, and ignores all later inputs (R-CHAIN-13).
    pub fn shut_down(&mut self) {
        self.state.shut_down();
        self.memo.forget_all();
    }

    // Outputs.

    /// Returns the next watch to begin or to end. Watches begin before others end, so that a name that replaces another
    /// is one request to the server (R-CHAIN-03).
    pub fn poll_want(&mut self) -> Option<Want> {
        let want = self.memo.next_want(&self.state)?;
        match &want {
            Want::Watch(target) => _ = self.state.asked.insert(target.clone()),
            Want::Unwatch(target) => {
                self.state.asked.remove(target);
                self.state.store.forget(target);
            }
        }
        Some(want)
    }

    /// Returns the configuration if a new one is complete, or the failure that takes its place: the last configuration
    /// must not be used any more. `None`: the last outcome stays in use (R-CHAIN-23, R-CHAIN-24).
    ///
    /// Poll after all news of an update, so that one response makes one configuration (R-CHAIN-25), and poll
    /// [`poll_want`](Self::poll_want) afterwards: targets that only the replaced configuration used are not wanted any
    /// more.
    pub fn poll_config(&mut self) -> Option<Result<Config<T>, Failure>> {
        let outcome = self.memo.outcome(&self.state)?;
        if self.state.told.as_ref() == Some(outcome) {
            return None;
        }
        let outcome = outcome.clone();
        if self.state.tell(outcome.clone()) {
            self.memo.forget_plan();
        }
        Some(outcome)
    }

    // Queries, which are computed from scratch.

    /// Returns all wanted targets: the Listener, its routes, and the clusters with their endpoints that are reached
    /// from the virtual host, from that of the configuration in use, and from dynamic references.
    pub fn wanted(&self) -> Vec<Target> {
        self.state.wanted()
    }

    /// Returns the targets that the driver was asked to watch.
    pub fn watched(&self) -> impl Iterator<Item = &Target> {
        self.state.asked.iter()
    }

    /// Returns the configuration that follows from all held resources, or the failure in its place; `None` while
    /// something is awaited.
    pub fn config(&self) -> Option<Result<Config<T>, Failure>> {
        self.state.outcome()
    }

    /// Returns the last configuration or failure that [`poll_config`](Self::poll_config) returned.
    pub fn told(&self) -> Option<&Result<Config<T>, Failure>> {
        self.state.told.as_ref()
    }

    /// Returns the targets that the next configuration waits for.
    pub fn waits_for(&self) -> Vec<Target> {
        self.state.waits_for().into_iter().collect()
    }

    /// Returns the name of the Listener.
    pub fn listener(&self) -> &ResourceName {
        &self.state.listener
    }
}

impl<T: Eq> Eq for Chain<T> {}

impl<T: PartialEq> PartialEq for Chain<T> {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state
    }
}

impl<T: Hash> Hash for Chain<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.state.hash(hasher);
    }
}
