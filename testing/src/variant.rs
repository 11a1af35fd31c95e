//! A variant as both machines have it, with its messages in one form. All code that combines a client and a server is
//! generic over it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use xds_machine::message::delta::Versions;
use xds_machine::message::{Any, Messages, Resource, delta, sotw};
use xds_machine::model::Relabel;
use xds_machine::proto::Wire;
use xds_machine::{Delta, Nonce, ResourceName, Sotw, Status, TypeUrl, Version, client, server};

use crate::world::store::body;

/// A variant, which implements the traits of both machines.
pub trait Both: client::Variant + server::Variant + Wire + Messages<Request: Relabel, Response: Relabel> {
    /// Whether this is the incremental variant.
    const DELTA: bool;
    /// Whether a server reports removals.
    const REMOVES: bool = Self::DELTA;
    /// Whether a request lists all subscribed names.
    const LISTS: bool = !Self::DELTA;

    /// Returns the message that a client decodes from a response.
    fn message(response: &server::Response<Self>) -> Self::Response;

    /// Returns the parts of a request.
    fn request(request: &Self::Request) -> Request<'_>;
    /// Returns the parts of a response whose resources have contents of one byte.
    fn response(response: &Self::Response) -> Response;

    // For seeded bugs.
    /// Returns the parts of a request for modification.
    fn request_mut(request: &mut Self::Request) -> RequestMut<'_>;
    /// Returns the nonce of a response for modification.
    fn nonce_mut(response: &mut Self::Response) -> &mut Nonce;
    /// Returns the names and versions of the resources sent.
    fn versions(response: &Self::Response) -> Vec<(ResourceName, Version)>;
    /// Keeps only the selected resources.
    fn keep(response: &mut Self::Response, keep: &mut dyn FnMut(&ResourceName) -> bool);
    /// Replaces the removals.
    fn set_removals(response: &mut Self::Response, removed: &BTreeSet<ResourceName>);
    /// Drops the errors of resources.
    fn forget_errors(response: &mut Self::Response);
    /// Drops the heartbeats.
    fn forget_beats(response: &mut Self::Response);
    /// Changes the contents of resources.
    fn change(response: &mut Self::Response, content: &mut dyn FnMut(&ResourceName, u8) -> u8);
    /// Turns heartbeats into resources with content.
    fn fill_beats(response: &mut Self::Response);
    /// Makes an empty request for a type.
    fn empty(type_url: &TypeUrl) -> Self::Request;
}

/// The parts of a request that a seeded bug may change.
pub struct RequestMut<'a> {
    /// The nonce; empty if there is none.
    pub nonce: &'a mut Nonce,
    /// The error, if it is a NACK.
    pub error: &'a mut Option<Status>,
    /// SotW: the list. Delta: the subscriptions.
    pub names: &'a mut Vec<ResourceName>,
    /// Delta: the names to unsubscribe.
    pub unsubscribe: Option<&'a mut Vec<ResourceName>>,
    /// SotW: the version.
    pub version: Option<&'a mut Version>,
    /// Delta: the claimed versions.
    pub initial: Option<&'a mut Versions>,
}

/// The parts of a request, in one form for both variants.
#[derive(Debug)]
pub struct Request<'a> {
    /// The type.
    pub type_url: &'a TypeUrl,
    /// The nonce; empty if there is none.
    pub nonce: &'a Nonce,
    /// The error, if it is a NACK.
    pub error: Option<&'a Status>,
    /// SotW: the list. Delta: the subscriptions.
    pub names: &'a [ResourceName],
    /// Delta: the names to unsubscribe.
    pub unsubscribe: &'a [ResourceName],
    /// SotW: the version.
    pub version: Option<&'a Version>,
    /// Delta: the claimed versions.
    pub initial: BTreeMap<ResourceName, Version>,
}

