//! The resources that a management server has sent to its clients, and the verdicts on them.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::message::{ClientConfig, ConfigStatus, ErrorState, Item};
use crate::message::Node;
use crate::name::Version;
use crate::server::{Delivered, DeliveryStatus, Server, Source, Variant};
use crate::type_url;

/// Returns the server's view of one stream: one item for each resource that the client subscribes to (R-CSDS-32). A
/// type that the client never subscribed to has no items. `contents`: whether to show the bodies that the server would
/// serve now (R-CSDS-36).
///
/// The bodies of secrets are never shown: a caller that may see the status need not be one that may have the keys.
pub fn view<V: Variant, S: Source>(server: &Server<V>, source: &S, contents: bool) -> Vec<Item> {
    let mut items = Vec::new();
    for type_url in server.types() {
        let contents = contents && *type_url != type_url::SECRET;
        let item = |delivered: Delivered<'_>| {
            let error = delivered
                .rejection
                .filter(|_| delivered.is_named)
                .map(|details| Box::new(ErrorState { details: details.into(), version: Version::default(), at: None }));
            Item {
                type_url: type_url.clone(),
                name: delivered.name.clone(),
                version: delivered.resource.map(|_| delivered.version.clone()),
                contents: delivered.resource.filter(|_| contents).map(|resource| resource.body().clone()),
                updated: None,
                config_status: Some(config_status(&delivered)),
                client_status: None,
                error,
            }
        };
        items.extend(server.deliveries(type_url, source).into_iter().map(item));
    }
    items
}

fn config_status(delivered: &Delivered<'_>) -> ConfigStatus {
    match delivered.delivery.status {
        // A change waits to be sent: the client does not have the current form (R-CSDS-35).
        DeliveryStatus::NotSent if delivered.delivery.earlier => ConfigStatus::Stale,
        // Nothing was said of it, whatever becomes of the responses that lack it.
        _ if !delivered.is_named => ConfigStatus::NotSent,
        DeliveryStatus::Rejected => ConfigStatus::Error,
        DeliveryStatus::Sent => ConfigStatus::Stale,
        DeliveryStatus::Acknowledged if delivered.resource.is_some() => ConfigStatus::Synced,
        // A resource that does not exist is never in sync, because nothing of it can be sent.
        DeliveryStatus::NotSent | DeliveryStatus::Acknowledged => ConfigStatus::NotSent,
    }
}

/// The clients that are connected now: the streams of one node make one client (R-CSDS-31).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Nodes {
    /// By the id of the node; each stream without an id is a client of its own.
    clients: BTreeMap<(String, usize), (Arc<Node>, Vec<Item>)>,
}

impl Nodes {
    /// Makes an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the items of one stream. The client's node is that of its first stream.
    pub fn add(&mut self, node: &Arc<Node>, items: Vec<Item>) {
        let anonymous = if node.id.is_empty() { self.clients.len() } else { 0 };
        let (_, all) = self.clients.entry((node.id.clone(), anonymous)).or_insert_with(|| (node.clone(), Vec::new()));
        all.extend(items);
    }

    /// Returns the clients in the order of their ids. If several streams of a node subscribe to a resource, the item
    /// with the greatest [`ConfigStatus`] is shown: a resource is in sync if it is in sync on all streams.
    pub fn into_clients(self) -> Vec<ClientConfig> {
        let client = |(node, items): (Arc<Node>, Vec<Item>)| {
            let mut client = ClientConfig::new(Some(node), "", items);
            client.items.dedup_by(|next, kept| {
                let same = (&next.type_url, &next.name) == (&kept.type_url, &kept.name);
                if same && next.config_status > kept.config_status {
                    core::mem::swap(next, kept);
                }
                same
            });
            client
        };
        self.clients.into_values().map(client).collect()
    }
}
