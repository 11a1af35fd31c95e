//! Arbitrary messages.

use std::time::Duration;

use bytes::Bytes;
use xds_machine::message::sotw::Item;
use xds_machine::message::{Any, Node, Resource, ResourceError, delta, feature, sotw};
use xds_machine::{Delta, Nonce, ResourceName, Sotw, Status, TypeUrl};

use super::Input;
use crate::variant::Both;

/// A variant, with messages that no correct peer would send.
pub trait Hostile: Both {
    /// Makes an arbitrary request. `nonce` chooses the nonce for a type.
    fn any_request(input: &mut Input<'_>, nonce: impl FnOnce(&mut Input<'_>, &TypeUrl) -> Nonce) -> Self::Request;
    /// Makes an arbitrary response.
    fn any_response(input: &mut Input<'_>) -> Self::Response;
    /// Returns whether a request has a nonce.
    fn is_answer(request: &Self::Request) -> bool;
}

impl Hostile for Sotw {
    fn any_request(input: &mut Input<'_>, nonce: impl FnOnce(&mut Input<'_>, &TypeUrl) -> Nonce) -> sotw::Request {
        let type_url = input.type_url();
        sotw::Request {
            node: node(input),
            nonce: nonce(input, &type_url),
            type_url,
            names: input.some(12, Input::name),
            version: input.word().into(),
            error: error(input),
        }
    }

    fn any_response(input: &mut Input<'_>) -> sotw::Response {
        let type_url = input.type_url();
        let item = |input: &mut Input<'_>| match input.below(16) {
            0 => Item::Malformed,
            1..4 => Item::Wrapped(resource(input, &type_url).into()),
            _ => Item::Bare(any(input, &type_url)),
        };
        sotw::Response {
            version: input.word().into(),
            resources: input.some(10, item),
            nonce: input.word().into(),
            control_plane: String::new(),
            errors: errors(input),
            type_url,
        }
    }

    fn is_answer(request: &sotw::Request) -> bool {
        !request.nonce.is_empty()
    }
}

impl Hostile for Delta {
    fn any_request(input: &mut Input<'_>, nonce: impl FnOnce(&mut Input<'_>, &TypeUrl) -> Nonce) -> delta::Request {
        let type_url = input.type_url();
        delta::Request {
            node: node(input),
            nonce: nonce(input, &type_url),
            type_url,
            subscribe: input.some(12, Input::name),
            unsubscribe: input.some(12, Input::name),
            initial_versions: input.some(10, |input| (input.name(), version(input))).into_iter().collect(),
            error: error(input),
        }
    }

    fn any_response(input: &mut Input<'_>) -> delta::Response {
        let type_url = input.type_url();
        delta::Response {
            system_version: input.word().into(),
            resources: input.some(10, |input| resource(input, &type_url)),
            removed: input.some(4, Input::name),
            nonce: input.word().into(),
            control_plane: String::new(),
            errors: errors(input),
            type_url,
        }
    }

    fn is_answer(request: &delta::Request) -> bool {
        !request.nonce.is_empty()
    }
}

/// Makes a version: one that [`super::server`] puts into its store, or another.
fn version(input: &mut Input<'_>) -> xds_machine::Version {
    input.word().into()
}

fn node(input: &mut Input<'_>) -> Option<std::sync::Arc<Node>> {
    let mut node = Node::new(input.pick(&["n", ""]));
    match input.below(4) {
        0 => return None,
        1 => {}
        2 => node.client_features.push(feature::TTL.into()),
        _ => node.client_features.extend([feature::TTL.into(), feature::WRAPPER[0].into()]),
    }
    Some(node.into())
}

fn error(input: &mut Input<'_>) -> Option<Status> {
    match input.below(4) {
        0 => Some(Status { code: 0, message: String::new() }),
        1 => Some(Status { code: 3, message: "a reason, told at some length: ä ö ü".repeat(2) }),
        _ => None,
    }
}

fn any(input: &mut Input<'_>, of: &TypeUrl) -> Any {
    let type_url = if input.below(16) == 0 { input.type_url() } else { of.clone() };
    let value = match input.below(16) {
        0 => input.some(6, Input::byte).into(),
        1 => Bytes::new(),
        _ => body(&input.name(), input.byte()),
    };
    Any { type_url, value }
}

/// Encodes a resource with its name in field 1.
pub(super) fn body(name: &ResourceName, content: u8) -> Bytes {
    let name = name.as_str().as_bytes();
    [&[0x0a, name.len() as u8], name, &[0x78, content & 0x7f]].concat().into()
}

fn resource(input: &mut Input<'_>, of: &TypeUrl) -> Resource {
    let name = input.name();
    let body = match input.below(8) {
        0 => None,
        1 => Some(any(input, of)),
        _ => Some(Any { type_url: of.clone(), value: body(&name, input.byte()) }),
    };
    let ttl = match input.below(8) {
        0 => Some(Duration::from_secs(u64::from(input.byte()))),
        1 => Some(Duration::MAX),
        _ => None,
    };
    let aliases = if input.below(8) == 0 { input.some(3, Input::name) } else { Vec::new() };
    Resource { name, version: input.word().into(), aliases, body, ttl }
}

fn errors(input: &mut Input<'_>) -> Vec<ResourceError> {
    if input.below(8) > 0 {
        return Vec::new();
    }
    input.some(3, |input| ResourceError { name: input.name(), status: error(input) })
}