/// The parts of a response, in one form for both variants.
#[derive(Debug)]
pub struct Response {
    /// The type.
    pub type_url: TypeUrl,
    /// The nonce; empty if there is none.
    pub nonce: Nonce,
    /// SotW: the version. Delta: the system version.
    pub version: Version,
    /// Names and contents.
    pub resources: Vec<(ResourceName, u8)>,
    /// Heartbeats, with their versions and TTLs.
    pub beats: BTreeMap<ResourceName, (Version, Option<Duration>)>,
    /// Delta: the names that are removed.
    pub removed: BTreeSet<ResourceName>,
    /// The names of the resources with errors.
    pub errors: BTreeSet<ResourceName>,
}

impl Both for Sotw {
    const DELTA: bool = false;

    fn message(response: &server::Response<Self>) -> sotw::Response {
        response.into()
    }

    fn request(request: &sotw::Request) -> Request<'_> {
        Request {
            type_url: &request.type_url,
            nonce: &request.nonce,
            error: request.error.as_ref(),
            names: &request.names,
            unsubscribe: &[],
            version: Some(&request.version),
            initial: BTreeMap::new(),
        }
    }

    fn response(response: &sotw::Response) -> Response {
        let content = |any: &Any| any.value[any.value.len() - 1];
        let resource = |item: &sotw::Item| match item {
            sotw::Item::Bare(any) => Some((item_name(item), content(any))),
            sotw::Item::Wrapped(wrapped) => Some((wrapped.name.clone(), content(wrapped.body.as_ref()?))),
            sotw::Item::Malformed => panic!("nobody says this"),
        };
        let beats = response.resources.iter().filter_map(beat);
        Response {
            type_url: response.type_url.clone(),
            nonce: response.nonce.clone(),
            version: response.version.clone(),
            resources: response.resources.iter().filter_map(resource).collect(),
            beats: beats.map(|beat| (beat.name.clone(), (response.version.clone(), beat.ttl))).collect(),
            removed: BTreeSet::new(),
            errors: response.errors.iter().map(|error| error.name.clone()).collect(),
        }
    }

    fn request_mut(request: &mut sotw::Request) -> RequestMut<'_> {
        RequestMut {
            nonce: &mut request.nonce,
            error: &mut request.error,
            names: &mut request.names,
            unsubscribe: None,
            version: Some(&mut request.version),
            initial: None,
        }
    }

    fn nonce_mut(response: &mut sotw::Response) -> &mut Nonce {
        &mut response.nonce
    }

    fn versions(response: &sotw::Response) -> Vec<(ResourceName, Version)> {
        let names = Self::response(response).resources.into_iter().map(|(name, _)| name);
        names.map(|name| (name, response.version.clone())).collect()
    }

    fn keep(response: &mut sotw::Response, keep: &mut dyn FnMut(&ResourceName) -> bool) {
        response.resources.retain(|item| keep(&item_name(item)));
    }

    fn set_removals(_: &mut sotw::Response, _: &BTreeSet<ResourceName>) {}

    fn forget_errors(response: &mut sotw::Response) {
        response.errors.clear();
    }

    fn forget_beats(response: &mut sotw::Response) {
        response.resources.retain(|item| beat(item).is_none());
    }

    fn change(response: &mut sotw::Response, content: &mut dyn FnMut(&ResourceName, u8) -> u8) {
        for item in &mut response.resources {
            let name = item_name(item);
            match item {
                sotw::Item::Bare(any) => change(&name, any, content),
                sotw::Item::Wrapped(wrapped) => wrapped.body.iter_mut().for_each(|any| change(&name, any, content)),
                sotw::Item::Malformed => {}
            }
        }
    }

    fn fill_beats(response: &mut sotw::Response) {
        for item in &mut response.resources {
            if let sotw::Item::Wrapped(wrapped) = item {
                fill(wrapped, &response.type_url);
            }
        }
    }

    fn empty(type_url: &TypeUrl) -> sotw::Request {
        sotw::Request::new(type_url.clone())
    }
}

