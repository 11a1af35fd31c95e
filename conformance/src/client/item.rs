//! A resource as the kit serves it to clients.

use crate::message::Item;
use crate::resource;

/// Makes a resource of the kit, as it is in a response.
pub(super) fn kit_item(type_url: &str, name: &str, revision: u64) -> Item {
    Item {
        name: name.to_owned(),
        version: format!("r{revision}"),
        body: Some(resource::body(type_url, name, revision).into()),
        any_type: type_url.to_owned(),
        revision: Some(revision),
        ..Item::default()
    }
}
