//! The command `xds-conformance`: `xds-conformance --help`.

mod arguments;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::{fs, io};

use clap::Parser;
use serde_json::json;
use xds_conformance::control::{Adapter, Directory, Nothing};
use xds_conformance::message::Variant;
use xds_conformance::mode::{self, Plan};
use xds_conformance::net::SharedControl;
use xds_conformance::report::{self, Glob, Implementation, KnownFailures};
use xds_conformance::run::Verdict;

use crate::arguments::{Arguments, Mode, Options, VariantName};

/// Usage, or a peer that did not start.
const NOT_RUN: u8 = 2;

fn main() -> ExitCode {
    let Arguments { mode: Mode::Server { command }, options } = Arguments::parse();
    match run(&options, &command) {
        Ok(code) => code.into(),
        Err(why) => {
            eprintln!("xds-conformance: {why}");
            NOT_RUN.into()
        }
    }
}

fn run(options: &Options, command: &[String]) -> Result<u8, String> {
    let known = match &options.known_failing {
        None => KnownFailures::default(),
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            text.parse().map_err(|error| format!("{}: {error}", path.display()))?
        }
    };
    let mut features: BTreeSet<String> = options.features.iter().cloned().collect();
    let mut address = options.address.clone();
    let mut target = address.clone().unwrap_or_default();
    let (control, has_control): (SharedControl, bool) = match options.control.split_once(':') {
        _ if options.control == "none" => (Arc::new(Mutex::new(Nothing)), false),
        _ if options.control == "stdio" => {
            let adapter = Adapter::start(command).map_err(|trouble| trouble.0)?;
            features.extend(adapter.ready().features.iter().cloned());
            address.get_or_insert_with(|| adapter.ready().address.clone());
            target = command.join(" ");
            (Arc::new(Mutex::new(adapter)), true)
        }
        Some(("dir", path)) => {
            let directory = Directory::new(path).map_err(|error| format!("{path}: {error}"))?;
            (Arc::new(Mutex::new(directory)), true)
        }
        _ => return Err(format!("--control {}: it is none, stdio or dir:DIR", options.control)),
    };
    let address = address.ok_or("--address is missing")?;
    let variant = |name: &VariantName| match name {
        VariantName::Sotw => Variant::Sotw,
        VariantName::Delta => Variant::Delta,
    };
    let details = json!({
        "address": address,
        "control": options.control,
        "command": command,
        "features": features,
        "unsupported": options.unsupported.iter().cloned().collect::<BTreeMap<_, _>>(),
        "types": options.types,
        "wildcard": options.wildcard,
    });
    let details = details.as_object().cloned().unwrap_or_default();
    let plan = Plan {
        address,
        implementation: Implementation { target, details },
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
    let json_only = options.json.as_deref() == Some(Path::new("-"));
    let show = |text: &str| {
        if json_only {
            eprintln!("{text}");
        } else {
            // A reader that has gone away does not end the run: files may be wanted too.
            _ = writeln!(io::stdout(), "{text}");
        }
    };
    let mut report = mode::run(&plan, &control, &mut |row| {
        if matches!(row.verdict, Verdict::Pass | Verdict::Unsupported) {
            show(&report::line(row));
        }
    })
    .map_err(|trouble| trouble.0)?;
    report.mark_known(&known);
    // What was played once more, or went on after the story, is decided only now.
    for row in report.rows.iter().filter(|row| matches!(row.verdict, Verdict::Fail | Verdict::Inconclusive)) {
        show(&report::line(row));
    }
    show(&report::summary_line(&report));
    let json = report::to_json(&report);
    match &options.json {
        Some(_) if json_only => _ = writeln!(io::stdout(), "{json:#}"),
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