fn item_name(item: &sotw::Item) -> ResourceName {
    match item {
        sotw::Item::Bare(any) => {
            let len = usize::from(any.value[1]);
            std::str::from_utf8(&any.value[2..2 + len]).expect("a name").into()
        }
        sotw::Item::Wrapped(wrapped) => wrapped.name.clone(),
        sotw::Item::Malformed => panic!("nobody says this"),
    }
}

/// Returns the heartbeat that an item is.
fn beat(item: &sotw::Item) -> Option<&Resource> {
    match item {
        sotw::Item::Wrapped(wrapped) if wrapped.body.is_none() => Some(wrapped),
        _ => None,
    }
}

/// Changes the content of a resource.
fn change(name: &ResourceName, any: &mut Any, content: &mut dyn FnMut(&ResourceName, u8) -> u8) {
    any.value = body(name, content(name, any.value[any.value.len() - 1])).into();
}

/// Adds content to a heartbeat.
fn fill(resource: &mut Resource, type_url: &TypeUrl) {
    let value = body(&resource.name, 0).into();
    resource.body.get_or_insert_with(|| Any { type_url: type_url.clone(), value });
}

impl Both for Delta {
    const DELTA: bool = true;

    fn message(response: &server::Response<Self>) -> delta::Response {
        response.into()
    }

    fn request(request: &delta::Request) -> Request<'_> {
        Request {
            type_url: &request.type_url,
            nonce: &request.nonce,
            error: request.error.as_ref(),
            names: &request.subscribe,
            unsubscribe: &request.unsubscribe,
            version: None,
            initial: (&request.initial_versions).into(),
        }
    }

    fn response(response: &delta::Response) -> Response {
        let resources = response.resources.iter().filter_map(|resource| {
            let body = resource.body.as_ref()?;
            Some((resource.name.clone(), body.value[body.value.len() - 1]))
        });
        let beats = response.resources.iter().filter(|resource| resource.body.is_none());
        Response {
            type_url: response.type_url.clone(),
            nonce: response.nonce.clone(),
            version: response.system_version.clone(),
            resources: resources.collect(),
            beats: beats.map(|beat| (beat.name.clone(), (beat.version.clone(), beat.ttl))).collect(),
            removed: response.removed.iter().cloned().collect(),
            errors: response.errors.iter().map(|error| error.name.clone()).collect(),
        }
    }

    fn request_mut(request: &mut delta::Request) -> RequestMut<'_> {
        RequestMut {
            nonce: &mut request.nonce,
            error: &mut request.error,
            names: &mut request.subscribe,
            unsubscribe: Some(&mut request.unsubscribe),
            version: None,
            initial: Some(&mut request.initial_versions),
        }
    }

    fn nonce_mut(response: &mut delta::Response) -> &mut Nonce {
        &mut response.nonce
    }

    fn versions(response: &delta::Response) -> Vec<(ResourceName, Version)> {
        response.resources.iter().map(|resource| (resource.name.clone(), resource.version.clone())).collect()
    }

    fn keep(response: &mut delta::Response, keep: &mut dyn FnMut(&ResourceName) -> bool) {
        response.resources.retain(|resource| keep(&resource.name));
    }

    fn set_removals(response: &mut delta::Response, removed: &BTreeSet<ResourceName>) {
        response.removed = removed.iter().cloned().collect();
    }

    fn forget_errors(response: &mut delta::Response) {
        response.errors.clear();
    }

    fn forget_beats(response: &mut delta::Response) {
        response.resources.retain(|resource| resource.body.is_some());
    }

    fn change(response: &mut delta::Response, content: &mut dyn FnMut(&ResourceName, u8) -> u8) {
        for resource in &mut response.resources {
            resource.body.iter_mut().for_each(|any| change(&resource.name, any, content));
        }
    }

    fn fill_beats(response: &mut delta::Response) {
        response.resources.iter_mut().for_each(|resource| fill(resource, &response.type_url));
    }

    fn empty(type_url: &TypeUrl) -> delta::Request {
        delta::Request::new(type_url.clone())
    }
}
