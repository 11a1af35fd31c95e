//! The watches of the four types that a target needs, put together: the layer between a chain and the transport.
//!
//! A driver calls [`Ledgers::settle`] after each input, and otherwise only moves bytes:
//!
//! ```
//! use xds_machine::client::{Client, Config};
//! use xds_machine::message::{Any, Node, sotw};
//! use xds_machine::{Instant, Sotw, type_url};
//! use xds_machine_grpc::chain::{Chain, Linked, Target};
//! use xds_machine_grpc::ledgers::{Ledgers, Lookup};
//! use xds_machine_grpc::links::{Links, ListenerLinks, RouteSource, VirtualHost};
//!
//! let now = Instant::EPOCH;
//! let mut client = Client::<Sotw>::new(Config::new(Node::new("example")));
//! let mut chain = Chain::<String>::new("service", "service");
//! let mut ledgers = Ledgers::new();
//!
//! // What a driver does after each input. A real one decodes the resource, and resolves names.
//! let mut settle = |client: &mut Client<Sotw>| {
//!     while let Some(action) = client.poll_action() {
//!         ledgers.handle_action(action, |target, resource| {
//!             let host = VirtualHost { name: "v".into(), domains: vec!["*".into()], clusters: vec![] };
//!             let links = Links::Listener(ListenerLinks::Api(RouteSource::Inline(vec![host])));
//!             Ok::<_, String>(Linked::new(links, format!("{target}, {} bytes", resource.body().len())))
//!         });
//!     }
//!     let config = ledgers.settle(&mut chain, client, |lookup| match lookup {
//!         Lookup::Begin(host) | Lookup::End(host) => println!("{}", host.host),
//!     });
//!     while let Some(verdict) = ledgers.poll_verdict() {
//!         client.handle_verdict(now, verdict).expect("each update is judged once");
//!     }
//!     config
//! };
//!
//! client.handle_open();
//! assert_eq!(settle(&mut client), None);
//! let request = client.poll_transmit().expect("the Listener is asked for");
//! # let any = Any { type_url: type_url::LISTENER.into(), value: (&b"\x0a\x07service"[..]).into() };
//! # let response = sotw::Response { version: "1".into(), resources: vec![sotw::Item::Bare(any)],
//! #     type_url: type_url::LISTENER.into(), nonce: "n".into(), control_plane: String::new(), errors: vec![] };
//! client.handle_response(now, response)?;
//! let config = settle(&mut client).expect("new").expect("usable");
//! assert_eq!(config.listener, "LDS resource service, 9 bytes");
//! # Ok::<(), xds_machine::Error>(())
//! ```

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use core::fmt::Display;

use xds_machine::client::{self, Verdict};
use xds_machine::servers::{self, ServerId};
use xds_machine::watch::{Event, News, Subscribe, WatchId, Watches};
use xds_machine::{Code, Misuse, Status, TypeUrl, type_url};

use crate::chain::{Chain, Config, Failure, Linked, Target, Want};
use crate::links::HostPort;

/// The types, in the order of the chain.
const TYPES: [&str; 4] = [type_url::LISTENER, type_url::ROUTE, type_url::CLUSTER, type_url::ENDPOINT];

/// A command about a DNS name. The driver resolves names, and passes the results to the chain by
/// [`handle_resolved`](Chain::handle_resolved).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Lookup {
    /// Resolve the name from now on.
    Begin(HostPort),
    /// Stop resolving the name.
    End(HostPort),
}

/// The watches of Listeners, RouteConfigurations, Clusters and ClusterLoadAssignments, one watcher for each target.
///
/// All subscriptions to the four types must be made here.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Ledgers<T> {
    watches: [Watches<Linked<T>>; 4],
    watchers: BTreeMap<Target, WatchId>,
}

impl<T: Clone + Eq> Default for Ledgers<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone + Eq> Ledgers<T> {
    /// Makes the ledgers of the four types, with no watcher yet.
    pub fn new() -> Self {
        Self { watches: TYPES.map(Watches::new), watchers: BTreeMap::new() }
    }

    /// Passes the news of the watches to the chain, and the wishes of the chain to the watches. Returns the
    /// configuration if a new one is complete, or the failure that takes its place: see [`Chain::poll_config`]. Call
    /// this again until it returns `None`.
    ///
    /// A target that can't be watched is in error at once, for example if no server is configured for its authority
    /// (R-BOOT-36).
    pub fn settle(
        &mut self,
        chain: &mut Chain<T>,
        client: &mut impl Subscribe,
        mut dns: impl FnMut(Lookup),
    ) -> Option<Result<Config<T>, Failure>> {
        loop {
            while let Some((target, news)) = self.poll_event() {
                chain.handle_news(&target, news);
            }
            let mut quiet = true;
            while let Some(want) = chain.poll_want() {
                quiet = false;
                match want {
                    Want::Watch(Target::Dns(host)) => dns(Lookup::Begin(host)),
                    Want::Unwatch(Target::Dns(host)) => dns(Lookup::End(host)),
                    Want::Watch(target) => {
                        if let Err(misuse) = self.watch(client, &target) {
                            let status = Status::new(Code::Unavailable, misuse.to_string());
                            chain.handle_news(&target, News::Changed(Err(status)));
                        }
                    }
                    Want::Unwatch(target) => self.unwatch(client, &target),
                }
            }
            if quiet {
                break;
            }
        }
        chain.poll_config()
    }

