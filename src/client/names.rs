//! Checks of resource names.

use crate::error::Misuse;
use crate::name::{ResourceName, TypeUrl, WILDCARD};
use crate::xdstp::{self, Uri};

/// Refuses a name that can't be subscribed to (C-NAME-02, C-NAME-03, C-NAME-15).
pub(crate) fn check_wish(name: &ResourceName, type_url: &TypeUrl) -> Result<(), Misuse> {
    if name.as_str().is_empty() {
        return Err(Misuse::EmptyName);
    }
    if !xdstp::is_structured(name.as_str()) {
        return Ok(());
    }
    match Uri::parse(name.as_str()) {
        Err(reason) => Err(Misuse::MalformedName { name: name.clone(), reason }),
        Ok(uri) if uri.has_directives() => Err(Misuse::Locator { name: name.clone() }),
        Ok(uri) if !uri.is_of(type_url) => {
            Err(Misuse::NameOfOtherType { name: name.clone(), type_url: type_url.clone() })
        }
        Ok(_) => Ok(()),
    }
}

/// Returns the reason why no resource of the type may have this name, or `None` if the name is valid.
pub(super) fn no_name(name: &str, type_url: &TypeUrl) -> Option<&'static str> {
    match name {
        "" => Some("has no name"),
        WILDCARD => Some("has the wildcard for a name"),
        _ if !xdstp::is_structured(name) => None,
        _ => match Uri::parse(name) {
            Err(_) => Some("has a malformed xdstp name"),
            Ok(uri) if uri.has_directives() => Some("has a locator for a name"),
            Ok(uri) if uri.is_glob() => Some("has the name of a collection"),
            Ok(uri) if !uri.is_of(type_url) => Some("has a name of another type"),
            Ok(_) => None,
        },
    }
}
