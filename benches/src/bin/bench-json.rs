//! Measures the figures and prints one JSON object a line: `bench-json [--check] [FIGURE ..]`. With `--check` it prints
//! the limits and the measured values instead, and fails if a limit is exceeded. `bench-json beside PROGRAM ..`
//! measures servers of other projects beside ours, over real connections.

use std::error::Error;
use std::process::ExitCode;

use benches::figures::{Check, FIGURES};
use benches::{alloc, e2e};

#[global_allocator]
static COUNTING: alloc::Counting = alloc::Counting;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((part @ ("serve" | "receive"), rest)) = arguments.split_first().map(|(first, rest)| (&**first, rest)) {
        alloc::stop();
        let done = if part == "serve" { e2e::serve(rest) } else { e2e::receive(rest) };
        return done.map_or_else(failed, |()| ExitCode::SUCCESS);
    }
    alloc::keep();
    if let Some(("beside", programs)) = arguments.split_first().map(|(first, rest)| (&**first, rest)) {
        e2e::beside(programs);
        return ExitCode::SUCCESS;
    }
    let (options, only): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|argument| argument.starts_with('-'));
    let check = match options.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => return usage(),
    };
    if only.iter().any(|only| !FIGURES.iter().any(|(figure, _)| figure == only)) {
        return usage();
    }
    let mut kept = true;
    if check {
        println!("| | measured | limit | |\n|---|---:|---:|---|");
    }
    for (figure, measure) in FIGURES {
        if !only.is_empty() && !only.iter().any(|only| only == figure) {
            continue;
        }
        let (rows, checks) = measure();
        if check {
            checks.iter().for_each(|check| println!("{}", line(check)));
        } else {
            rows.iter().for_each(|row| println!("{}", row.json()));
        }
        kept &= checks.iter().all(Check::holds);
    }
    if check && !kept { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn line(check: &Check) -> String {
    let Check { what, value, limit, least } = check;
    let digits = if *limit < 0.01 {
        5
    } else if *limit < 2.0 {
        4
    } else {
        1
    };
    let (sign, verdict) = (if *least { "≥" } else { "≤" }, if check.holds() { "ok" } else { "FAILS" });
    format!("| {what} | {value:.digits$} | {sign} {limit} | {verdict} |")
}

fn failed(error: Box<dyn Error>) -> ExitCode {
    eprintln!("{error}");
    ExitCode::FAILURE
}

fn usage() -> ExitCode {
    eprintln!("usage: bench-json [--check] [F1 .. F12, H1, C1, E1 .. E9]");
    ExitCode::from(2)
}
