//! The common form of both variants' messages, as far as a replay compares them.

use std::collections::BTreeSet;
use std::fmt;

use xds_machine::message::delta::Versions;
use xds_machine::message::{delta, sotw};
use xds_machine::{Delta, Nonce, ResourceName, Sotw, TypeUrl, Version};

use crate::variant::Both;

/// A variant whose messages can be compared with recorded ones.
pub trait Wire: Both {
    /// Returns the parts of a request that must be equal.
    fn asked(request: Self::Request) -> Asked;
    /// Returns the parts of a response that must be equal.
    fn said(response: Self::Response) -> Said;
    /// Replaces the nonce of a request.
    fn set_nonce(request: &mut Self::Request, nonce: Nonce);

    /// Returns the number of resources without content.
    fn heartbeats(response: &Self::Response) -> usize;
}

/// The parts of a request that must be equal. The content of the node, the text and code of an error, and the order of
/// names differ among clients.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Asked {
    /// The type.
    pub type_url: TypeUrl,
    /// `resource_names`, or those to subscribe to.
    pub names: BTreeSet<ResourceName>,
    /// Delta: the names to unsubscribe.
    pub unsubscribe: BTreeSet<ResourceName>,
    /// Delta: the claimed versions.
    pub initial: Versions,
    /// SotW: the version that was accepted last.
    pub version: Version,
    /// The nonce, or none.
    pub nonce: Nonce,
    /// Whether the request is a NACK.
    pub nack: bool,
    /// Whether it has a node.
    pub node: bool,
}

/// A response.
pub struct Said {
    /// The type.
    pub type_url: TypeUrl,
    /// The names of its resources.
    pub names: Vec<ResourceName>,
    /// The nonce, or none.
    pub nonce: Nonce,
}

impl Wire for Sotw {
    fn asked(request: sotw::Request) -> Asked {
        request.into()
    }

    fn said(response: sotw::Response) -> Said {
        response.into()
    }

    fn set_nonce(request: &mut sotw::Request, nonce: Nonce) {
        request.nonce = nonce;
    }

    fn heartbeats(response: &sotw::Response) -> usize {
        let beats = |item: &&sotw::Item| matches!(item, sotw::Item::Wrapped(resource) if resource.body.is_none());
        response.resources.iter().filter(beats).count()
    }
}

impl Wire for Delta {
    fn asked(request: delta::Request) -> Asked {
        request.into()
    }

    fn said(response: delta::Response) -> Said {
        response.into()
    }

    fn set_nonce(request: &mut delta::Request, nonce: Nonce) {
        request.nonce = nonce;
    }

    fn heartbeats(response: &delta::Response) -> usize {
        response.resources.iter().filter(|resource| resource.body.is_none()).count()
    }
}

impl From<sotw::Request> for Asked {
    fn from(request: sotw::Request) -> Self {
        Self {
            type_url: request.type_url,
            names: request.names.into_iter().collect(),
            unsubscribe: BTreeSet::new(),
            initial: Versions::default(),
            version: request.version,
            nonce: request.nonce,
            nack: request.error.is_some(),
            node: request.node.is_some(),
        }
    }
}

impl From<delta::Request> for Asked {
    fn from(request: delta::Request) -> Self {
        Self {
            type_url: request.type_url,
            names: request.subscribe.into_iter().collect(),
            unsubscribe: request.unsubscribe.into_iter().collect(),
            initial: request.initial_versions,
            version: Version::default(),
            nonce: request.nonce,
            nack: request.error.is_some(),
            node: request.node.is_some(),
        }
    }
}

impl From<sotw::Response> for Said {
    fn from(response: sotw::Response) -> Self {
        let name = |item: sotw::Item| match item {
            sotw::Item::Bare(any) => first_string(&any.value),
            sotw::Item::Wrapped(resource) => Some(resource.name),
            sotw::Item::Malformed => panic!("no recording has a malformed wrapper"),
        };
        let names = response.resources.into_iter().filter_map(name).collect();
        Self { type_url: response.type_url, names, nonce: response.nonce }
    }
}

impl From<delta::Response> for Said {
    fn from(response: delta::Response) -> Self {
        let names = response.resources.into_iter().map(|resource| resource.name).collect();
        Self { type_url: response.type_url, names, nonce: response.nonce }
    }
}

/// Returns the name of a resource: field 1 of all recorded types, written first. Some resources are malformed on
/// purpose.
fn first_string(body: &[u8]) -> Option<ResourceName> {
    let [0x0a, len, rest @ ..] = body else { return None };
    Some(std::str::from_utf8(rest.get(..usize::from(*len))?).ok()?.into())
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |names: &BTreeSet<ResourceName>| names.iter().map(ResourceName::as_str).collect::<Vec<_>>().join(",");
        let short = self.type_url.as_str().rsplit('.').next().unwrap_or_default();
        write!(f, "{short} [{}] -[{}] irv{:?}", list(&self.names), list(&self.unsubscribe), self.initial)?;
        write!(f, " v={} n={}{}", self.version, self.nonce, if self.nack { " nack" } else { "" })?;
        f.write_str(if self.node { " node" } else { "" })
    }
}