    // The parts of `settle`, for drivers with needs of their own.

    /// Watches a target. A DNS name, and a target that is watched already, are ignored.
    ///
    /// # Errors
    ///
    /// As for [`Watches::watch`]; then the target is not watched.
    pub fn watch(&mut self, client: &mut impl Subscribe, target: &Target) -> Result<(), Misuse> {
        if let (Some(at), Some((_, name)), false) =
            (place(target), target.resource(), self.watchers.contains_key(target))
        {
            let watch = self.watches[at].watch(client, name)?;
            self.watchers.insert(target.clone(), watch);
        }
        Ok(())
    }

    /// Ends the watch of a target, if there is one.
    pub fn unwatch(&mut self, client: &mut impl Subscribe, target: &Target) {
        if let (Some(at), Some(watch)) = (place(target), self.watchers.remove(target)) {
            self.watches[at].unwatch(client, watch);
        }
    }

    /// Handles an action of a client: see [`Watches::handle_action`]. Returns an action that concerns other types.
    pub fn handle_action<E: Display>(
        &mut self,
        action: client::Action,
        mut decode: impl FnMut(&Target, client::Resource<'_>) -> Result<Linked<T>, E>,
    ) -> Option<client::Action> {
        let mut left = Some(action);
        for (watches, type_url) in self.watches.iter_mut().zip(TYPES) {
            let type_url = TypeUrl::from(type_url);
            left = watches.handle_action(left?, |resource| in_type(&type_url, resource, &mut decode));
        }
        left
    }

    /// Handles an action of several servers: see [`Watches::handle_servers_action`]. `decode` receives the server of the
    /// resource. Returns an action that concerns other types, and every report about servers.
    pub fn handle_servers_action<E: Display>(
        &mut self,
        action: servers::Action,
        mut decode: impl FnMut(ServerId, &Target, client::Resource<'_>) -> Result<Linked<T>, E>,
    ) -> Option<servers::Action> {
        let mut left = Some(action);
        for (watches, type_url) in self.watches.iter_mut().zip(TYPES) {
            let type_url = TypeUrl::from(type_url);
            left = watches.handle_servers_action(left?, |server, resource| {
                in_type(&type_url, resource, |target, resource| decode(server, target, resource))
            });
        }
        left
    }

    /// Records that the one server of a [`Client`](client::Client) is unreachable: see [`Watches::handle_unreachable`].
    pub fn handle_unreachable(&mut self, status: &Status) {
        self.watches.iter_mut().for_each(|watches| watches.handle_unreachable(status.clone()));
    }

    /// Records that the one server responds again.
    pub fn handle_reachable(&mut self) {
        self.watches.iter_mut().for_each(Watches::handle_reachable);
    }

    /// Returns the next verdict for the client.
    pub fn poll_verdict(&mut self) -> Option<Verdict> {
        self.watches.iter_mut().find_map(Watches::poll_verdict)
    }

    /// Returns the next news of a target.
    pub fn poll_event(&mut self) -> Option<(Target, News<Linked<T>>)> {
        self.watches.iter_mut().zip(TYPES).find_map(|(watches, type_url)| {
            let Event { name, news, .. } = watches.poll_event()?;
            Some((Target::of(&type_url.into(), &name)?, news))
        })
    }

    /// Returns the watches of each type, in the order of the chain, for a dump.
    pub fn watches(&self) -> &[Watches<Linked<T>>; 4] {
        &self.watches
    }
}

/// Returns the index of a target's type.
fn place(target: &Target) -> Option<usize> {
    match target {
        Target::Listener(_) => Some(0),
        Target::Routes(_) => Some(1),
        Target::Cluster(_) => Some(2),
        Target::Endpoints(_) => Some(3),
        Target::Dns(_) => None,
    }
}

fn in_type<R>(
    type_url: &TypeUrl,
    resource: client::Resource<'_>,
    decode: impl FnOnce(&Target, client::Resource<'_>) -> R,
) -> R {
    let name = resource.name().clone();
    // Each type of the ledgers has targets.
    let target = Target::of(type_url, &name).unwrap_or(Target::Listener(name));
    decode(&target, resource)
}
