//! The rules that hold for every response, whatever the client asked for.

use std::collections::BTreeSet;

use super::super::Rule;
use crate::message::{Item, Response, Variant};

/// Checks the fields of a response.
pub(super) fn check(variant: Variant, response: &Response, complain: &mut impl FnMut(Rule, String)) {
    if variant == Variant::Sotw && response.version.is_empty() {
        complain(Rule::NoVersion, "a response without version_info".into());
    }
    let mut names = BTreeSet::new();
    for item in &response.resources {
        check_item(variant, response, item, complain);
        if !item.name.is_empty() && !names.insert(item.name.as_str()) {
            complain(Rule::Twice, format!("{} twice in one response", item.name));
        }
    }
    for name in response.removed.iter().filter(|name| names.contains(name.as_str())) {
        complain(Rule::Twice, format!("{name} among the resources and among the removed"));
    }
}

fn check_item(variant: Variant, response: &Response, item: &Item, complain: &mut impl FnMut(Rule, String)) {
    if item.body.is_some() && item.any_type != response.type_url {
        complain(Rule::AnyType, format!("{} is of type {:?}", item.name, item.any_type));
    }
    if variant == Variant::Delta {
        if item.name.is_empty() {
            complain(Rule::NoName, "a resource without a name".into());
        }
        // An alias that does not exist has neither content nor version.
        if item.version.is_empty() && item.body.is_some() {
            complain(Rule::NoVersion, format!("{} without a version", item.name));
        }
    }
}
