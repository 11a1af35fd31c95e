//! Measures a server before the cases: how long to wait for a message that must come, and for a message that must not
//! come.

use std::time::{Duration, Instant};

use super::plan::Plan;
use crate::message::{Node, Request, Variant};
use crate::net::{Connection, Patience, Target};
use crate::report::{Calibration, variant_name};
use crate::resource::{self, Put};
use crate::run::{Event, Op, Peer, Trouble, Wait};

/// The limits of the patience, unless the user sets it.
const LEAST_PATIENCE: Duration = Duration::from_secs(2);
const MOST_PATIENCE: Duration = Duration::from_secs(30);
/// The patience with a server that never pushes: there is no push that might be slow.
const WITHOUT_PUSHES: Duration = Duration::from_secs(1);
/// The patience of the calibration itself.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);
/// The limits of the time after which silence is believed.
const LEAST_QUIET: Duration = Duration::from_millis(100);
const MOST_QUIET: Duration = Duration::from_secs(2);

/// Measures how fast the server answers and pushes. The cases judge a message that never comes.
pub(super) fn calibrate(plan: &Plan, target: &Target) -> Result<Calibration, Trouble> {
    let long = Patience { answer: plan.patience.unwrap_or(FIRST_PATIENCE), quiet: LEAST_QUIET };
    let mut connection = Connection::new(target, long)
        .map_err(|error| Trouble(format!("no connection to {}: {error}", plan.address)))?;
    let mut calibration = Calibration::default();
    if plan.has_control {
        for variant in plan.variants.iter().filter(|variant| plan.speaks(**variant)) {
            measure(*variant, &mut connection, &mut calibration)?;
        }
    }
    let longest = calibration.push.max(calibration.answer);
    let least = if plan.has_control && calibration.push.is_none() { WITHOUT_PUSHES } else { LEAST_PATIENCE };
    let patience = longest.map_or(least, |longest| (longest * 20).clamp(least, MOST_PATIENCE));
    calibration.patience = plan.patience.unwrap_or(patience);
    calibration.quiet = longest.map_or(LEAST_QUIET * 3, |longest| (longest * 4).clamp(LEAST_QUIET, MOST_QUIET));
    Ok(calibration)
}

/// Puts a resource a few times, and measures how long a stream waits for it.
fn measure(variant: Variant, connection: &mut Connection, calibration: &mut Calibration) -> Result<(), Trouble> {
    let type_url = resource::type_url("cds").to_owned();
    let name = format!("kit-{}-calibration-{}", std::process::id(), variant_name(variant));
    let put =
        |revision| Op::Put(Put { type_url: type_url.clone(), name: name.clone(), revision, ttl: None, alias: None });
    connection.control(&[put(1)])?;
    let stream = connection.open(variant, None)?;
    let begun = Instant::now();
    let node = Some(Node { id: "kit-calibration".into(), features: Vec::new() });
    let mut request = Request { type_url: type_url.clone(), names: vec![name.clone()], node, ..Request::default() };
    connection.send(stream, variant, &request)?;
    request.node = None;
    for revision in 1..=4 {
        let begun = if revision == 1 {
            begun
        } else {
            let begun = Instant::now();
            connection.control(&[put(revision)])?;
            begun
        };
        if !comes(connection, stream, variant, &mut request, revision)? {
            break;
        }
        let longest = if revision == 1 { &mut calibration.answer } else { &mut calibration.push };
        *longest = (*longest).max(Some(begun.elapsed()));
    }
    connection.close(stream);
    connection.control(&[Op::Delete { type_url, name }])
}

/// Waits for a revision, and answers all responses.
fn comes(
    connection: &mut Connection,
    stream: u64,
    variant: Variant,
    request: &mut Request,
    revision: u64,
) -> Result<bool, Trouble> {
    while let Some(event) = connection.poll(Wait::Answer) {
        let Event::Response(id, response) = event else { return Ok(false) };
        if id != stream {
            continue;
        }
        request.nonce.clone_from(&response.nonce);
        if variant == Variant::Sotw {
            request.version.clone_from(&response.version);
        } else {
            request.names.clear();
        }
        connection.send(stream, variant, request)?;
        if response.resources.iter().any(|item| item.revision == Some(revision)) {
            return Ok(true);
        }
    }
    Ok(false)
}
