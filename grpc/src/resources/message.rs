//! Parts that the decoders of all types share.

use alloc::format;
use core::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use prost::Message;
use xds_machine::ResourceName;

use super::generated::{Address, ConfigSource, SocketAddress, address, config_source, socket_address};
use crate::faults::{Faults, Walk};

/// The message for a field that must be set.
pub(super) const NOT_PRESENT: &str = "field not present";

/// Decodes a resource, and begins a walk through the fields. The name of the resource must not be empty (R-LIS-11,
/// R-CLU-16).
pub(super) fn decode<M: Message + Default>(what: &str, name: &ResourceName, body: &Bytes) -> Result<(M, Walk), Faults> {
    let mut walk = Walk::default();
    if name.as_str().is_empty() {
        walk.fault_at("name", "must be non-empty");
    }
    match M::decode(body.clone()) {
        Ok(message) => Ok((message, walk)),
        Err(error) => {
            walk.fault(format!("can't parse {what}: {error}"));
            Err(walk.into_faults())
        }
    }
}

/// Checks that a referenced resource comes from the same server: `ads` or `self` (R-LIS-04, R-CLU-02).
pub(super) fn check_source(walk: &mut Walk, source: Option<&ConfigSource>) {
    use config_source::ConfigSourceSpecifier::{Ads, Self_};
    match source.map(|source| &source.config_source_specifier) {
        None => walk.fault(NOT_PRESENT),
        Some(Some(Ads(_) | Self_(_))) => {}
        Some(_) => walk.fault("ConfigSource is not ads or self"),
    }
}

/// Returns the socket address of an address.
pub(super) fn socket<'a>(walk: &mut Walk, address: Option<&'a Address>) -> Option<&'a SocketAddress> {
    match address.map(|address| &address.address) {
        None => walk.fault(NOT_PRESENT),
        Some(Some(address::Address::SocketAddress(socket))) => return Some(socket),
        Some(_) => walk.fault_at("socket_address", NOT_PRESENT),
    }
    None
}

/// Returns the port of a socket address; `None` if the address has none, or a name in its place.
pub(super) fn port(walk: &mut Walk, socket: &SocketAddress) -> Option<u16> {
    let Some(socket_address::PortSpecifier::PortValue(port)) = socket.port_specifier else { return None };
    let valid = u16::try_from(port).ok();
    if valid.is_none() {
        walk.fault_at("port_value", format!("invalid port: {port}"));
    }
    valid
}

/// Reads an IP address with a port, which is 0 if it is not set (R-EDS-12).
pub(super) fn ip(walk: &mut Walk, address: Option<&Address>) -> Option<SocketAddr> {
    let socket = socket(walk, address)?;
    walk.within("socket_address", |walk| {
        let ip: Option<IpAddr> = socket.address.parse().ok();
        if ip.is_none() {
            walk.fault_at("address", format!("{:?} is no IP address", socket.address));
        }
        let port = port(walk, socket).unwrap_or_default();
        Some(SocketAddr::new(ip?, port))
    })
}
