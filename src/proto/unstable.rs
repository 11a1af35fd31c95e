//! Dynamic parameters (cncf/xds TP2): a client describes itself, and receives the matching variants of resources. **Not
//! a stable part of this crate**: the proposal is hidden in the API of Envoy, and has no implementation.
//!
//! The machines identify resources by name only. This module returns the parameters of a message unchanged beside the
//! message, for a server that chooses a [`Source`](crate::server::Source) by them, or for a relay.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use prost::Message;

use super::{DecodeError, generated};
use crate::message::{delta, sotw};
use crate::name::ResourceName;

/// A subscribed name with dynamic parameters of the client.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Locator {
    /// The name, which is among those of the message too.
    pub name: ResourceName,
    /// The parameters; possibly none.
    pub parameters: BTreeMap<String, String>,
}

/// The locators of a request, in order.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Locators {
    /// The locators to subscribe to; in SotW all locators.
    pub subscribe: Vec<Locator>,
    /// The locators to unsubscribe from (delta).
    pub unsubscribe: Vec<Locator>,
}

/// The name of a variant of a resource, and the constraints on its parameters.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Variant {
    /// The name, which is among those of the message too.
    pub name: ResourceName,
    /// The constraints (`DynamicParameterConstraints`), encoded and not examined; `None` if there are none.
    pub constraints: Option<Bytes>,
}

/// The variants in a delta response, in order.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Variants {
    /// The variants of resources that have a `ResourceName`, without the resources that have a plain name.
    pub resources: Vec<Variant>,
    /// The variants of removed resources.
    pub removed: Vec<Variant>,
    /// The variants of resources that could not be delivered; the name of each error is a `ResourceName`.
    pub errors: Vec<Variant>,
}

/// Decodes a `DiscoveryRequest`.
///
/// # Errors
///
/// If the bytes are not such a message.
pub fn decode_sotw_request(bytes: Bytes) -> Result<(sotw::Request, Locators), DecodeError> {
    let request = generated::DiscoveryRequest::decode(bytes).map_err(DecodeError::new("DiscoveryRequest"))?;
    let locators = Locators { subscribe: locators(&request.resource_locators), unsubscribe: Vec::new() };
    Ok((super::sotw::request(request)?, locators))
}

/// Encodes a `DiscoveryRequest`: names that have locators are written as locators.
pub fn encode_sotw_request(request: &sotw::Request, locators: &Locators) -> Vec<u8> {
    let mut message = super::sotw::request_out(request);
    message.resource_locators = locators_out(&locators.subscribe, &mut message.resource_names);
    message.encode_to_vec()
}

/// Decodes a `DeltaDiscoveryRequest`.
///
/// # Errors
///
/// If the bytes are not such a message.
pub fn decode_delta_request(bytes: Bytes) -> Result<(delta::Request, Locators), DecodeError> {
    let (request, versions) = super::delta::read_request(bytes)?;
    let locators = Locators {
        subscribe: locators(&request.resource_locators_subscribe),
        unsubscribe: locators(&request.resource_locators_unsubscribe),
    };
    Ok((super::delta::request(request, versions)?, locators))
}

/// Encodes a `DeltaDiscoveryRequest`: names that have locators are written as locators.
pub fn encode_delta_request(request: &delta::Request, locators: &Locators) -> Vec<u8> {
    let mut message = super::delta::request_out(request);
    message.resource_locators_subscribe = locators_out(&locators.subscribe, &mut message.resource_names_subscribe);
    message.resource_locators_unsubscribe =
        locators_out(&locators.unsubscribe, &mut message.resource_names_unsubscribe);
    super::delta::write_request(message, &request.initial_versions)
}

/// Decodes a `DeltaDiscoveryResponse`.
///
/// # Errors
///
/// If the bytes are not such a message.
pub fn decode_delta_response(bytes: Bytes) -> Result<(delta::Response, Variants), DecodeError> {
    let response = generated::DeltaDiscoveryResponse::decode(bytes);
    let response = response.map_err(DecodeError::new("DeltaDiscoveryResponse"))?;
    let variants = Variants {
        resources: response
            .resources
            .iter()
            .filter_map(|resource| resource.resource_name.as_ref())
            .map(variant)
            .collect(),
        removed: response.removed_resource_names.iter().map(variant).collect(),
        errors: response.resource_errors.iter().filter_map(|error| error.resource_name.as_ref()).map(variant).collect(),
    };
    Ok((super::delta::response(response), variants))
}

/// Encodes a `DeltaDiscoveryResponse`: names that have variants are written as variants, in order.
pub fn encode_delta_response(response: &delta::Response, variants: &Variants) -> Vec<u8> {
    let mut message = super::delta::response_out(response);
    let mut left = variants.resources.iter().peekable();
    for resource in &mut message.resources {
        if let Some(variant) = left.next_if(|variant| *variant.name.as_str() == *resource.name) {
            resource.name = String::new();
            resource.resource_name = Some(variant_out(variant));
        }
    }
    let mut left = variants.errors.iter().peekable();
    for name in message.resource_errors.iter_mut().filter_map(|error| error.resource_name.as_mut()) {
        if let Some(variant) = left.next_if(|variant| *variant.name.as_str() == *name.name) {
            *name = variant_out(variant);
        }
    }
    let named: BTreeSet<&str> = variants.removed.iter().map(|variant| variant.name.as_str()).collect();
    message.removed_resources.retain(|name| !named.contains(name.as_str()));
    message.removed_resource_names = variants.removed.iter().map(variant_out).collect();
    message.encode_to_vec()
}

fn locators(all: &[generated::ResourceLocator]) -> Vec<Locator> {
    let locator = |locator: &generated::ResourceLocator| Locator {
        name: locator.name.as_str().into(),
        parameters: locator.dynamic_parameters.clone(),
    };
    all.iter().map(locator).collect()
}

/// Moves the names that have locators from the plain names to the locators.
fn locators_out(all: &[Locator], names: &mut Vec<String>) -> Vec<generated::ResourceLocator> {
    let named: BTreeSet<&str> = all.iter().map(|locator| locator.name.as_str()).collect();
    names.retain(|name| !named.contains(name.as_str()));
    let locator = |locator: &Locator| generated::ResourceLocator {
        name: locator.name.as_str().into(),
        dynamic_parameters: locator.parameters.clone(),
    };
    all.iter().map(locator).collect()
}

fn variant(name: &generated::ResourceName) -> Variant {
    Variant { name: name.name.as_str().into(), constraints: name.dynamic_parameter_constraints.clone() }
}

fn variant_out(variant: &Variant) -> generated::ResourceName {
    generated::ResourceName {
        name: variant.name.as_str().into(),
        dynamic_parameter_constraints: variant.constraints.clone(),
    }
}
