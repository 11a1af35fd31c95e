//! What the command writes: lines as cases are decided, and the report at the end.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use xds_conformance::report::{self, KnownFailures, Report, Row};
use xds_conformance::run::Verdict;

use crate::arguments::Options;

/// The destinations of the lines and of the report.
pub(crate) struct Output<'a> {
    options: &'a Options,
    known: KnownFailures,
}

impl<'a> Output<'a> {
    /// Reads the file of known failures.
    pub(crate) fn new(options: &'a Options) -> Result<Self, String> {
        let known = match &options.known_failing {
            None => KnownFailures::default(),
            Some(path) => {
                let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
                text.parse().map_err(|error| format!("{}: {error}", path.display()))?
            }
        };
        Ok(Self { options, known })
    }

    fn is_json_only(&self) -> bool {
        self.options.json.as_deref() == Some(Path::new("-"))
    }

    /// Shows a line to the user.
    pub(crate) fn say(&self, text: &str) {
        if self.is_json_only() {
            eprintln!("{text}");
        } else {
            // A closed standard output does not end the run, because the report may be written to files too.
            _ = writeln!(io::stdout(), "{text}");
        }
    }

    /// Shows a case.
    pub(crate) fn row(&self, row: &Row) {
        self.say(&report::line(row));
    }

    /// Shows the rows that were not shown yet, writes the files, and returns the exit code.
    pub(crate) fn finish(&self, mut report: Report) -> Result<u8, String> {
        report.mark_known(&self.known);
        for row in report.rows.iter().filter(|row| matches!(row.verdict, Verdict::Fail | Verdict::Inconclusive)) {
            self.row(row);
        }
        self.say(&report::summary_line(&report));
        let json = report::to_json(&report);
        match &self.options.json {
            Some(_) if self.is_json_only() => _ = writeln!(io::stdout(), "{json:#}"),
            Some(path) => write(path, &format!("{json:#}\n"))?,
            None => {}
        }
        if let Some(path) = &self.options.junit {
            write(path, &report::to_junit(&report))?;
        }
        if let Some(path) = &self.options.html {
            write(path, &report::to_html(&report))?;
        }
        Ok(report.exit_code())
    }
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
