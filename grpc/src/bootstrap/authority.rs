//! The authorities of structured names (`authorities`, gRFC A47).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;
use xds_machine::servers::ServerId;

use super::credentials::Supports;
use super::json::{Object, string};
use super::percent;
use super::server::{self, Server};
use super::template::Template;
use crate::faults::Walk;

/// An authority of structured names.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Authority {
    pub(super) template: Template,
    /// The own servers; empty if those of the file are used.
    pub(super) servers: Vec<ServerId>,
    pub(super) fallback_on_reachability_only: bool,
}

impl Authority {
    /// Returns the template of Listener names (`client_listener_resource_name_template`), or its default.
    pub fn listener_template(&self) -> &str {
        self.template.as_str()
    }

    /// Returns whether the next server is used only if one can't be reached (gRFC A95).
    pub fn fallback_on_reachability_only(&self) -> bool {
        self.fallback_on_reachability_only
    }
}

/// Reads an authority, with its servers, which `enlist` numbers.
pub(super) fn read(
    walk: &mut Walk,
    name: &str,
    value: &Value,
    supports: Supports<'_>,
    enlist: &mut dyn FnMut(Vec<Server>) -> Vec<ServerId>,
) -> Option<Authority> {
    let authority = Object::read(walk, value)?;
    let template = authority.field(walk, "client_listener_resource_name_template", |walk, value| {
        let text = string(walk, value).filter(|text| !text.is_empty())?;
        // R-BOOT-28: The names of an authority's template are names of the authority.
        let prefix = format!("xdstp://{name}/");
        if !text.starts_with(&prefix) {
            walk.fault(format!("field must begin with \"{prefix}\""));
        }
        Some(text)
    });
    let servers = authority.field(walk, "xds_servers", |walk, value| server::list(walk, value, supports));
    let fallback = authority.field(walk, "fallback_on_reachability_only", |walk, value| {
        let flag = value.as_bool();
        if flag.is_none() {
            walk.fault("is not a boolean");
        }
        flag
    });
    Some(Authority {
        template: Template::new(template.unwrap_or_else(|| default_template(name))),
        servers: enlist(servers.unwrap_or_default()),
        fallback_on_reachability_only: fallback.unwrap_or_default(),
    })
}

/// R-BOOT-29: Returns the default template, which makes names of the authority's Listeners.
pub(super) fn default_template(name: &str) -> String {
    format!("xdstp://{}/envoy.config.listener.v3.Listener/%s", percent::encode(name, percent::in_authority))
}
