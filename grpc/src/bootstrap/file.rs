//! The bootstrap file as a whole.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::SocketAddr;

use serde_json::Value;
use xds_machine::ResourceName;
use xds_machine::client::{self, Dialect};
use xds_machine::message::Node;
use xds_machine::servers::{self, Policy, ServerId};

use super::authority::{self, Authority};
use super::certificates::CertificateProvider;
use super::credentials::{CredentialsKind, Supports};
use super::duplicates;
use super::features::Era;
use super::json::{Key, Object, string};
use super::node::{Agent, Identity};
use super::server::{self, Server};
use super::target::{Target, TargetError};
use super::template::Template;
use crate::faults::{Faults, Walk};
use crate::resources::Context;

/// A valid bootstrap file, without the parts that have no effect. Equivalent texts give equal values (R-BOOT-40).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Bootstrap {
    /// All servers, each once: those of the file first, and then those of the authorities.
    pub(super) servers: Vec<Server>,
    pub(super) default: Vec<ServerId>,
    pub(super) identity: Identity,
    pub(super) authorities: BTreeMap<String, Authority>,
    pub(super) certificate_providers: BTreeMap<String, CertificateProvider>,
    pub(super) client_template: Template,
    pub(super) server_template: Option<Template>,
}

impl Bootstrap {
    /// Parses a bootstrap file. `supports` returns whether the caller supports a type of credentials.
    ///
    /// # Errors
    ///
    /// Every fault of the text, each with its path, such as `xds_servers[0].channel_creds[1].config`.
    pub fn parse(text: &str, supports: impl Fn(CredentialsKind<'_>) -> bool) -> Result<Self, Faults> {
        let mut walk = Walk::default();
        let file = match serde_json::from_str::<Value>(text) {
            Ok(file) => file,
            Err(error) => {
                walk.fault(format!("is not JSON: {error}"));
                return Err(walk.into_faults());
            }
        };
        duplicates::check(&mut walk, text);
        let bootstrap = Object::read(&mut walk, &file).and_then(|file| Self::read(&mut walk, file, &supports));
        let faults = walk.into_faults();
        match bootstrap {
            Some(bootstrap) if faults.is_empty() => Ok(bootstrap),
            _ => Err(faults),
        }
    }

    fn read(walk: &mut Walk, file: Object<'_>, supports: Supports<'_>) -> Option<Self> {
        let mut servers = Vec::new();
        let mut enlist = |list: Vec<Server>| enlist(&mut servers, list);
        // R-BOOT-08: There is at least one server.
        let default = file.required(walk, "xds_servers", |walk, value| {
            if value.as_array().is_some_and(Vec::is_empty) {
                walk.fault("must be non-empty");
            }
            server::list(walk, value, supports)
        });
        let default = default.map(&mut enlist);
        let authorities = file.field(walk, "authorities", |walk, value| {
            Some(map(walk, value, |walk, name, value| authority::read(walk, name, value, supports, &mut enlist)))
        });
        let certificate_providers = file.field(walk, "certificate_providers", |walk, value| {
            Some(map(walk, value, |walk, _, value| CertificateProvider::read(walk, value)))
        });
        let identity = file.field(walk, "node", Identity::read);
        let mut template = |name| file.field(walk, name, string).filter(|text| !text.is_empty()).map(Template::new);
        let client_template = template("client_default_listener_resource_name_template");
        // R-BOOT-38: There is no default, and an empty template is none.
        let server_template = template("server_listener_resource_name_template");
        Some(Self {
            default: default?,
            identity: identity.unwrap_or_default(),
            authorities: authorities.unwrap_or_default(),
            certificate_providers: certificate_providers.unwrap_or_default(),
            // R-BOOT-31: The default is the name itself.
            client_template: client_template.unwrap_or_else(|| Template::new("%s".into())),
            server_template,
            servers,
        })
    }

    /// Returns all servers, each once, in the order of their numbers.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Returns the servers of names without authority, in order of preference.
    pub fn default_servers(&self) -> impl ExactSizeIterator<Item = &Server> {
        self.default.iter().map(|id| &self.servers[id.0])
    }

    /// Returns the authorities by their names.
    pub fn authorities(&self) -> &BTreeMap<String, Authority> {
        &self.authorities
    }

    /// Returns the servers of an authority, in order of preference: its own, or those of the file (R-BOOT-30).
    pub fn servers_of(&self, authority: &Authority) -> impl ExactSizeIterator<Item = &Server> {
        let ids = if authority.servers.is_empty() { &self.default } else { &authority.servers };
        ids.clone().into_iter().map(|id| &self.servers[id.0])
    }

    /// Returns the part of the node that the file sets.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the providers of certificates by the names of their instances.
    pub fn certificate_providers(&self) -> &BTreeMap<String, CertificateProvider> {
        &self.certificate_providers
    }

    /// Returns the node as requests have it; whatever the file says, user agent and features are those of the client
    /// (R-BOOT-20, R-BOOT-21).
    pub fn node(&self, agent: &Agent<'_>) -> Node {
        self.identity.node(agent)
    }

    /// Returns the configuration of the transport: a client for each server, in the order of
    /// [`servers`](Self::servers), with gRPC's dialect and fallback.
    pub fn servers_config(&self, node: Node, era: Era) -> servers::Config {
        let client = client::Config::new(node).with_dialect(Dialect::Grpc);
        let clients = self.servers.iter().map(|server| server.features.apply(client.clone(), era));
        let config = servers::Config::new(Policy::Grpc, clients).with_default(self.default.iter().copied());
        self.authorities
            .iter()
            .fold(config, |config, (name, authority)| config.with_authority(name, authority.servers.iter().copied()))
    }

    /// Returns the context of a server's resources for the decoders. The server is given by the id of the update's
    /// client ([`Update::client_id`](client::Update::client_id)).
    pub fn context(&self, client_id: u64) -> Context {
        let server = usize::try_from(client_id).ok().and_then(|at| self.servers.get(at));
        Context::default().trusted(server.is_some_and(|server| server.features.trusted_xds_server))
    }

    /// Returns the name of the Listener of a target.
    ///
    /// # Errors
    ///
    /// [`TargetError::UnknownAuthority`] (R-BOOT-35). A name that can't be watched is no error here: the watch is
    /// refused (R-BOOT-36, R-BOOT-37).
    pub fn listener_of(&self, target: &Target) -> Result<ResourceName, TargetError> {
        Ok(self.template_of(target)?.name(target.service()))
    }

    /// Returns the name of the Listener of a server that listens on an address; `None` without a template: then no
    /// server can be made (R-BOOT-38).
    pub fn server_listener(&self, address: SocketAddr) -> Option<ResourceName> {
        Some(self.server_template.as_ref()?.name(&address.to_string()))
    }

    fn template_of(&self, target: &Target) -> Result<&Template, TargetError> {
        let Some(authority) = target.authority() else { return Ok(&self.client_template) };
        let unknown = || TargetError::UnknownAuthority { authority: authority.into() };
        Ok(&self.authorities.get(authority).ok_or_else(unknown)?.template)
    }
}

/// Numbers servers: a server that is already there keeps its number (R-BOOT-30). A server that is in a list twice is in
/// the result once (R-BOOT-09).
fn enlist(all: &mut Vec<Server>, list: Vec<Server>) -> Vec<ServerId> {
    let mut ids = Vec::new();
    for server in list {
        let at = all.iter().position(|known| *known == server).unwrap_or_else(|| {
            all.push(server);
            all.len() - 1
        });
        if !ids.contains(&ServerId(at)) {
            ids.push(ServerId(at));
        }
    }
    ids
}

/// Reads the values of a map; those with faults are left out.
fn map<T>(
    walk: &mut Walk,
    value: &Value,
    mut read: impl FnMut(&mut Walk, &str, &Value) -> Option<T>,
) -> BTreeMap<String, T> {
    let Some(object) = Object::read(walk, value) else { return BTreeMap::new() };
    let each = object
        .entries()
        .into_iter()
        .filter_map(|(name, value)| walk.within(Key(name), |walk| Some((name.clone(), read(walk, name, value)?))));
    each.collect()
}
