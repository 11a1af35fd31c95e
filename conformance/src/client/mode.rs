//! The mode `client`: all fixed cases with a client over sockets, which is started for each variant, all at the same
//! time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use super::launch::Launch;
use super::run::{self, Settings};
use super::sockets::Port;
use crate::message::Variant;
use crate::report::{Calibration, Glob, Implementation, Report, Row, variant_name};
use crate::run::Trouble;

/// The cases to run, and the client to run them with.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The command, not filled in.
    pub command: Vec<String>,
    /// The description of the client in the report.
    pub implementation: Implementation,
    /// The starts: the variant, and the name of Envoy's bootstrap.
    pub starts: Vec<(Variant, String)>,
    /// The features of the client, besides those that its adapter names.
    pub features: BTreeSet<String>,
    /// Features that the client does not have, each with the reason.
    pub unsupported: BTreeMap<String, String>,
    /// The types that the client can ask for, by their short names.
    pub types: Vec<String>,
    /// The types for which the client can subscribe to the wildcard.
    pub wildcard: Vec<String>,
    /// Which cases to run.
    pub filter: Option<Glob>,
    /// How long to wait for a message that must come, if the user sets it.
    pub patience: Option<Duration>,
    /// Whether a failure at level SHOULD counts.
    pub strict: bool,
    /// Whether the client cannot be told what to ask for.
    pub reference: bool,
}

/// Runs the plan. `on_row` receives the row of each case as soon as the case is played.
///
/// # Errors
///
/// If a client does not start, or asks for nothing.
pub fn run(plan: &Plan, on_row: &(dyn Fn(&Row) + Sync)) -> Result<Report, Trouble> {
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (number, (variant, envoy)) in plan.starts.iter().enumerate() {
            let done = &done;
            scope.spawn(move || {
                let result = one(plan, *variant, envoy, on_row);
                done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((number, result));
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    let (mut rows, mut calibration) = (Vec::new(), Calibration::default());
    for (_, result) in done {
        let (of_variant, measured) = result?;
        rows.extend(of_variant);
        calibration.answer = calibration.answer.max(measured.answer);
        calibration.patience = calibration.patience.max(measured.patience);
        calibration.quiet = calibration.quiet.max(measured.quiet);
    }
    Ok(Report {
        mode: "client".into(),
        implementation: plan.implementation.clone(),
        calibration,
        rows,
        stale: Vec::new(),
        strict: plan.strict,
    })
}

/// Runs all cases of one variant.
fn one(plan: &Plan, variant: Variant, envoy: &str, on_row: &dyn Fn(&Row)) -> Result<(Vec<Row>, Calibration), Trouble> {
    let name = variant_name(variant);
    let mut settings = Settings {
        variant,
        types: plan.types.clone(),
        wildcard: plan.wildcard.clone(),
        features: plan.features.clone(),
        unsupported: plan.unsupported.clone(),
        filter: plan.filter.clone(),
        patience: plan.patience,
        reference: plan.reference,
        separate: ["sotw", "delta"].contains(&envoy),
    };
    if let Some(reason) = plan.unsupported.get(name) {
        let rows = run::unsupported(&settings, &format!("{name}: {reason}"), &mut |row| on_row(row))?;
        return Ok((rows, Calibration::default()));
    }
    let port = Port::open()?;
    let launch =
        Launch::new(&plan.command, port.number(), variant, envoy).map_err(|error| Trouble(error.to_string()))?;
    if plan.reference {
        let mut peer = port.start_alone(launch.command())?;
        return run::run(&mut peer, &settings, &mut |row| on_row(row));
    }
    let (mut peer, ready) = port.start(launch.command())?;
    settings.features.extend(ready.features);
    if variant != Variant::Sotw && !settings.features.contains(name) {
        let why = format!("the client does not name {name}");
        let rows = run::unsupported(&settings, &why, &mut |row| on_row(row))?;
        return Ok((rows, Calibration::default()));
    }
    run::run(&mut peer, &settings, &mut |row| on_row(row))
}
