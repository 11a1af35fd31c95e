//! The store: quilkin-xds has none, and asks its application's `Configuration` what is new to a client. This one
//! decides as quilkin's own does: a subscription without names is everything, and a resource that the client has and
//! the store has not is removed. Besides, it knows `*`, and reports a name that is asked for and does not exist as
//! removed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quilkin_xds::Result;
use quilkin_xds::config::{ClientState, Configuration, DeltaDiscoveryRes};
use quilkin_xds::discovery::Resource;
use quilkin_xds::server::ControlPlane;
use serde_json::Value;
use tokio::sync::watch;

const TYPES: [&str; 4] = [
    "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
    "type.googleapis.com/envoy.config.listener.v3.Listener",
    "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
];

type Resources = BTreeMap<(String, String), Resource>;

/// The resources by type and name, and the number of puts so far.
#[derive(Default)]
pub struct Store(Mutex<(Resources, u64)>);

impl Store {
    /// Applies an operation. Returns the types of which something has changed.
    pub fn apply(&self, op: &Value) -> Result<BTreeSet<&'static str>, String> {
        let mut store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (resources, puts) = &mut *store;
        apply(resources, puts, op)
    }
}

fn apply(resources: &mut Resources, puts: &mut u64, op: &Value) -> Result<BTreeSet<&'static str>, String> {
    let text = |key: &str| op[key].as_str().map(str::to_owned).ok_or_else(|| format!("{key} is missing"));
    let served = || {
        let of = text("type")?;
        TYPES.into_iter().find(|known| *known == of).ok_or_else(|| format!("{of} is not served"))
    };
    match text("op")?.as_str() {
        "batch" => {
            let mut changed = BTreeSet::new();
            for op in op["ops"].as_array().into_iter().flatten() {
                changed.extend(apply(resources, puts, op)?);
            }
            Ok(changed)
        }
        "clear" => {
            resources.clear();
            Ok(TYPES.into())
        }
        "put" => {
            let (of, name) = (served()?, text("name")?);
            let value = STANDARD.decode(text("any")?).map_err(|error| error.to_string())?;
            *puts += 1;
            let resource = Some(prost_types::Any { type_url: of.to_owned(), value });
            let resource = Resource { name: name.clone(), version: puts.to_string(), resource, ..Resource::default() };
            resources.insert((of.to_owned(), name), resource);
            Ok([of].into())
        }
        "delete" => {
            let of = served()?;
            resources.remove(&(of.to_owned(), text("name")?));
            Ok([of].into())
        }
        other => Err(format!("{other} is not supported")),
    }
}

impl Configuration for Store {
    fn identifier(&self) -> String {
        "kit".into()
    }

    fn is_leader(&self) -> Option<bool> {
        None
    }

    fn apply_delta(&self, _: &str, _: Vec<Resource>, _: &[String], _: Option<IpAddr>) -> Result<()> {
        Ok(())
    }

    fn allow_request_processing(&self, resource_type: &str) -> bool {
        TYPES.contains(&resource_type)
    }

    fn delta_discovery_request(&self, client: &ClientState) -> Result<DeltaDiscoveryRes> {
        let store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = client.subscribed.is_empty() || client.subscribed.contains("*");
        let of_type = store.0.iter().filter(|((of, _), _)| *of == client.resource_type);
        let new = of_type
            .map(|(_, resource)| resource)
            .filter(|resource| all || client.subscribed.contains(&resource.name))
            .filter(|resource| !client.version_matches(&resource.name, &resource.version));
        let asked = client.subscribed.iter().filter(|name| *name != "*");
        let gone = |name: &&String| !store.0.contains_key(&(client.resource_type.clone(), (*name).clone()));
        let removed: HashSet<String> = client.versions.keys().chain(asked).filter(gone).cloned().collect();
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
