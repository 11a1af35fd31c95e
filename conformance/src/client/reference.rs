//! A client that cannot be told what to ask for: the resources of other types that the kit serves make it ask.
//!
//! An Envoy asks for all listeners and clusters, and for the endpoints of each cluster. A gRPC client asks for a
//! listener, whose routes name clusters, which have endpoints.

use std::collections::BTreeSet;

use crate::message::{Item, Request, Response, Variant};
use crate::resource::{self, field};

const ROUTER: &str = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
const MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/// The resources that the kit serves so that the client asks for endpoints.
#[derive(Clone, Debug, Default)]
pub(super) struct Reference {
    /// The clusters whose endpoints the client is to ask for.
    clusters: BTreeSet<String>,
    /// The listener that a gRPC client asks for; `None` for an Envoy.
    listener: Option<String>,
    /// The clusters that were served on the streams that are open.
    served: BTreeSet<String>,
    /// Whether each type has a stream of its own.
    separate: bool,
}

impl Reference {
    /// Begins without clusters.
    pub(super) fn new(separate: bool) -> Self {
        Self { separate, ..Self::default() }
    }

    /// Returns whether a type is one that only makes the client ask for others.
    pub(super) fn serves(type_url: &str) -> bool {
        [resource::type_url("lds"), resource::type_url("cds")].contains(&type_url)
    }

    /// Returns whether the client always asks for all clusters, as an Envoy does.
    pub(super) fn asks_for_clusters(&self) -> bool {
        self.listener.is_none()
    }

    /// Changes the names that the client is to ask for. Returns the response that makes it do so.
    pub(super) fn want(&mut self, names: &[String], leave: bool, variant: Variant) -> Response {
        for name in names {
            if leave {
                self.clusters.remove(name)
            } else {
                self.clusters.insert(name.clone())
            };
        }
        if self.listener.is_some() {
            return self.listeners();
        }
        match variant {
            Variant::Sotw => self.all_clusters(),
            Variant::Delta if leave => {
                Response { removed: names.to_vec(), ..response(resource::type_url("cds"), Vec::new()) }
            }
            Variant::Delta => {
                let items = names.iter().map(|name| self.cluster(name, variant)).collect();
                response(resource::type_url("cds"), items)
            }
        }
    }

    /// Handles a request. Returns the response to send.
    pub(super) fn request(&mut self, request: &Request, first: bool, variant: Variant) -> Option<Response> {
        let (type_url, names) = (&request.type_url, &request.names);
        if type_url == resource::type_url("lds") {
            let name = names.iter().find(|name| *name != "*");
            self.listener = name.cloned().or(self.listener.take());
            return first.then(|| self.listeners());
        }
        if first {
            self.served.clear();
        }
        self.served.retain(|name| names.contains(name));
        let is_new = |name: &String| self.clusters.contains(name) && !self.served.contains(name);
        if self.listener.is_none() {
            let items = self.clusters.iter().map(|name| self.cluster(name, variant)).collect();
            // The clusters that were removed while there was no stream.
            let gone = request.initial.keys().filter(|name| !self.clusters.contains(*name)).cloned().collect();
            return first.then(|| Response { removed: gone, ..response(resource::type_url("cds"), items) });
        }
        if !names.iter().any(is_new) {
            return None;
        }
        let asked: Vec<String> = names.iter().filter(|name| self.clusters.contains(*name)).cloned().collect();
        self.served.extend(asked.iter().cloned());
        let items = asked.iter().map(|name| self.cluster(name, variant)).collect();
        Some(response(resource::type_url("cds"), items))
    }

    /// Returns all listeners, the content of the barrier.
    pub(super) fn listeners(&self) -> Response {
        let items = self.listener.iter().map(|name| item(resource::type_url("lds"), name, self.grpc_listener(name)));
        response(resource::type_url("lds"), items.collect())
    }

    fn all_clusters(&self) -> Response {
        let items = self.clusters.iter().map(|name| self.cluster(name, Variant::Sotw)).collect();
        response(resource::type_url("cds"), items)
    }

    fn cluster(&self, name: &str, variant: Variant) -> Item {
        let type_url = resource::type_url("cds");
        if !self.separate {
            return item(type_url, name, resource::body(type_url, name, 1));
        }
        let api_type = if variant == Variant::Delta { 3 } else { 2 };
        let service = field(1, &field(1, b"xds")); // envoy_grpc.cluster_name
        let api = [vec![0x08, api_type, 0x40, 2], field(4, &service)].concat();
        let source = [field(2, &api), vec![0x30, 2]].concat(); // api_config_source, resource_api_version: V3
        let timeout = field(4, &[0x08, 1]);
        item(type_url, name, [field(1, name.as_bytes()), vec![0x10, 3], field(3, &field(1, &source)), timeout].concat())
    }

    /// Returns a listener whose routes name the clusters.
    fn grpc_listener(&self, name: &str) -> Vec<u8> {
        let weighted = |cluster: &String| field(1, &[field(1, cluster.as_bytes()), field(2, &[0x08, 1])].concat());
        let clusters: Vec<u8> = self.clusters.iter().flat_map(weighted).collect();
        let route = [field(1, &field(1, b"")), field(2, &field(3, &clusters))].concat();
        let routes = if self.clusters.is_empty() { Vec::new() } else { field(3, &route) };
        let host = [field(1, b"kit"), field(2, b"*"), routes].concat();
        let config = [field(1, b"kit"), field(2, &host)].concat();
        let filter = [field(1, b"router"), field(4, &field(1, ROUTER.as_bytes()))].concat();
        let manager = [field(4, &config), field(5, &filter)].concat();
        let any = [field(1, MANAGER.as_bytes()), field(2, &manager)].concat();
        // api_listener has the number 19, whose key takes two bytes.
        let api = field(1, &any);
        let mut listener = field(1, name.as_bytes());
        listener.extend([0x9a, 0x01]);
        listener.extend(&field(1, &api)[1..]); // the length and the bytes
        listener
    }
}

fn item(type_url: &str, name: &str, body: Vec<u8>) -> Item {
    Item {
        name: name.to_owned(),
        version: "r1".into(),
        body: Some(body.into()),
        any_type: type_url.to_owned(),
        revision: Some(1),
        ..Item::default()
    }
}

fn response(type_url: &str, resources: Vec<Item>) -> Response {
    Response { type_url: type_url.to_owned(), resources, ..Response::default() }
}
