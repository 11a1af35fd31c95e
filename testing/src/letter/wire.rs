//! Messages as the naive peers read and write them, in one form for both variants.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use xds_machine::message::{Any, Node, Resource, ResourceError, delta, sotw};
use xds_machine::{Code, Delta, Nonce, ResourceName, Sotw, Status, TypeUrl, Version, server};

use crate::variant::Both;

/// A request. SotW has no `leave` and no `claims`, delta no `version`.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub node: Option<Arc<Node>>,
    pub type_url: TypeUrl,
    pub names: Vec<ResourceName>,
    pub leave: Vec<ResourceName>,
    pub claims: BTreeMap<ResourceName, Version>,
    pub version: Version,
    pub nonce: Nonce,
    pub error: Option<Status>,
}

/// A response. SotW has no `removed`.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub type_url: TypeUrl,
    pub version: Version,
    pub nonce: Nonce,
    pub items: Vec<Item>,
    pub removed: Vec<ResourceName>,
    pub errors: Vec<(ResourceName, i32)>,
}

/// A resource of a response; without content, a heartbeat.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub name: ResourceName,
    /// In SotW the version of the response.
    pub version: Version,
    pub aliases: Vec<ResourceName>,
    pub content: Option<u8>,
    pub ttl: Option<Duration>,
}

/// A variant, with conversions for both sides.
pub(super) trait Variant: Both {
    fn to_request(ask: &Ask) -> Self::Request;
    fn ask(request: &Self::Request) -> Ask;
    fn to_response(said: &Said) -> Self::Response;
    fn said(response: &server::Response<Self>) -> Said;
}

/// Encodes a resource: its name in field 1, its content in field 15.
pub(super) fn body(name: &ResourceName, content: u8) -> Vec<u8> {
    let name = name.as_str().as_bytes();
    [&[0x0a, name.len() as u8], name, &[0x78, content]].concat()
}

/// Returns the content of an encoded resource.
pub(super) fn content_of(body: &[u8]) -> u8 {
    *body.last().expect("a content")
}

fn error((name, code): &(ResourceName, i32)) -> ResourceError {
    let status = Status { code: *code, ..Status::new(Code::Unavailable, "no") };
    ResourceError { name: name.clone(), status: Some(status) }
}

fn errors(errors: &[ResourceError]) -> Vec<(ResourceName, i32)> {
    errors.iter().map(|error| (error.name.clone(), error.status.as_ref().map_or(0, |status| status.code))).collect()
}

fn resource(item: &Item, type_url: &TypeUrl) -> Resource {
    let Item { name, version, aliases, content, ttl } = item.clone();
    let body = content.map(|content| Any { type_url: type_url.clone(), value: body(&name, content).into() });
    Resource { name, version, aliases, body, ttl }
}

fn item(resource: &Resource) -> Item {
    let Resource { name, version, aliases, body, ttl } = resource.clone();
    Item { name, version, aliases, content: body.map(|body| content_of(&body.value)), ttl }
}

impl Variant for Delta {
    fn to_request(ask: &Ask) -> delta::Request {
        let Ask { node, type_url, names, leave, claims, nonce, error, .. } = ask.clone();
        delta::Request {
            node,
            type_url,
            subscribe: names,
            unsubscribe: leave,
            initial_versions: claims.into(),
            nonce,
            error,
        }
    }

    fn ask(request: &delta::Request) -> Ask {
        let delta::Request { node, type_url, subscribe, unsubscribe, initial_versions, nonce, error } = request.clone();
        let version = Version::default();
        Ask {
            node,
            type_url,
            names: subscribe,
            leave: unsubscribe,
            claims: (&initial_versions).into(),
            version,
            nonce,
            error,
        }
    }

    fn to_response(said: &Said) -> delta::Response {
        delta::Response {
            system_version: said.version.clone(),
            resources: said.items.iter().map(|item| resource(item, &said.type_url)).collect(),
            removed: said.removed.clone(),
            type_url: said.type_url.clone(),
            nonce: said.nonce.clone(),
            control_plane: String::new(),
            errors: said.errors.iter().map(error).collect(),
        }
    }

