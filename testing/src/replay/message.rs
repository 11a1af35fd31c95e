//! What the messages of both variants have in common, as far as a replay looks at them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::Bytes;
use xds_machine::message::{delta, sotw};
use xds_machine::{Delta, Nonce, ResourceName, Sotw, TypeUrl, Version, client, proto, server};

/// A variant whose messages can be read from bytes.
pub trait Wire:
    client::Variant<Request = <Self as Wire>::Req, Response = <Self as Wire>::Resp>
    + server::Variant<Request = <Self as Wire>::Req>
{
    type Req: Into<Asked> + Clone;
    type Resp: Into<Said> + Clone;

    /// Whether each request lists all that is wanted.
    const LISTS: bool;

    fn request(bytes: &Bytes) -> Self::Req;
    fn response(bytes: &Bytes) -> Self::Resp;
    fn set_nonce(request: &mut Self::Req, nonce: Nonce);

    /// How many resources of a response have no content. For `tests/ttl.rs`.
    #[allow(dead_code)]
    fn heartbeats(response: &Self::Resp) -> usize;
}

/// A request: all that must be equal. What is in the node, the text and the code of an error, and the order of names
/// differ from client to client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Asked {
    pub type_url: TypeUrl,
    /// `resource_names`, or those to subscribe to.
    pub names: BTreeSet<ResourceName>,
    pub unsubscribe: BTreeSet<ResourceName>,
    pub initial: BTreeMap<ResourceName, Version>,
    pub version: Version,
    pub nonce: Nonce,
    pub nack: bool,
    /// Whether it has a node.
    pub node: bool,
}

/// A response.
pub struct Said {
    pub type_url: TypeUrl,
    pub names: Vec<ResourceName>,
    pub nonce: Nonce,
}

impl Wire for Sotw {
    type Req = sotw::Request;
    type Resp = sotw::Response;

    const LISTS: bool = true;

    fn request(bytes: &Bytes) -> sotw::Request {
        proto::sotw::decode_request(bytes.clone()).expect("a DiscoveryRequest")
    }

    fn response(bytes: &Bytes) -> sotw::Response {
        proto::sotw::decode_response(bytes.clone()).expect("a DiscoveryResponse")
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
    type Req = delta::Request;
    type Resp = delta::Response;

    const LISTS: bool = false;

    fn request(bytes: &Bytes) -> delta::Request {
        proto::delta::decode_request(bytes.clone()).expect("a DeltaDiscoveryRequest")
    }

    fn response(bytes: &Bytes) -> delta::Response {
        proto::delta::decode_response(bytes.clone()).expect("a DeltaDiscoveryResponse")
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
            initial: BTreeMap::new(),
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

/// The name of a resource: field 1 of all types that are in the recordings, and written first. Some are broken on purpose.
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
