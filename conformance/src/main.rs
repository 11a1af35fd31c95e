//! The command `xds-conformance`: `xds-conformance --help`.

mod arguments;
mod config;
mod output;
mod setup;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use xds_conformance::client;
use xds_conformance::mode;
use xds_conformance::report::{self, Report, Row, variant_name};
use xds_conformance::run::Verdict;
use xds_conformance::story::Story;
use xds_conformance::tap;
use xds_conformance::walk::{Choice, Limits};

use crate::arguments::{Arguments, Mode, Options, Side};
use crate::output::Output;
use crate::setup::Setup;

/// The exit code for wrong usage, or for a peer that did not start.
const NOT_RUN: u8 = 2;
/// The number of walks at a time, where they do not disturb each other.
const WORKERS: usize = 4;

fn main() -> ExitCode {
    let result = config::with_config(std::env::args_os().collect()).and_then(|arguments| {
        let Arguments { mode, options } = Arguments::parse_from(arguments);
        run(&mode, &options)
    });
    match result {
        Ok(code) => code.into(),
        Err(why) => {
            eprintln!("xds-conformance: {why}");
            NOT_RUN.into()
        }
    }
}

fn run(mode: &Mode, options: &Options) -> Result<u8, String> {
    let output = Output::new(options)?;
    let report = match mode {
        Mode::Matrix { reports, svg, markdown } => {
            return matrix(options, reports, svg.as_deref(), markdown.as_deref());
        }
        Mode::Server { command } => server(options, command, &output)?,
        Mode::Client { command } => client(options, command, &output)?,
        Mode::Walk { side: Side::Server, command } => walk_server(options, command, &output)?,
        Mode::Walk { side: Side::Client, command } => walk_client(options, command, &output)?,
        Mode::Watch { time } => {
            let setup = Setup::new(options, &[])?;
            mode::watch(&setup.plan, &setup.control, *time).map_err(|trouble| trouble.0)?
        }
        Mode::Tap { listen, upstream, record } => {
            let create =
                |path: &PathBuf| fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()));
            let record = record.as_ref().map(create).transpose()?.map(|file| Box::new(file) as Box<dyn Write + Send>);
            tap::run(listen, upstream, options.strict, record, teller(options)).map_err(|trouble| trouble.0)?
        }
        Mode::Judge { file } => {
            let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
            let name = file.display().to_string();
            tap::judge(&name, &text, options.strict, teller(options)).map_err(|trouble| trouble.0)?
        }
        Mode::Replay { file, command } => replay(options, file, command)?,
    };
    output.finish(report)
}

/// Returns a function that shows a line to the user.
fn teller(options: &Options) -> impl Fn(&str) + Send + 'static {
    let json_only = options.json.as_deref() == Some(Path::new("-"));
    move |line: &str| if json_only { eprintln!("{line}") } else { println!("{line}") }
}

fn server(options: &Options, command: &[String], output: &Output<'_>) -> Result<Report, String> {
    let setup = Setup::new(options, command)?;
    let report = mode::run(&setup.plan, &setup.control, &mut |row| {
        // A case that failed is played once more; a case that passed may still fail after its story.
        if matches!(row.verdict, Verdict::Pass | Verdict::Unsupported) {
            output.row(row);
        }
    });
    report.map_err(|trouble| trouble.0)
}

fn client(options: &Options, command: &[String], output: &Output<'_>) -> Result<Report, String> {
    let plan = setup::client(options, command)?;
    let report = client::mode::run(&plan, &|row| {
        if matches!(row.verdict, Verdict::Pass | Verdict::Unsupported) {
            output.row(row);
        }
    });
    report.map_err(|trouble| trouble.0)
}

fn walk_server(options: &Options, command: &[String], output: &Output<'_>) -> Result<Report, String> {
    let setup = Setup::new(options, command)?;
    let result = mode::walk_server(&setup.plan, &setup.control, limits(options), choice(options));
    Ok(walked(options, output, result.map_err(|trouble| trouble.0)?))
}

fn walk_client(options: &Options, command: &[String], output: &Output<'_>) -> Result<Report, String> {
    let plan = setup::client(options, command)?;
    let result = mode::walk_client(&plan, limits(options), choice(options));
    Ok(walked(options, output, result.map_err(|trouble| trouble.0)?))
}

fn limits(options: &Options) -> Limits {
    let (walks, time, steps) = (options.walks, options.seconds, options.steps);
    Limits { walks, time, steps, workers: WORKERS }
}

fn choice(options: &Options) -> Choice {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| u64::from(time.subsec_nanos()));
    match options.exhaustive {
        Some(longest) => Choice::Every(longest.into()),
        None => Choice::Random(options.seed.unwrap_or_else(now)),
    }
}

/// Saves the stories of violations.
fn walked(options: &Options, output: &Output<'_>, (report, stories): (Report, Vec<String>)) -> Report {
    let failed = report.rows.iter().filter(|row| row.verdict == Verdict::Fail);
    for (row, story) in failed.zip(&stories) {
        output.say(&save(row, story, &options.save));
    }
    report.rows.iter().filter(|row| row.verdict == Verdict::Pass).for_each(|row| output.row(row));
    report
}

/// Writes the story of a violation to a file. Returns the line to show about it.
fn save(row: &Row, story: &str, folder: &Path) -> String {
    let (id, variant) = (&row.id, variant_name(row.variant));
    let file = folder.join(format!("{}-{variant}.txt", id.replace('/', "-")));
    match fs::create_dir_all(folder).and_then(|()| fs::write(&file, story)) {
        Ok(()) => format!("{} is the story of {id} {variant}: xds-conformance replay plays it", file.display()),
        // The report has the story too.
        Err(error) => format!("{}: {error}", file.display()),
    }
}

/// Makes the page of several reports: into the file of `--html`, or to standard output; and the picture and the table.
fn matrix(options: &Options, files: &[PathBuf], svg: Option<&Path>, markdown: Option<&Path>) -> Result<u8, String> {
    let mut reports = Vec::new();
    for file in files {
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = fs::read_to_string(file).map_err(|error| wrong(&error))?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        reports.push((name, serde_json::from_str(&text).map_err(|error| wrong(&error))?));
    }
    let page = report::matrix(&reports)?;
    svg.map_or(Ok(()), |path| output::write(path, &report::picture(&reports)))?;
    markdown.map_or(Ok(()), |path| output::write(path, &report::table(&reports)))?;
    match &options.html {
        Some(path) => output::write(path, &page)?,
        None if svg.is_none() && markdown.is_none() => print!("{page}"),
        None => {}
    }
    Ok(0)
}

fn replay(options: &Options, file: &Path, command: &[String]) -> Result<Report, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let variants = Story::variants(&text).map_err(|error| wrong(&error))?;
    let variant = *variants.first().ok_or("the story has no variant")?;
    let Ok(story) = Story::parse(&text, variant) else {
        // A story of a client has other steps.
        let story = client::story::parse(&text, variant).map_err(|error| wrong(&error))?;
        return Ok(mode::replay_client(&setup::client(options, command)?, variant, &story));
    };
    let setup = Setup::new(options, command)?;
    mode::replay(&setup.plan, &setup.control, variant, &story).map_err(|trouble| trouble.0)
}
