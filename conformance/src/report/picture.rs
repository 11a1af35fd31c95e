//! The picture of several reports: a row for each, a square for each case.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use super::html::escape;

/// The side of a square, the distance between squares, the height of a row, and the widths for the names and for the
/// numbers, in pixels.
const SQUARE: usize = 7;
const STEP: usize = 8;
const ROW: usize = 16;
const NAMES: usize = 230;
const NUMBERS: usize = 130;

/// Returns several reports (as [`to_json`](super::to_json) writes them), each with its name, as SVG: reports of servers
/// and of clients apart, each case in a column of its own.
pub fn picture(reports: &[(String, Value)]) -> String {
    let mut blocks = Vec::new();
    for (mode, title) in [("server", "servers"), ("client", "clients")] {
        let of: Vec<&(String, Value)> = reports.iter().filter(|(_, report)| report["mode"] == mode).collect();
        let columns: BTreeSet<(String, String)> = of.iter().flat_map(|(_, report)| cases(report)).map(key).collect();
        if !of.is_empty() {
            blocks.push((title, of, columns));
        }
    }
    let widest = blocks.iter().map(|(.., columns)| columns.len()).max().unwrap_or_default();
    let (width, mut top, mut body) = (NAMES + widest * STEP + NUMBERS, 14, String::new());
    for (title, of, columns) in blocks {
        // Writing to a string does not fail.
        _ = write!(body, "<text y=\"{top}\" class=\"t\">{title}: {} cases</text>", columns.len());
        top += 6;
        for (name, report) in of {
            row(&mut body, name, report, &columns, top);
            top += ROW;
        }
        top += 2 * ROW;
    }
    legend(&mut body, top);
    top += 10;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{top}\" viewBox=\"0 0 {width} {top}\">\
         <style>text{{font:11px system-ui,sans-serif;fill:#444}}.t{{font-weight:600}}.pass{{fill:#3f9d57}}\
         .must{{fill:#c62828}}.should{{fill:#ef8f1f}}.inconclusive{{fill:#e3cf6a}}.unsupported{{fill:#ddd}}</style>\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>{body}</svg>\n"
    )
}

fn cases(report: &Value) -> impl Iterator<Item = &Value> {
    report["cases"].as_array().into_iter().flatten()
}

/// Returns the column of a case.
fn key(case: &Value) -> (String, String) {
    let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
    (text("variant"), text("id"))
}

fn class(case: &Value) -> &'static str {
    match (case["verdict"].as_str(), case["level"].as_str()) {
        (Some("pass"), _) => "pass",
        (Some("fail"), Some("MUST")) => "must",
        (Some("fail"), _) => "should",
        (Some("inconclusive"), _) => "inconclusive",
        _ => "unsupported",
    }
}

fn row(body: &mut String, name: &str, report: &Value, columns: &BTreeSet<(String, String)>, top: usize) {
    _ = write!(body, "<text y=\"{}\">{}</text>", top + SQUARE + 2, escape(name));
    for case in cases(report) {
        let key = key(case);
        let at = columns.iter().position(|column| *column == key).unwrap_or_default();
        let (x, class) = (NAMES + at * STEP, class(case));
        _ = write!(
            body,
            "<rect x=\"{x}\" y=\"{top}\" width=\"{SQUARE}\" height=\"{}\" class=\"{class}\"><title>{} {}: {}</title></rect>",
            ROW - 4,
            escape(&key.1),
            escape(&key.0),
            escape(case["verdict"].as_str().unwrap_or_default()),
        );
    }
    let (x, summary) = (NAMES + columns.len() * STEP + 8, &report["summary"]);
    let (passed, failed) = (&summary["passed"], &summary["failed"]);
    _ = write!(body, "<text x=\"{x}\" y=\"{}\">{passed} passed, {failed} failed</text>", top + SQUARE + 2);
}

fn legend(body: &mut String, top: usize) {
    let signs = [
        ("pass", "passed"),
        ("must", "failed, MUST"),
        ("should", "failed, SHOULD"),
        ("inconclusive", "inconclusive"),
        ("unsupported", "unsupported"),
    ];
    for (at, (class, text)) in signs.into_iter().enumerate() {
        let (x, y) = (at * 130, top - 8);
        _ = write!(body, "<rect x=\"{x}\" y=\"{y}\" width=\"{SQUARE}\" height=\"{SQUARE}\" class=\"{class}\"/>");
        _ = write!(body, "<text x=\"{}\" y=\"{top}\">{text}</text>", x + STEP + 4);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_case_is_a_square_in_its_column() {
        let case = |id: &str, verdict: &str, level: &str| json!({"id": id, "variant": "sotw", "verdict": verdict, "level": level});
        let summary = json!({"passed": 1, "failed": 1});
        let server = json!({"mode": "server", "summary": summary, "cases": [case("b", "fail", "MUST"), case("a", "pass", "MUST")]});
        let client = json!({"mode": "client", "summary": summary, "cases": [case("c", "fail", "SHOULD")]});
        let svg = picture(&[("<one>".into(), server), ("two".into(), client)]);
        assert!(
            svg.contains("servers: 2 cases") && svg.contains("clients: 1 cases") && svg.contains("&lt;one&gt;"),
            "{svg}"
        );
        assert!(
            svg.contains("x=\"238\" y=\"20\" width=\"7\" height=\"12\" class=\"must\"><title>b sotw: fail"),
            "{svg}"
        );
        assert!(
            svg.contains("x=\"230\" y=\"20\" width=\"7\" height=\"12\" class=\"pass\"><title>a sotw: pass"),
            "{svg}"
        );
        assert!(svg.contains("class=\"should\"><title>c sotw: fail"), "{svg}");
        assert!(svg.contains("<text x=\"254\" y=\"29\">1 passed, 1 failed</text>"), "{svg}");
        assert!(picture(&[]).contains("<svg"));
    }
}
