//! Decodes Listeners (R-LIS).

use alloc::format;
use alloc::vec::Vec;
use core::net::SocketAddr;

use bytes::Bytes;
use prost::Message;
use xds_machine::ResourceName;

use super::any::extension;
use super::generated::{self, Any, FilterChain, HttpConnectionManager, Rds, filter, http_connection_manager};
use super::message::{check_source, decode, ip, socket};
use super::routes::routes;
use super::view::{Context, Listener, Source, View};
use crate::faults::{Faults, Walk};

const HTTP_CONNECTION_MANAGER: &str =
    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/// Decodes a Listener (R-LIS).
///
/// # Errors
///
/// All faults of the core rules.
pub fn decode_listener(name: &ResourceName, body: &Bytes, context: &Context) -> Result<View<Listener>, Faults> {
    let (listener, mut walk) = decode::<generated::Listener>("Listener", name, body)?;
    // R-LIS-01: A listener with both an API listener and an address is a client's.
    let value = if let Some(api) = &listener.api_listener {
        walk.within("api_listener.api_listener", |walk| manager(walk, api.api_listener.as_ref(), context))
            .map(Listener::Api)
    } else if listener.address.is_some() {
        Some(server(&mut walk, &listener, context))
    } else {
        walk.fault("Listener has neither address nor ApiListener");
        None
    };
    View::judge(walk, value, body)
}

/// Reads a server's listener (gRFC A36). Which connections a filter chain matches, and TLS, are data path.
fn server(walk: &mut Walk, listener: &generated::Listener, context: &Context) -> Listener {
    let address = walk.within("address", |walk| listening(walk, listener));
    let chains = listener.filter_chains.iter().enumerate();
    let mut routes: Vec<Source> = chains
        .filter_map(|(at, one)| walk.within(format_args!("filter_chains[{at}]"), |walk| chain(walk, one, context)))
        .collect();
    match &listener.default_filter_chain {
        Some(one) => routes.extend(walk.within("default_filter_chain", |walk| chain(walk, one, context))),
        None if listener.filter_chains.is_empty() => {
            walk.fault_at("default_filter_chain", "must be set if filter_chains is unset");
        }
        None => {}
    }
    Listener::Socket { address, routes }
}

/// Reads the address to listen on. An address that is no IP address is valid: no server listens there.
fn listening(walk: &mut Walk, listener: &generated::Listener) -> Option<SocketAddr> {
    socket(walk, listener.address.as_ref())?;
    ip(&mut Walk::default(), listener.address.as_ref())
}

/// Reads the route source of a filter chain: that of its only filter.
fn chain(walk: &mut Walk, chain: &FilterChain, context: &Context) -> Option<Source> {
    let [one] = &chain.filters[..] else {
        walk.fault_at("filters", "must have exactly one filter, an HttpConnectionManager");
        return None;
    };
    let config = match &one.config_type {
        Some(filter::ConfigType::TypedConfig(config)) => Some(config),
        _ => None,
    };
    walk.within("filters[0].typed_config", |walk| manager(walk, config, context))
}

/// Reads the route source of an HTTP connection manager.
fn manager(walk: &mut Walk, any: Option<&Any>, context: &Context) -> Option<Source> {
    let extension = extension(walk, any)?;
    walk.within(format_args!("value[{}]", extension.kind), |walk| {
        // R-LIS-02: The configuration of an HTTP connection manager is not in a TypedStruct.
        if extension.kind != HTTP_CONNECTION_MANAGER {
            walk.fault("unsupported filter type");
            return None;
        }
        let Some(value) = extension.value else {
            walk.fault("can't parse HttpConnectionManager: a TypedStruct");
            return None;
        };
        match HttpConnectionManager::decode(value) {
            Ok(manager) => source(walk, manager, context),
            Err(error) => {
                walk.fault(format!("can't parse HttpConnectionManager: {error}"));
                None
            }
        }
    })
}

fn source(walk: &mut Walk, manager: HttpConnectionManager, context: &Context) -> Option<Source> {
    use http_connection_manager::RouteSpecifier;
    match manager.route_specifier {
        Some(RouteSpecifier::Rds(rds)) => walk.within("rds", |walk| Some(Source::Rds(named(walk, &rds)))),
        // R-LIS-06: Inline routes are validated like those of RDS.
        Some(RouteSpecifier::RouteConfig(config)) => {
            Some(Source::Inline(walk.within("route_config", |walk| routes(walk, config, context))))
        }
        // R-LIS-03: There are no other sources.
        Some(RouteSpecifier::ScopedRoutes(_)) | None => {
            walk.fault("neither route_config nor rds fields are present");
            None
        }
    }
}

fn named(walk: &mut Walk, rds: &Rds) -> ResourceName {
    walk.within("config_source", |walk| check_source(walk, rds.config_source.as_ref()));
    // R-LIS-05: No RouteConfiguration has an empty name; a chain would wait for it without end.
    if rds.route_config_name.is_empty() {
        walk.fault_at("route_config_name", "must be non-empty");
    }
    ResourceName::from(&rds.route_config_name)
}
