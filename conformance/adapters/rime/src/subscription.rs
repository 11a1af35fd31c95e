//! The subscription of a client to a type, between its requests and rime's `Subscriber`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rime_xds::{Server, Snapshot, Subscriber, Update};
use tokio::sync::watch;
use xds_api::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Resource};
use xds_api::pb::google::protobuf::Any;
use xxhash_rust::xxh3::xxh3_64;

use crate::Planes;

pub struct Subscription {
    type_url: String,
    snapshot: Arc<Snapshot>,
    changes: watch::Receiver<()>,
    subscriber: Subscriber,
    /// Whether a request of this type has come.
    asked: bool,
    wildcard: bool,
    names: BTreeSet<String>,
    /// The responses without an answer, by their nonces.
    sent: HashMap<String, Said>,
}

/// The resources that a response has brought, each with its hash, and the names that it has removed.
struct Said {
    brought: Vec<(String, u64)>,
    taken: Vec<String>,
}

impl Subscription {
    pub fn new(planes: &Planes, type_url: String) -> Option<Self> {
        planes.with(&type_url.clone(), |(plane, changes)| {
            let (snapshot, changes) = (plane.snapshot(), changes.clone());
            let subscriber = Server::new(snapshot.clone()).subscribe(changes.clone());
            let (names, sent) = (BTreeSet::new(), HashMap::new());
            Self { type_url, snapshot, changes, subscriber, asked: false, wildcard: false, names, sent }
        })
    }

    pub async fn changed(&mut self) -> Option<Update> {
        self.subscriber.changed().await
    }

    /// Handles a request. Returns the response that it calls for.
    pub fn request(&mut self, request: DeltaDiscoveryRequest) -> Option<DeltaDiscoveryResponse> {
        let answered = self.sent.remove(&request.response_nonce);
        if let (Some(Said { brought, taken }), None) = (answered, &request.error_detail) {
            brought.iter().for_each(|(name, hash)| self.subscriber.acknowledge(name, *hash));
            taken.iter().for_each(|name| self.subscriber.acknowledge_removed(name));
        }
        let first = !std::mem::replace(&mut self.asked, true);
        let no_names = request.resource_names_subscribe.is_empty() && request.resource_names_unsubscribe.is_empty();
        let mut all = first && no_names;
        if first {
            for (name, version) in &request.initial_resource_versions {
                self.subscriber.acknowledge(name, u64::from_str_radix(version, 16).unwrap_or_default());
            }
        }
        // The names that the answer must mention: with the resource if it exists, otherwise as removed.
        let mut named = BTreeSet::new();
        for name in request.resource_names_subscribe {
            if name == "*" {
                all = true;
                if !first {
                    // A new subscriber without the acknowledgements so far: the client may have forgotten all
                    // resources.
                    self.subscriber = Server::new(self.snapshot.clone()).subscribe(self.changes.clone());
                }
            } else {
                self.names.insert(name.clone());
                named.insert(name);
            }
        }
        self.wildcard |= all;
        for name in request.resource_names_unsubscribe {
            if name == "*" {
                self.wildcard = false;
            } else if self.names.remove(&name) && self.wildcard {
                named.insert(name);
            }
        }
        // The client may have forgotten the resources that it names.
        named.iter().for_each(|name| self.subscriber.acknowledge_removed(name));
        let mut update = Update { resources: Vec::new(), removed: Vec::new() };
        if all {
            update = self.subscriber.initial();
        } else if first {
            // Called only so that changes from here on are reported.
            self.subscriber.initial();
        }
        let there = self.snapshot.load();
        for name in named {
            match there.get(&name) {
                Some(_) if all => {} // in the update
                Some(body) => update.resources.push((name, body.clone())),
                None => update.removed.push(name),
            }
        }
        self.respond(update, all && first)
    }

    /// Makes a response of an update of rime, as far as the client has asked for it.
    pub fn respond(&self, update: Update, even_empty: bool) -> Option<DeltaDiscoveryResponse> {
        let wanted = |name: &str| self.wildcard || self.names.contains(name);
        let resources = update.resources.into_iter().filter(|(name, _)| wanted(name)).map(|(name, body)| Resource {
            name,
            version: format!("{:x}", xxh3_64(&body)),
            resource: Some(Any { type_url: self.type_url.clone(), value: body.to_vec() }),
            ..Resource::default()
        });
        let response = DeltaDiscoveryResponse {
            system_version_info: "1".to_owned(),
            resources: resources.collect(),
            type_url: self.type_url.clone(),
            removed_resources: update.removed.into_iter().filter(|name| wanted(name)).collect(),
            ..DeltaDiscoveryResponse::default()
        };
        let empty = response.resources.is_empty() && response.removed_resources.is_empty();
        (even_empty || !empty).then_some(response)
    }

    /// Remembers the content of a response, until it is answered.
    pub fn note_sent(&mut self, response: &DeltaDiscoveryResponse) {
        let brought = response.resources.iter().filter_map(|resource| {
            let body = &resource.resource.as_ref()?.value;
            Some((resource.name.clone(), xxh3_64(body)))
        });
        let said = Said { brought: brought.collect(), taken: response.removed_resources.clone() };
        self.sent.insert(response.nonce.clone(), said);
    }
}
