//! The chain of a server (gRFC A36): from the Listener of an address to the routes of its filter chains.
//!
//! A [`ServerChain`] is a value like [`Chain`](crate::chain::Chain), and is driven in the same way.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::SocketAddr;

use xds_machine::watch::News;
use xds_machine::{ResourceName, Status};

use crate::chain::{Failure, Linked, Target, Want};
use crate::links::{Links, ListenerLinks, RouteSource};

/// How a server handles new connections.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Serving<T> {
    /// The server serves new connections by this Listener.
    Serves {
        /// The Listener. A changed Listener drains the connections of the last one; changed routes do not (R-SRV-06).
        listener: T,
        /// The RouteConfigurations that its filter chains name. RPCs that need a RouteConfiguration in error fail with
        /// UNAVAILABLE (R-SRV-04).
        routes: BTreeMap<ResourceName, Result<T, Failure>>,
    },
    /// The server does not serve, for this reason (R-SRV-05).
    NotServing(Failure),
}

/// The chain of one listening address of a server.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ServerChain<T> {
    name: ResourceName,
    address: SocketAddr,
    listener: Option<Result<Linked<T>, Status>>,
    routes: BTreeMap<ResourceName, Result<T, Status>>,
    /// The Listener in use; `None` while the server does not serve.
    serves: Option<Linked<T>>,
    /// The routes of the last Listener in use; their watches continue while no Listener is in use.
    kept: BTreeSet<ResourceName>,
    asked: BTreeSet<Target>,
    told: Option<Serving<T>>,
}

impl<T: Clone + Eq> ServerChain<T> {
    /// Makes the chain of a listening address; the bootstrap's template makes the name of its Listener (R-SRV-01).
    pub fn new(listener: impl Into<ResourceName>, address: SocketAddr) -> Self {
        Self {
            name: listener.into(),
            address,
            listener: None,
            routes: BTreeMap::new(),
            serves: None,
            kept: BTreeSet::new(),
            asked: BTreeSet::new(),
            told: None,
        }
    }

    /// Handles news about a Listener or a RouteConfiguration. News about a target that is not watched is ignored. An
    /// ambient error, such as a rejected update, changes nothing (R-SRV-07).
    pub fn handle_news(&mut self, target: &Target, news: News<Linked<T>>) {
        let News::Changed(content) = news else { return };
        if !self.asked.contains(target) {
            return;
        }
        match target {
            Target::Listener(_) => self.listener = Some(content),
            Target::Routes(name) => _ = self.routes.insert(name.clone(), content.map(|linked| linked.value)),
            _ => {}
        }
    }

    /// Returns the next watch to begin or to end; watches begin before others end.
    pub fn poll_want(&mut self) -> Option<Want> {
        let wanted = self.wanted();
        if let Some(target) = wanted.iter().find(|target| !self.asked.contains(target)) {
            self.asked.insert(target.clone());
            return Some(Want::Watch(target.clone()));
        }
        let target = self.asked.iter().find(|target| !wanted.contains(target)).cloned()?;
        self.asked.remove(&target);
        if let Target::Routes(name) = &target {
            self.routes.remove(name);
        }
        Some(Want::Unwatch(target))
    }

    /// Returns how the server handles new connections from now on, if that has changed. Poll
    /// [`poll_want`](Self::poll_want) afterwards: the routes of a replaced Listener are not wanted any more (R-SRV-08).
    pub fn poll_serving(&mut self) -> Option<Serving<T>> {
        match self.next() {
            Some(Ok(linked)) => {
                self.kept = routes_of(&linked).cloned().collect();
                self.serves = Some(linked);
            }
            Some(Err(_)) => self.serves = None,
            None => {}
        }
        let serving = self.serving()?;
        (self.told.as_ref() != Some(&serving)).then(|| {
            self.told = Some(serving.clone());
            serving
        })
    }

    /// Returns all wanted targets: the Listener, the routes of its filter chains (R-SRV-02), and those of the last
    /// Listener in use.
    pub fn wanted(&self) -> BTreeSet<Target> {
        let new = self.listener.iter().flatten().flat_map(routes_of);
        let routes = new.chain(&self.kept).cloned().map(Target::Routes);
        routes.chain([Target::Listener(self.name.clone())]).collect()
    }

    /// Returns the targets that the server waits for before it serves by the new Listener (R-SRV-03).
    pub fn waits_for(&self) -> Vec<Target> {
        match &self.listener {
            None => Vec::from([Target::Listener(self.name.clone())]),
            Some(Err(_)) => Vec::new(),
            Some(Ok(linked)) => self.missing(linked).cloned().map(Target::Routes).collect(),
        }
    }

    // Private.

    /// Returns the Listener to use from now on, or why there is none; `None` while something is awaited: the old
    /// Listener stays in use meanwhile (R-SRV-03).
    fn next(&self) -> Option<Result<Linked<T>, Failure>> {
        let linked = match self.listener.as_ref()? {
            Ok(linked) => linked,
            Err(status) => {
                let target = Target::Listener(self.name.clone());
                return Some(Err(Failure::Resource { target, status: status.clone() }));
            }
        };
        match &*linked.links {
            Links::Listener(ListenerLinks::Socket { address, .. }) if *address == Some(self.address) => {
                self.missing(linked).next().is_none().then(|| Ok(linked.clone()))
            }
            Links::Listener(ListenerLinks::Socket { address, .. }) => {
                let (listener, expected) = (self.name.clone(), self.address);
                Some(Err(Failure::OtherAddress { listener, expected, found: *address }))
            }
            _ => Some(Err(Failure::NotServerListener { listener: self.name.clone() })),
        }
    }

    fn serving(&self) -> Option<Serving<T>> {
        if let Some(Err(failure)) = self.next() {
            return Some(Serving::NotServing(failure));
        }
        let linked = self.serves.as_ref()?;
        let routes = routes_of(linked).map(|name| (name.clone(), self.route(name))).collect();
        Some(Serving::Serves { listener: linked.value.clone(), routes })
    }

    fn route(&self, name: &ResourceName) -> Result<T, Failure> {
        let target = Target::Routes(name.clone());
        match self.routes.get(name) {
            Some(Ok(value)) => Ok(value.clone()),
            Some(Err(status)) => Err(Failure::Resource { target, status: status.clone() }),
            None => Err(Failure::Resource { target, status: Status::new(xds_machine::Code::Unavailable, "not known") }),
        }
    }

    fn missing<'a>(&'a self, linked: &'a Linked<T>) -> impl Iterator<Item = &'a ResourceName> {
        routes_of(linked).filter(|name| !self.routes.contains_key(*name))
    }
}

/// Returns the RouteConfigurations that a server's Listener names.
fn routes_of<T>(linked: &Linked<T>) -> impl Iterator<Item = &ResourceName> {
    let sources = match &*linked.links {
        Links::Listener(ListenerLinks::Socket { routes, .. }) => &routes[..],
        _ => &[],
    };
    sources.iter().filter_map(|source| match source {
        RouteSource::Rds(name) => Some(name),
        RouteSource::Inline(_) => None,
    })
}
