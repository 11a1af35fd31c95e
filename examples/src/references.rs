//! Decodes resources of the xDS API and finds their references: listeners to routes to clusters to endpoints.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost_reflect::{DynamicMessage, ReflectMessage, Value};
use xds_machine::type_url::{CLUSTER, ENDPOINT, ROUTE};
use xds_machine::{ResourceName, TypeUrl, WILDCARD};

use crate::reader::{DESCRIPTORS, any_name};

/// A resource that another resource refers to.
pub type Target = (TypeUrl, ResourceName);

/// The fields that hold references: message, field and the type of the resource that the field names.
const FIELDS: [(&str, &str, &str); 8] = [
    ("envoy.extensions.filters.network.http_connection_manager.v3.Rds", "route_config_name", ROUTE),
    ("envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "cluster", CLUSTER),
    ("envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight", "name", CLUSTER),
    ("envoy.config.route.v3.RouteAction", "cluster", CLUSTER),
    ("envoy.config.route.v3.RouteAction.RequestMirrorPolicy", "cluster", CLUSTER),
    ("envoy.config.route.v3.WeightedCluster.ClusterWeight", "name", CLUSTER),
    ("envoy.extensions.clusters.aggregate.v3.ClusterConfig", "clusters", CLUSTER),
    ("envoy.config.cluster.v3.Cluster.EdsClusterConfig", "service_name", ENDPOINT),
];

/// Decodes a resource completely. Returns `None` if its type has no descriptor.
pub fn decode(type_url: &TypeUrl, body: &Bytes) -> Result<Option<DynamicMessage>, String> {
    let name = any_name(type_url.as_str());
    let Some(kind) = DESCRIPTORS.get_message_by_name(name) else { return Ok(None) };
    match DynamicMessage::decode(kind, body.clone()) {
        Ok(message) => Ok(Some(message)),
        Err(error) => Err(format!("is no {name}: {error}")),
    }
}

/// Returns every resource that a resource refers to, at any depth.
pub fn references(resource: &DynamicMessage) -> BTreeSet<Target> {
    let mut found = BTreeSet::new();
    look(resource, &mut found);
    let text = |field| resource.get_field_by_name(field).and_then(|value| Some(value.as_str()?.to_string()));
    // An EDS cluster without a service name gets its endpoints under its own name.
    let eds = resource.descriptor().full_name() == "envoy.config.cluster.v3.Cluster"
        && resource.get_field_by_name("type").is_some_and(|kind| kind.as_enum_number() == Some(3));
    if let Some(name) = text("name").filter(|_| eds && !found.iter().any(|(kind, _)| *kind == ENDPOINT)) {
        found.insert((ENDPOINT.into(), name.into()));
    }
    found
}

fn look(message: &DynamicMessage, found: &mut BTreeSet<Target>) {
    let kind = message.descriptor();
    if let Some(inner) = (kind.full_name() == "google.protobuf.Any").then(|| open(message)).flatten() {
        return look(&inner, found);
    }
    for (field, value) in message.fields() {
        let known = FIELDS.iter().find(|(message, name, _)| *message == kind.full_name() && *name == field.name());
        let mut name = |value: &Value| match (known, value.as_str()) {
            (Some((_, _, target)), Some(name)) if !name.is_empty() => _ = found.insert(((*target).into(), name.into())),
            _ => {}
        };
        name(value);
        value.as_list().into_iter().flatten().for_each(name);
        each_message(value, &mut |inner| look(inner, found));
    }
}

fn each_message(value: &Value, each: &mut dyn FnMut(&DynamicMessage)) {
    match value {
        Value::Message(inner) => each(inner),
        Value::List(list) => list.iter().for_each(|value| each_message(value, each)),
        Value::Map(map) => map.values().for_each(|value| each_message(value, each)),
        _ => {}
    }
}

/// Decodes the content of an `Any`.
fn open(any: &DynamicMessage) -> Option<DynamicMessage> {
    let (type_url, body) = (any.get_field_by_number(1)?, any.get_field_by_number(2)?);
    decode(&type_url.as_str()?.into(), body.as_bytes()?).ok()?
}

/// Tracks which resources are subscribed because others refer to them.
#[derive(Default)]
pub struct Follower {
    /// Resources that the user subscribed to.
    roots: BTreeSet<Target>,
    /// Resources that the client holds, with their references.
    held: BTreeMap<Target, BTreeSet<Target>>,
    /// Resources that are subscribed in addition to the roots.
    followed: BTreeSet<Target>,
}

impl Follower {
    pub fn new(roots: impl IntoIterator<Item = Target>) -> Self {
        Self { roots: roots.into_iter().collect(), ..Self::default() }
    }

    /// Records resources with their references, or their removal as `None`. Returns the targets to subscribe to and
    /// those to unsubscribe from.
    pub fn follow(&mut self, changes: Vec<(Target, Option<BTreeSet<Target>>)>) -> (Vec<Target>, Vec<Target>) {
        for (resource, references) in changes {
            match references {
                Some(references) => _ = self.held.insert(resource, references),
                None => _ = self.held.remove(&resource),
            }
        }
        let mut reached: BTreeSet<&Target> = self.held.keys().filter(|held| self.is_root(held)).collect();
        let mut next: Vec<&Target> = reached.iter().copied().collect();
        while let Some(target) = next.pop() {
            let references = self.held.get(target).into_iter().flatten();
            next.extend(references.filter(|&target| reached.insert(target)));
        }
        let wanted: BTreeSet<Target> = reached.into_iter().filter(|target| !self.is_root(target)).cloned().collect();
        let held = std::mem::take(&mut self.held);
        self.held = held.into_iter().filter(|(held, _)| self.is_root(held) || wanted.contains(held)).collect();
        let more = wanted.difference(&self.followed).cloned().collect();
        let less = self.followed.difference(&wanted).cloned().collect();
        self.followed = wanted;
        (more, less)
    }

    /// Returns whether the user subscribed to a target, by name or by the wildcard.
    fn is_root(&self, target: &Target) -> bool {
        self.roots.contains(target) || self.roots.contains(&(target.0.clone(), WILDCARD.into()))
    }
}