    fn said(response: &server::Response<Self>) -> Said {
        let response = delta::Response::from(response);
        Said {
            items: response.resources.iter().map(item).collect(),
            errors: errors(&response.errors),
            type_url: response.type_url,
            version: response.system_version,
            nonce: response.nonce,
            removed: response.removed,
        }
    }
}

impl Variant for Sotw {
    fn to_request(ask: &Ask) -> sotw::Request {
        let Ask { node, type_url, names, version, nonce, error, .. } = ask.clone();
        sotw::Request { node, type_url, names, version, nonce, error }
    }

    fn ask(request: &sotw::Request) -> Ask {
        let sotw::Request { node, type_url, names, version, nonce, error } = request.clone();
        Ask { node, type_url, names, leave: Vec::new(), claims: BTreeMap::new(), version, nonce, error }
    }

    fn to_response(said: &Said) -> sotw::Response {
        let wrapped = |item: &Item| sotw::Item::Wrapped(Box::new(resource(item, &said.type_url)));
        let bare = |item: &Item| match (item.content, item.ttl) {
            (Some(content), None) => {
                let value = body(&item.name, content).into();
                sotw::Item::Bare(Any { type_url: said.type_url.clone(), value })
            }
            _ => wrapped(item),
        };
        sotw::Response {
            version: said.version.clone(),
            resources: said.items.iter().map(bare).collect(),
            type_url: said.type_url.clone(),
            nonce: said.nonce.clone(),
            control_plane: String::new(),
            errors: said.errors.iter().map(error).collect(),
        }
    }

    fn said(response: &server::Response<Self>) -> Said {
        let response = sotw::Response::from(response);
        let version = &response.version;
        let read = |one: &sotw::Item| match one {
            sotw::Item::Bare(any) => {
                let len = usize::from(any.value[1]);
                let name = std::str::from_utf8(&any.value[2..2 + len]).expect("a name").into();
                let content = Some(content_of(&any.value));
                Item { name, version: version.clone(), aliases: Vec::new(), content, ttl: None }
            }
            sotw::Item::Wrapped(resource) => Item { version: version.clone(), ..item(resource) },
            sotw::Item::Malformed => panic!("nobody says this"),
        };
        Said {
            items: response.resources.iter().map(read).collect(),
            errors: errors(&response.errors),
            type_url: response.type_url.clone(),
            version: response.version.clone(),
            nonce: response.nonce,
            removed: Vec::new(),
        }
    }
}

// The format of stories: `T a2[x] !b -c ~d` is a message with resource a of content 2 and alias x, and so on.

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", short(&self.type_url))?;
        self.names.iter().try_for_each(|name| write!(f, " +{name}"))?;
        self.leave.iter().try_for_each(|name| write!(f, " -{name}"))?;
        if !self.claims.is_empty() {
            let claims: Vec<&str> = self.claims.keys().map(ResourceName::as_str).collect();
            write!(f, " has {}", claims.join(","))?;
        }
        if !self.version.as_str().is_empty() {
            write!(f, " version {:.6}", self.version.as_str())?;
        }
        if !self.nonce.as_str().is_empty() {
            write!(f, " {} {}", if self.error.is_some() { "NACK" } else { "nonce" }, self.nonce)?;
        }
        Ok(())
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", short(&self.type_url))?;
        self.items.iter().try_for_each(|item| write!(f, " {item}"))?;
        self.removed.iter().try_for_each(|name| write!(f, " removed={name}"))?;
        self.errors.iter().try_for_each(|(name, code)| write!(f, " error({name})={code}"))?;
        write!(f, " version {:.6} nonce {}", self.version.as_str(), self.nonce)
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.content {
            Some(content) => write!(f, "{}={content}", self.name)?,
            None => write!(f, "heartbeat({})", self.name)?,
        }
        if !self.aliases.is_empty() {
            let aliases: Vec<&str> = self.aliases.iter().map(ResourceName::as_str).collect();
            write!(f, "[{}]", aliases.join(","))?;
        }
        self.ttl.map_or(Ok(()), |ttl| write!(f, "/{}s", ttl.as_secs()))
    }
}

/// Returns the last segment of a type URL.
pub(super) fn short(type_url: &TypeUrl) -> &str {
    type_url.as_str().rsplit(['.', '/']).next().unwrap_or_default()
}
