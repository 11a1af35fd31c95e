//! Without a control: what the server has already.

use std::collections::BTreeSet;

use super::Plan;
use crate::message::{Node, Request, Variant};
use crate::net::{Connection, Patience, Target};
use crate::resource;
use crate::run::{Event, Peer, Trouble, Wait};

/// What a server has that the kit does not control.
#[derive(Default)]
pub(super) struct Known {
    /// The names, those last that have endpoints too.
    pub(super) names: Vec<String>,
    /// The types that have all these names, by their short names.
    pub(super) types: Vec<String>,
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
