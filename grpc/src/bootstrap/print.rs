//! Writes a bootstrap file.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value, json};
use xds_machine::servers::ServerId;

use super::authority::default_template;
use super::credentials::Credentials;
use super::file::Bootstrap;
use super::node::Identity;
use super::server::Server;

impl Bootstrap {
    /// Returns the file as JSON, without the parts that have no effect: parsing it gives an equal value (R-BOOT-40).
    /// The configurations of credentials are written, unlike by `Debug`.
    pub fn to_json(&self) -> String {
        let servers = |ids: &[ServerId]| ids.iter().map(|id| server(&self.servers[id.0])).collect::<Vec<_>>();
        let authorities = self.authorities.iter().map(|(name, authority)| {
            // A default with an escaped name does not begin with the name, as a template has to.
            let template = Some(authority.template.as_str()).filter(|template| **template != default_template(name));
            let authority = json!({
                "client_listener_resource_name_template": template,
                "xds_servers": servers(&authority.servers),
                "fallback_on_reachability_only": authority.fallback_on_reachability_only,
            });
            (name.clone(), authority)
        });
        let providers = self
            .certificate_providers
            .iter()
            .map(|(name, provider)| (name.clone(), json!({"plugin_name": provider.plugin, "config": provider.config})));
        json!({
            "xds_servers": servers(&self.default),
            "node": self.identity.to_json(),
            "authorities": authorities.collect::<Map<_, _>>(),
            "certificate_providers": providers.collect::<Map<_, _>>(),
            "client_default_listener_resource_name_template": self.client_template.as_str(),
            "server_listener_resource_name_template": self.server_template.as_ref().map(|template| template.as_str()),
        })
        .to_string()
    }
}

impl Identity {
    /// Returns the node as the file has it, without empty parts.
    pub fn to_json(&self) -> Value {
        let mut node = Map::new();
        let mut set = |key: &str, value: Value| {
            if !matches!(&value, Value::String(text) if text.is_empty()) {
                node.insert(key.into(), value);
            }
        };
        set("id", json!(self.id));
        set("cluster", json!(self.cluster));
        if let Some(locality) = &self.locality {
            let parts = [("region", &locality.region), ("zone", &locality.zone), ("sub_zone", &locality.sub_zone)];
            let parts = parts.into_iter().filter(|(_, part)| !part.is_empty());
            set("locality", parts.map(|(name, part)| (name.into(), json!(part))).collect::<Map<_, _>>().into());
        }
        if !self.metadata.is_empty() {
            set("metadata", json!(self.metadata));
        }
        node.into()
    }
}

fn server(server: &Server) -> Value {
    json!({
        "server_uri": server.uri,
        "channel_creds": [credentials(&server.credentials)],
        "call_creds": server.call_credentials.iter().map(credentials).collect::<Vec<_>>(),
        "server_features": server.features.names(),
    })
}

fn credentials(credentials: &Credentials) -> Value {
    json!({"type": credentials.kind, "config": credentials.config})
}
