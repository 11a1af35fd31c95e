//! The report as JUnit's XML, which every CI reads.

use std::fmt::Write;

use super::{Report, variant_name};
use crate::referee::Level;
use crate::run::Verdict;

/// Returns the report as XML. A failure at level SHOULD is written as output, unless the run is strict; a known failure
/// is written as skipped.
pub fn to_junit(report: &Report) -> String {
    let is_failure =
        |row: &super::Row| row.verdict == Verdict::Fail && !row.known && (row.level == Level::Must || report.strict);
    let is_skipped =
        |row: &super::Row| row.known || [Verdict::Unsupported, Verdict::Inconclusive].contains(&row.verdict);
    let failures = report.rows.iter().filter(|row| is_failure(row)).count();
    let skipped = report.rows.iter().filter(|row| is_skipped(row)).count();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string does not fail.
    _ = writeln!(
        xml,
        r#"<testsuite name="xds-conformance {}" tests="{}" failures="{failures}" skipped="{skipped}">"#,
        escape(&report.mode),
        report.rows.len()
    );
    for row in &report.rows {
        let (id, why, time) = (escape(&row.id), escape(&row.why), row.time.as_secs_f64());
        _ = writeln!(xml, r#"  <testcase classname="{}" name="{id}" time="{time:.3}">"#, variant_name(row.variant));
        let detail = format!("{} {}\n{}", row.level.name(), row.sentence, row.ladder.join("\n"));
        if is_failure(row) {
            _ = writeln!(xml, "    <failure message=\"{why}\">{}</failure>", escape(&detail));
        } else if is_skipped(row) {
            _ = writeln!(xml, "    <skipped message=\"{}: {why}\"/>", row.verdict.name());
        } else if row.verdict == Verdict::Fail {
            _ = writeln!(xml, "    <system-out>{why}\n{}</system-out>", escape(&detail));
        }
        xml += "  </testcase>\n";
    }
    xml + "</testsuite>\n"
}

/// Escapes a text; characters that XML cannot have become `?`.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' | '\t' => escaped.push(char),
            char if char.is_control() => escaped.push('?'),
            char => escaped.push(char),
        }
    }
    escaped
}
