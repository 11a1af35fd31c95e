//! A response without a stream: all resources that a request asks for, and a version of exactly these.

use alloc::vec::Vec;

use super::config::{Config, Settings};
use super::hash;
use super::of_type::OfType;
use super::parts::{Part, Parts};
use super::response::Response;
use super::source::{Entry, Source, State};
use super::variant::{Protocol, check_names};
use crate::error::PeerMisbehaved;
use crate::message::sotw::Request;
use crate::name::{Nonce, ResourceName, TypeUrl, Version, WILDCARD};
use crate::revision::Revision;
use crate::variant::Sotw;

/// A request for a snapshot, checked.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Query {
    config: Config,
    type_url: TypeUrl,
    /// In order, each once; empty for the wildcard.
    names: Vec<ResourceName>,
    /// Whether the client supports TTLs.
    ttl: bool,
}

/// Why a request can't be answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    Misbehaved(PeerMisbehaved),
    /// The request has no names, and the type has no legacy wildcard.
    NoNames,
}

impl Query {
    pub(crate) fn new(config: &Config, request: &mut Request) -> Result<Self, Refusal> {
        let type_url = request.type_url.clone();
        let settings = config.settings();
        let mut names = core::mem::take(&mut request.names);
        if !names.is_sorted_by(|a, b| a < b) {
            names.sort_unstable();
            names.dedup();
        }
        check(settings, request, &names).map_err(Refusal::Misbehaved)?;
        let is_wildcard = |name: &ResourceName| name == WILDCARD;
        if names.is_empty() && !settings.resource_type(&type_url).has_legacy_wildcard() {
            return Err(Refusal::NoNames);
        }
        if names.iter().any(is_wildcard) {
            names.clear(); // the wildcard covers every other name
        }
        let ttl = request.node.as_ref().is_some_and(|node| Sotw::supports_ttl(node));
        Ok(Self { config: config.clone(), type_url, names, ttl })
    }

    pub(crate) fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    /// Returns the requested names; an empty list is the wildcard.
    pub(crate) fn names(&self) -> &[ResourceName] {
        &self.names
    }

    /// Returns the version of the requested names and of no others, whether they exist or not. `None` if one of them,
    /// or the type, is not known yet.
    pub(crate) fn version<S: Source>(&self, source: &S) -> Option<Version> {
        if !source.is_known(&self.type_url) {
            return None;
        }
        if self.names.is_empty() {
            return Some(source.version(&self.type_url));
        }
        let of = OfType::new(source, &self.type_url);
        let (mut sum, mut is_known) = (0u128, true);
        let mut add = |name: &ResourceName, entry: Entry<'_>| {
            sum = sum.wrapping_add(match entry.named(name.as_str()).state {
                State::Present(resource) => hash::asked_for(name, resource.version()),
                State::Absent => hash::absent(name),
                State::Unknown => return is_known = false,
            });
        };
        let (globs, names) = (self.names.iter().filter(|name| name.is_glob()), self.names.iter());
        for entry in globs.flat_map(|glob| of.members(glob)) {
            add(entry.resource()?.name(), entry);
        }
        let names = names.filter(|name| !name.is_glob()).map(|name| (name.as_str(), name));
        of.get_each(names, |_, name, entry| add(name, entry));
        is_known.then(|| hash::version(sum))
    }

    /// Returns whether a resource that is asked for has a TTL that the client will keep.
    pub(crate) fn expires<S: Source>(&self, source: &S) -> bool {
        let mut expiring = source.expiring(&self.type_url).filter(|_| self.ttl);
        if self.names.is_empty() {
            return expiring.next().is_some();
        }
        let is_asked_for = |name: &ResourceName| {
            let glob = || name.glob().is_some_and(|glob| self.names.binary_search(&glob).is_ok());
            self.names.binary_search(name).is_ok() || glob()
        };
        expiring.any(|entry| entry.resource().is_some_and(|resource| is_asked_for(resource.name())))
    }

    pub(crate) fn response<S: Source>(&self, source: &S, version: Version) -> Response<Sotw> {
        let of = OfType::new(source, &self.type_url);
        let parts: Parts = if self.names.is_empty() {
            of.pages().filter(|page| !page.resources().is_empty()).map(Part::Page).collect()
        } else {
            let named = |name: &ResourceName| of.get(name).named(name.as_str()).resource();
            let one = self.names.iter().filter(|name| !name.is_glob()).filter_map(named);
            let globs = self.names.iter().filter(|name| name.is_glob());
            let members = globs.flat_map(|glob| of.members(glob).filter_map(|entry| entry.resource()));
            let members = members.filter(|member| self.names.binary_search(member.name()).is_err());
            one.chain(members).cloned().map(Part::One).collect()
        };
        Response {
            type_url: self.type_url.clone(),
            version,
            revision: source.revision(),
            nonce: Nonce::default(),
            parts,
            removed: Vec::new(),
            errors: Vec::new(),
            control_plane: self.config.settings().control_plane.clone(),
            ttl: self.ttl,
            variant: core::marker::PhantomData,
        }
    }

    /// Returns the epoch and the revision, which change with every change of the type.
    pub(crate) fn revision<S: Source>(&self, source: &S) -> (u64, Revision) {
        (source.epoch(), source.type_revision(&self.type_url))
    }
}

fn check(settings: &Settings, request: &Request, names: &[ResourceName]) -> Result<(), PeerMisbehaved> {
    let (limits, type_url) = (&settings.limits, &request.type_url);
    let (len, limit) = (type_url.as_str().len(), limits.type_url_bytes);
    if len > limit {
        return Err(PeerMisbehaved::TypeUrlTooLong { len, limit });
    }
    let (len, limit) = (request.version.as_str().len(), limits.version_bytes);
    if len > limit {
        return Err(PeerMisbehaved::VersionTooLong { type_url: type_url.clone(), len, limit });
    }
    check_names(type_url, names, limits)?;
    let (count, limit) = (names.len(), limits.names_per_type);
    if count > limit {
        return Err(PeerMisbehaved::TooManyNames { type_url: type_url.clone(), count, limit });
    }
    if settings.require_node && request.node.as_ref().is_none_or(|node| node.id.is_empty()) {
        return Err(PeerMisbehaved::MissingNode);
    }
    Ok(())
}
