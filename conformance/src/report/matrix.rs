//! The page of several reports: cases and peers.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use super::html::{escape, page};

/// Returns the class and the sign of a verdict.
fn sign(case: &Value) -> (&'static str, &'static str) {
    match (case["verdict"].as_str(), case["known"].as_bool()) {
        (Some("pass"), _) => ("pass", "✓"),
        (Some("fail"), Some(true)) => ("known", "✕"),
        (Some("fail"), _) => ("fail", "✕"),
        (Some("inconclusive"), _) => ("inconclusive", "?"),
        _ => ("unsupported", "–"),
    }
}

/// Returns the page of several reports (as [`to_json`](super::to_json) writes them), each with its name.
///
/// # Errors
///
/// The error names the value that is no report.
pub fn matrix(reports: &[(String, Value)]) -> Result<String, String> {
    let mut cases: BTreeMap<(String, String), Vec<Option<&Value>>> = BTreeMap::new();
    for (at, (name, report)) in reports.iter().enumerate() {
        let rows = report["cases"].as_array().ok_or_else(|| format!("{name} is no report: it has no cases"))?;
        for case in rows {
            let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
            let of = cases.entry((text("id"), text("variant"))).or_insert_with(|| vec![None; reports.len()]);
            of[at] = Some(case);
        }
    }
    let mut table = String::from("<table><tr><th>case<th>variant<th>level");
    // Writing to a string does not fail.
    reports.iter().for_each(|(name, _)| _ = write!(table, "<th>{}", escape(name)));
    for ((id, variant), of) in &cases {
        let level = of.iter().flatten().find_map(|case| case["level"].as_str()).unwrap_or_default();
        _ = write!(table, "<tr><td>{}<td>{}<td>{}", escape(id), escape(variant), escape(level));
        for case in of {
            let Some(case) = case else {
                table += "<td>";
                continue;
            };
            let (class, sign) = sign(case);
            let lines = case["ladder"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let ladder = lines.collect::<Vec<_>>().join("\n");
            let why = case["why"].as_str().unwrap_or_default();
            _ = if class == "pass" || (why.is_empty() && ladder.is_empty()) {
                write!(table, "<td class={class} title=\"{}\">{sign}", escape(why))
            } else {
                write!(
                    table,
                    "<td class={class}><details><summary>{sign}</summary><p>{}</p><pre>{}</pre></details>",
                    escape(why),
                    escape(&ladder)
                )
            };
        }
    }
    table += "<tr><th>passed, failed<th><th>";
    for (_, report) in reports {
        let summary = &report["summary"];
        _ = write!(table, "<th>{}, {}", summary["passed"], summary["failed"]);
    }
    Ok(page("xds-conformance", &format!("<h1>xds-conformance</h1>{table}</table>")))
}
