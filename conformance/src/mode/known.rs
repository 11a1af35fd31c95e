//! Without a control: the resources that the server already has.

use std::collections::BTreeSet;

use super::plan::Plan;
use crate::message::{Node, Request, Variant};
use crate::net::{Connection, Patience, Target};
use crate::report::variant_name;
use crate::resource;
use crate::run::{Event, Peer, Trouble, Wait};
use crate::story::Story;

/// The resources of a server that the kit does not control.
#[derive(Default)]
pub(super) struct Known {
    /// The names of the clusters that have endpoints too, or of all clusters if none has.
    pub(super) names: Vec<String>,
    /// The types that have all these names, by their short names.
    pub(super) types: Vec<String>,
}

impl Plan {
    /// Returns the types that a case runs with, or why it does not run.
    pub(super) fn types_of(&self, story: &Story, variant: Variant, known: &Known) -> Result<Vec<String>, String> {
        let speaks = |name: &str| self.features.contains(name);
        if (speaks("sotw") || speaks("delta")) && !speaks(variant_name(variant)) {
            return Err(format!("the server does not speak {}", variant_name(variant)));
        }
        for feature in story.features.iter().map(String::as_str).chain([variant_name(variant)]) {
            if let Some(reason) = self.unsupported.get(feature) {
                return Err(format!("{feature}: {reason}"));
            }
        }
        if let Some(feature) = story.features.iter().find(|feature| !self.features.contains(*feature)) {
            return Err(format!("the feature {feature} is not named"));
        }
        if story.needs_control() && !self.has_control && !story.only_reads() {
            return Err("the case needs a control".into());
        }
        if story.needs_batch() && !self.has_batches {
            return Err("the control changes one type at a time".into());
        }
        let served = |of: &&String| {
            let given = self.types.is_empty() || self.types.contains(of) || !resource::is_common(of);
            let has = self.has_control || known.types.contains(of);
            given && has && (!story.is_wildcard() || self.wildcard.contains(of))
        };
        let types: Vec<String> = story.types.iter().filter(served).cloned().collect();
        if types.is_empty() { Err("no type of the case is served".into()) } else { Ok(types) }
    }
}

/// Looks for the resources of a server: all clusters, and the endpoints of the same names.
pub(super) fn learn(plan: &Plan, target: &Target, patience: Patience) -> Result<Known, Trouble> {
    let variant = plan.variants.iter().copied().find(|variant| plan.speaks(*variant)).unwrap_or(Variant::Delta);
    let mut connection = Connection::new(target, patience)
        .map_err(|error| Trouble(format!("no connection to {}: {error}", plan.address)))?;
    let stream = connection.open(variant, None)?;
    let mut names = Vec::new();
    let mut types = Vec::new();
    for of in ["cds", "eds"] {
        let node = (of == "cds").then(|| Node { id: "kit-look".into(), features: Vec::new() });
        let type_url = resource::type_url(of).to_owned();
        let request = Request { type_url: type_url.clone(), names: names.clone(), node, ..Request::default() };
        connection.send(stream, variant, &request)?;
        let mut has: BTreeSet<String> = BTreeSet::new();
        let mut wait = Wait::Answer;
        while let Some(Event::Response(_, response)) = connection.poll(wait) {
            wait = Wait::Quiet;
            if response.type_url == type_url {
                has.extend(response.resources.into_iter().map(|item| item.name));
                let nonce = response.nonce;
                let names = if variant == Variant::Sotw { names.clone() } else { Vec::new() };
                let version = if variant == Variant::Sotw { response.version } else { String::new() };
                let ack = Request { type_url: type_url.clone(), names, version, nonce, ..Request::default() };
                connection.send(stream, variant, &ack)?;
            }
        }
        let has: Vec<String> = has.into_iter().filter(|name| !name.is_empty()).take(100).collect();
        if !has.is_empty() {
            types.push(of.to_owned());
            names = has;
        } else {
            break;
        }
    }
    connection.close(stream);
    Ok(Known { names, types })
}
