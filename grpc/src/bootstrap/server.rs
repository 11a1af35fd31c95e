//! The servers of a bootstrap file (`xds_servers`).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::Value;

use super::address::{Address, AddressError};
use super::credentials::{self, Credentials, Supports};
use super::features::Features;
use super::json::{Object, array, string};
use crate::faults::Walk;

/// A server. Servers are the same if all of their fields are equal: other features make another server (R-BOOT-19).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Server {
    /// The address, as the file writes it.
    pub uri: String,
    /// The credentials of the channel: the first of the file that the caller supports.
    pub credentials: Credentials,
    /// The credentials of calls that the caller supports, all of them to be used (gRFC A97).
    pub call_credentials: Vec<Credentials>,
    /// The features.
    pub features: Features,
}

impl Server {
    /// Returns the address.
    ///
    /// # Errors
    ///
    /// If the text is no gRPC name. That of a server of a [`Bootstrap`](super::Bootstrap) is one (R-BOOT-10).
    pub fn address(&self) -> Result<Address, AddressError> {
        Address::parse(&self.uri)
    }

    /// Returns whether two servers are to share a channel: whether address and credentials are the same (R-BOOT-19).
    pub fn shares_channel(&self, other: &Self) -> bool {
        let target = |server: &Self| (server.uri.clone(), server.credentials.clone(), server.call_credentials.clone());
        target(self) == target(other)
    }

    fn read(walk: &mut Walk, value: &Value, supports: Supports<'_>) -> Option<Self> {
        let server = Object::read(walk, value)?;
        let uri = server.required(walk, "server_uri", string);
        // R-BOOT-10: A server whose address can't be read can't be reached.
        if let Some(Err(fault)) = uri.as_deref().map(Address::parse) {
            walk.fault_at("server_uri", fault.to_string());
        }
        let credentials =
            server.required(walk, "channel_creds", |walk, value| credentials::channel(walk, value, supports));
        let call = server.field(walk, "call_creds", |walk, value| credentials::call(walk, value, supports));
        let features = server.field(walk, "server_features", Features::read);
        Some(Self {
            uri: uri?,
            credentials: credentials?,
            call_credentials: call.unwrap_or_default(),
            features: features.unwrap_or_default(),
        })
    }
}

/// Reads a list of servers. R-BOOT-09: Each is validated, whether used or not.
pub(super) fn list(walk: &mut Walk, value: &Value, supports: Supports<'_>) -> Option<Vec<Server>> {
    let all = array(walk, value)?.iter().enumerate();
    let read = |(at, server)| walk.within(format_args!("[{at}]"), |walk| Server::read(walk, server, supports));
    Some(all.filter_map(read).collect())
}
