//! The store: quilkin-xds has none. Its `Configuration`, which the application implements, is given the state of a
//! client, and returns what is new to that client. It is not given what has changed since that state, so it looks at
//! all resources, as quilkin's own does.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use harness::data::{TYPE_URL, body, name};
use quilkin_xds::Result;
use quilkin_xds::config::{ClientState, Configuration, DeltaDiscoveryRes};
use quilkin_xds::discovery::Resource;
use quilkin_xds::server::ControlPlane;
use tokio::sync::watch;
use xxhash_rust::xxh3::xxh3_64;

pub struct Config(Mutex<BTreeMap<String, Resource>>);

impl Config {
    pub fn new(n: usize) -> Self {
        Self(Mutex::new((0..n).map(|at| (name(at), resource(at, 0))).collect()))
    }

    pub fn resources(&self) -> MutexGuard<'_, BTreeMap<String, Resource>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn change(&self, at: usize, round: u8) {
        self.resources().insert(name(at), resource(at, round));
    }
}

fn resource(at: usize, round: u8) -> Resource {
    let name = name(at);
    let body = body(&name, round);
    let version = format!("{:016x}", xxh3_64(&body));
    let resource = prost_types::Any { type_url: TYPE_URL.into(), value: body.into() };
    Resource { name, version, resource: Some(resource), ..Resource::default() }
}

impl Configuration for Config {
    fn identifier(&self) -> String {
        "peer".into()
    }

    fn is_leader(&self) -> Option<bool> {
        None
    }

    fn apply_delta(&self, _: &str, _: Vec<Resource>, _: &[String], _: Option<IpAddr>) -> Result<()> {
        Ok(())
    }

    fn allow_request_processing(&self, resource_type: &str) -> bool {
        resource_type == TYPE_URL
    }

    fn delta_discovery_request(&self, client: &ClientState) -> Result<DeltaDiscoveryRes> {
        let all = self.resources();
        let wanted = |name: &str| client.subscribed.is_empty() || client.subscribed.contains(name);
        let new = all.values().filter(|resource| wanted(&resource.name));
        let new = new.filter(|resource| !client.version_matches(&resource.name, &resource.version));
        let removed: HashSet<String> =
            client.versions.keys().filter(|name| !all.contains_key(*name)).cloned().collect();
        Ok(DeltaDiscoveryRes { resources: new.cloned().collect(), removed })
    }

    fn on_changed(
        &self,
        _: ControlPlane<Self>,
        _: watch::Receiver<()>,
    ) -> impl std::future::Future<Output = ()> + Send + 'static {
        std::future::ready(())
    }

    fn interested_resources(&self, _: &str) -> impl Iterator<Item = (&'static str, Vec<String>)> {
        std::iter::empty()
    }

    fn client_disconnected(&self, _: IpAddr) {}
}
