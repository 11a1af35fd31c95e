//! Items that are borrowed from a machine: a dump of a hundred thousand resources copies none of them.

use alloc::boxed::Box;

use bytes::Bytes;

use super::clock::Timestamp;
use super::message::{ConfigStatus, ErrorState, Item};
use crate::client::ResourceStatus;
use crate::name::{ResourceName, TypeUrl, Version};

/// An [`Item`] that is borrowed from a client machine; each field means the same.
///
/// Encode a dump as it is ([`encode_client`](crate::proto::client_status::encode_client)), or keep items of it by
/// [`to_item`](Self::to_item).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ItemRef<'a> {
    /// The type of the resource.
    pub type_url: &'a TypeUrl,
    /// The name of the resource.
    pub name: &'a ResourceName,
    /// The version of the held content, if any is held.
    pub version: Option<&'a Version>,
    /// The encoded resource.
    pub contents: Option<&'a Bytes>,
    /// The time at which the client accepted the resource.
    pub updated: Option<Timestamp>,
    /// The server's view.
    pub config_status: Option<ConfigStatus>,
    /// The client's view.
    pub client_status: Option<ResourceStatus>,
    /// The last error, unless it was resolved since.
    pub error: Option<Box<ErrorRef<'a>>>,
}

/// An [`ErrorState`] that is borrowed from a client machine; each field means the same.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ErrorRef<'a> {
    /// The error, for people.
    pub details: &'a str,
    /// The version that was rejected, or that of the response that reported the error; `None` if there was none.
    pub version: Option<&'a Version>,
    /// The time of that response.
    pub at: Option<Timestamp>,
}

impl ItemRef<'_> {
    /// Returns a copy that may outlive the machine. Names and contents are shared.
    pub fn to_item(&self) -> Item {
        Item {
            type_url: self.type_url.clone(),
            name: self.name.clone(),
            version: self.version.cloned(),
            contents: self.contents.cloned(),
            updated: self.updated,
            config_status: self.config_status,
            client_status: self.client_status,
            error: self.error.as_ref().map(|error| Box::new(error.to_state())),
        }
    }
}

impl ErrorRef<'_> {
    fn to_state(&self) -> ErrorState {
        ErrorState { details: self.details.into(), version: self.version.cloned().unwrap_or_default(), at: self.at }
    }
}

impl Item {
    /// Returns the same item, borrowed.
    pub fn borrowed(&self) -> ItemRef<'_> {
        ItemRef {
            type_url: &self.type_url,
            name: &self.name,
            version: self.version.as_ref(),
            contents: self.contents.as_ref(),
            updated: self.updated,
            config_status: self.config_status,
            client_status: self.client_status,
            error: self.error.as_deref().map(|error| Box::new(error.borrowed())),
        }
    }
}

impl ErrorState {
    fn borrowed(&self) -> ErrorRef<'_> {
        ErrorRef { details: &self.details, version: Some(&self.version), at: self.at }
    }
}
