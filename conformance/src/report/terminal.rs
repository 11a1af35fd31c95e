//! The report on the terminal.

use std::fmt::Write;

use super::{Report, Row, variant_name};
use crate::run::Verdict;

/// The number of lines of a ladder that a failure shows.
const SHOWN: usize = 20;

/// Returns the line of a case, and for a failure the lines that explain it.
pub fn line(row: &Row) -> String {
    let mark = match row.verdict {
        Verdict::Pass => "pass",
        Verdict::Fail if row.known => "KNOWN",
        Verdict::Fail => "FAIL",
        Verdict::Unsupported => "unsupported",
        Verdict::Inconclusive => "inconclusive",
    };
    let mut text = format!("{mark:<12} {:<6} {:<5} {}", row.level.name(), variant_name(row.variant), row.id);
    if !row.why.is_empty() && row.verdict != Verdict::Fail {
        _ = write!(text, "  ({})", row.why); // writing to a string does not fail
    }
    if row.verdict == Verdict::Fail {
        _ = write!(text, "\n    {}\n    {}: \"{}\" (xds_protocol.rst)", row.why, row.level.name(), row.sentence);
        // The ladder of a walk is short, and its story comes first.
        let is_walk = row.id.starts_with("walk/");
        let skipped = if is_walk { 0 } else { row.ladder.len().saturating_sub(SHOWN) };
        if skipped > 0 {
            _ = write!(text, "\n    | .. {skipped} lines before");
        }
        for step in &row.ladder[skipped..] {
            _ = write!(text, "\n    | {step}");
        }
        if is_walk {
            let (id, variant) = (row.id.replace('/', "-"), variant_name(row.variant));
            _ = write!(text, "\n    repeat: xds-conformance replay {id}-{variant}.txt, with the same options");
            return text;
        }
        if ["tap/", "watch/"].iter().any(|mode| row.id.starts_with(mode)) {
            return text;
        }
        let short = row.id.split_once('/').map_or(row.id.as_str(), |(_, short)| short);
        _ = write!(text, "\n    repeat: --filter '{short}' --variants {}", variant_name(row.variant));
    }
    text
}

/// Returns the last lines: the numbers of the run.
pub fn summary_line(report: &Report) -> String {
    let summary = report.summary();
    let mut text = String::new();
    for stale in &report.stale {
        _ = writeln!(text, "known to fail, and passes: {stale}");
    }
    _ = write!(
        text,
        "{}: {} passed, {} failed ({} known), {} unsupported, {} inconclusive\n{} passed, {} failed",
        report.mode,
        summary.passed,
        summary.failed,
        summary.known,
        summary.unsupported,
        summary.inconclusive,
        summary.passed,
        summary.failed
    );
    text
}
