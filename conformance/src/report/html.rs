//! The report as a page: one file, without external resources.

use std::fmt::Write;

use super::{Report, Row, variant_name};
use crate::run::Verdict;

const STYLE: &str = "body{font:15px system-ui,sans-serif;max-width:72em;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25em .6em;border-bottom:1px solid #ddd;\
vertical-align:top}pre{background:#f5f5f5;padding:.8em;overflow:auto}summary{cursor:pointer}\
.pass{color:#17692d}.fail{color:#b3261e;font-weight:600}.known,.inconclusive{color:#8a5a00}.unsupported{color:#777}\
blockquote{margin:.4em 0;color:#555}";

/// Returns the report as a page of HTML, with the conversation of each case.
pub fn to_html(report: &Report) -> String {
    let target = escape(&report.implementation.target);
    let summary = report.summary();
    let rows: String = report.rows.iter().map(row).collect();
    page(
        &format!("xds-conformance {}: {target}", report.mode),
        &format!(
            "<h1>xds-conformance {}</h1><p>{target}</p><p><b class=pass>{} passed</b>, <b class=fail>{} failed</b> \
             ({} known), {} unsupported, {} inconclusive. Specification: {}.</p>\
             <table><tr><th>verdict<th>level<th>variant<th>case{rows}</table>",
            report.mode,
            summary.passed,
            summary.failed,
            summary.known,
            summary.unsupported,
            summary.inconclusive,
            escape(crate::suite::SPEC_REVISION),
        ),
    )
}

/// Puts a body into a page.
pub(super) fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style>{body}</html>\n"
    )
}

/// Returns the mark of a case, which is also its class in the style.
fn mark(row: &Row) -> &'static str {
    if row.known && row.verdict == Verdict::Fail { "known" } else { row.verdict.name() }
}

fn row(row: &Row) -> String {
    let (mark, id) = (mark(row), escape(&row.id));
    let mut text = format!("<tr><td class={mark}>{mark}<td>{}<td>{}<td>", row.level.name(), variant_name(row.variant));
    // Writing to a string does not fail.
    _ = write!(text, "<details id=\"{id}-{}\"><summary>{id}</summary>", variant_name(row.variant));
    _ = write!(text, "<blockquote>{} ({})</blockquote>", escape(&row.sentence), escape(&row.rule));
    if !row.why.is_empty() {
        _ = write!(text, "<p>{}</p>", escape(&row.why));
    }
    if !row.ladder.is_empty() {
        _ = write!(text, "<pre>{}</pre>", escape(&row.ladder.join("\n")));
    }
    text + "</details>"
}

/// Escapes a text.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
