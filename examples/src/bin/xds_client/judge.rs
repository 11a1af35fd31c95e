//! Judges updates: this program accepts each resource that it can decode.

use std::collections::BTreeSet;

use examples::element::names;
use examples::references::{Target, decode, references};
use serde_json::{Value, json};
use xds_machine::client::{Rejection, Update};

/// The judgement on an update.
pub(crate) struct Judged {
    /// The line to print, if anything is applied.
    pub(crate) line: Option<Value>,
    /// The resources that changed, each with the resources it refers to, or `None` if it is gone.
    pub(crate) changes: Vec<(Target, Option<BTreeSet<Target>>)>,
    pub(crate) rejections: Vec<Rejection>,
}

/// Checks an update resource by resource.
pub(crate) fn judge(update: &Update) -> Judged {
    let type_url = update.type_url();
    let (mut applied, mut changes, mut rejections) = (Vec::new(), Vec::new(), Vec::new());
    for resource in update.resources() {
        let (name, version, size) = (resource.name(), resource.version().as_str(), resource.body().len());
        match decode(type_url, resource.body()) {
            Ok(message) => {
                applied.push(json!({ "name": name.as_str(), "version": version, "size": size }));
                let references = message.iter().flat_map(references).collect();
                changes.push(((type_url.clone(), name.clone()), Some(references)));
            }
            Err(reason) => rejections.push(Rejection::new(name.clone(), reason)),
        }
    }
    changes.extend(update.removed().iter().map(|name| ((type_url.clone(), name.clone()), None)));
    let (version, removed) = (update.version().as_str(), names(update.removed()));
    let line = json!({ "apply": {
        "type_url": type_url.as_str(), "version": version, "resources": applied, "removed": removed,
    } });
    Judged { line: (!changes.is_empty()).then_some(line), changes, rejections }
}
