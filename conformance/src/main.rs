//! The command `xds-conformance`: `xds-conformance --help`.

mod arguments;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::{fs, io};

use clap::Parser;
use xds_conformance::client;
use xds_conformance::control::{Adapter, Directory, Nothing};
use xds_conformance::message::Variant;
use xds_conformance::mode::{self, Plan};
use xds_conformance::net::SharedControl;
use xds_conformance::report::{self, Glob, KnownFailures, Report, Row};
use xds_conformance::run::Verdict;

use crate::arguments::{Arguments, Mode, Options, VariantName};

/// Usage, or a peer that did not start.
const NOT_RUN: u8 = 2;

fn main() -> ExitCode {
    let Arguments { mode, options } = Arguments::parse();
    let result = match mode {
        Mode::Server { command } => run(&options, &command),
        Mode::Client { command } => run_client(&options, command),
    };
    match result {
        Ok(code) => code.into(),
        Err(why) => {
            eprintln!("xds-conformance: {why}");
            NOT_RUN.into()
        }
    }
}

fn run(options: &Options, command: &[String]) -> Result<u8, String> {
    known_failures(options)?; // before anything starts
    let mut features: BTreeSet<String> = options.features.iter().cloned().collect();
    let mut address = options.address.clone();
    let mut implementation = address.clone().unwrap_or_default();
    let (control, has_control): (SharedControl, bool) = match options.control.split_once(':') {
        _ if options.control == "none" => (Arc::new(Mutex::new(Nothing)), false),
        _ if options.control == "stdio" => {
            let adapter = Adapter::start(command).map_err(|trouble| trouble.0)?;
            features.extend(adapter.ready().features.iter().cloned());
            address.get_or_insert_with(|| adapter.ready().address.clone());
            implementation = command.join(" ");
            (Arc::new(Mutex::new(adapter)), true)
        }
        Some(("dir", path)) => {
            let directory = Directory::new(path).map_err(|error| format!("{path}: {error}"))?;
            (Arc::new(Mutex::new(directory)), true)
        }
        _ => return Err(format!("--control {}: it is none, stdio or dir:DIR", options.control)),
    };
    let address = address.ok_or("--address is missing")?;
    let plan = Plan {
        address,
        implementation,
        has_control,
        has_batches: control.lock().is_ok_and(|control| control.is_atomic()),
        variants: options.variants.iter().map(variant).collect(),
        features,
        unsupported: options.unsupported.iter().cloned().collect::<BTreeMap<_, _>>(),
        types: options.types.clone(),
        wildcard: options.wildcard.clone(),
        filter: options.filter.clone().map(Glob::new),
        patience: options.patience,
        strict: options.strict,
    };
    let report = mode::run(&plan, &control, &mut |row| show_row(options, row)).map_err(|trouble| trouble.0)?;
    finish(options, report)
}

/// Runs the fixed cases with a client.
fn run_client(options: &Options, command: Vec<String>) -> Result<u8, String> {
    known_failures(options)?; // before anything starts
    let reference = match options.induced.as_str() {
        "stdio" => false,
        "reference" => true,
        other => return Err(format!("--induced {other}: it is stdio or reference")),
    };
    let starts = match &options.envoy[..] {
        [] => options.variants.iter().map(|name| (variant(name), String::new())).collect(),
        names => names.iter().map(|name| Ok((envoy(name)?, name.clone()))).collect::<Result<_, String>>()?,
    };
    let plan = client::mode::Plan {
        command,
        starts,
        features: options.features.iter().cloned().collect(),
        unsupported: options.unsupported.iter().cloned().collect(),
        types: options.types.clone(),
        wildcard: options.wildcard.clone(),
        filter: options.filter.clone().map(Glob::new),
        patience: options.patience,
        strict: options.strict,
        reference,
    };
    let report = client::mode::run(&plan, &|row| show_row(options, row)).map_err(|trouble| trouble.0)?;
    finish(options, report)
}

fn variant(name: &VariantName) -> Variant {
    match name {
        VariantName::Sotw => Variant::Sotw,
        VariantName::Delta => Variant::Delta,
    }
}

/// Returns the variant of a bootstrap of Envoy.
fn envoy(name: &str) -> Result<Variant, String> {
    let known = || format!("--envoy {name}: it is one of {}", client::launch::envoys().collect::<Vec<_>>().join(", "));
    client::launch::variant_of_envoy(name).ok_or_else(known)
}

/// Reads the file of known failures.
fn known_failures(options: &Options) -> Result<KnownFailures, String> {
    Ok(match &options.known_failing {
        None => KnownFailures::default(),
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            text.parse().map_err(|error| format!("{}: {error}", path.display()))?
        }
    })
}

/// Prints a line, but never into the JSON.
fn show(options: &Options, text: &str) {
    if json_only(options) {
        eprintln!("{text}");
    } else {
        // A reader that has gone away does not end the run: files may be wanted too.
        _ = writeln!(io::stdout(), "{text}");
    }
}

fn json_only(options: &Options) -> bool {
    options.json.as_deref() == Some(Path::new("-"))
}

/// Shows a case that is decided already.
fn show_row(options: &Options, row: &Row) {
    if matches!(row.verdict, Verdict::Pass | Verdict::Unsupported) {
        show(options, &report::line(row));
    }
}

/// Writes the report. Returns the exit code.
fn finish(options: &Options, mut report: Report) -> Result<u8, String> {
    report.mark_known(&known_failures(options)?);
    // What was played once more, or went on after the story, is decided only now.
    for row in report.rows.iter().filter(|row| matches!(row.verdict, Verdict::Fail | Verdict::Inconclusive)) {
        show(options, &report::line(row));
    }
    show(options, &report::summary_line(&report));
    let json = report::to_json(&report);
    match &options.json {
        Some(_) if json_only(options) => _ = writeln!(io::stdout(), "{json:#}"),
        Some(path) => write(path, &format!("{json:#}\n"))?,
        None => {}
    }
    if let Some(path) = &options.junit {
        write(path, &report::to_junit(&report))?;
    }
    Ok(report.exit_code())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
